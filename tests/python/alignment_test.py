"""The clock offset of an external meter, found in made-up records of the same time."""

import json
import os
import pathlib
import random
import tempfile
import unittest

import numpy as np

from diapause import alignment, records
from diapause.files import Trouble

BEGAN_S = 1700000000.0


class AlignmentTest(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.chance = random.Random(5)

    def leave(self, power, offset_s, seconds=180, apart_s=1.0):
        """A trace at 10 Hz of half the node, and a meter of all of it that shows the mean of the
        second before by a clock that is wrong."""
        fine = np.arange(0, seconds, 0.01)
        joules = np.concatenate([[0], np.cumsum(power(fine) * 0.01)])[:-1]
        head = {"schema": 1, "what": "diapause power trace", "host": "n1",
                "started_unix_s": BEGAN_S, "period_s": 0.1,
                "domains": [{"domain": "package", "source": "powercap", "kind": "measured",
                             "part": ""}],
                "total": {"name": "package", "kind": "measured", "domains": [0]}}
        rows = [{"t": t, "j": [float(np.interp(t, fine, joules)) / 2], "c": [t]}
                for t in np.arange(0.1, seconds, 0.1)]
        (self.scratch / "run.trace").write_text("".join(json.dumps(line) + "\n"
                                                        for line in [head, *rows]))
        with open(self.scratch / "meter.csv", "w") as file:
            file.write("time_s,node_w\n")
            for end in np.arange(apart_s, seconds, apart_s):
                watts = ((np.interp(end, fine, joules) - np.interp(end - apart_s, fine, joules))
                         / apart_s + 80 + self.chance.gauss(0, 2))
                file.write(f"{BEGAN_S + end - offset_s:.3f},{watts:.1f}\n")

    def found(self, within_s=60.0):
        meter = alignment.read_meter(self.scratch / "meter.csv")
        trace = records.read_trace(self.scratch / "run.trace")
        return alignment.align(meter, trace.started_unix_s + np.array(trace.seconds),
                               np.array(trace.joules)[:, 0], within_s)

    def busy_now_and_then(self):
        edges = np.cumsum([self.chance.uniform(1, 8) for _ in range(100)])
        return lambda times: 100 + 60 * (np.searchsorted(edges, times) % 2)

    def test_an_offset_is_found_within_what_is_told(self):
        for offset_s in (0.0, 7.3, -23.85):
            self.leave(self.busy_now_and_then(), offset_s)
            found = self.found()
            self.assertLess(abs(found.offset_s - offset_s), found.off_s)
            self.assertLess(abs(found.offset_s - offset_s), 0.3)
            self.assertLess(found.off_s, 1.0)
            self.assertGreater(found.correlation, 0.9)

    def test_a_program_that_goes_up_and_down_regularly_tells_nothing(self):
        self.leave(lambda times: 100 + 60 * (np.floor(times / 5) % 2), 7.3)
        with self.assertRaisesRegex(Trouble, "irregular"):
            self.found()

    def test_a_load_that_only_grows_tells_nothing(self):
        self.leave(lambda times: 100 + times, 7.3)
        with self.assertRaisesRegex(Trouble, "irregular"):
            self.found()

    def test_a_constant_load_tells_nothing(self):
        self.leave(lambda times: np.full_like(times, 100.0), 7.3)
        with self.assertRaises(Trouble):
            self.found()

    def test_records_of_other_times_are_named(self):
        self.leave(self.busy_now_and_then(), 5000.0)
        with self.assertRaisesRegex(Trouble, "of the same time"):
            self.found()

    def test_a_file_that_is_no_meter_is_named(self):
        (self.scratch / "meter.csv").write_text("seconds,watts\n1,2\n")
        with self.assertRaisesRegex(Trouble, "first column"):
            alignment.read_meter(self.scratch / "meter.csv")
        (self.scratch / "meter.csv").write_text("time_s,node\n1,2\n")
        with self.assertRaisesRegex(Trouble, "has no column"):
            alignment.read_meter(self.scratch / "meter.csv")

    def read(self, text):
        (self.scratch / "meter.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        return alignment.read_meter(self.scratch / "meter.csv")

    def test_lines_of_the_same_time_are_one(self):
        meter = self.read("time_s,node_w\n" + "".join(f"{i // 4},{100 + i % 4}\n"
                                                     for i in range(120)))
        self.assertEqual(meter.apart_s, 1)
        self.assertTrue(np.allclose(meter.watts, 101.5))
        meter = self.read("time_s,node_j\n" + "".join(f"{i // 4},{25 * i}\n" for i in range(120)))
        self.assertTrue(np.allclose(meter.watts, 100))

    def test_whole_seconds_several_times_a_second_are_aligned(self):
        self.leave(self.busy_now_and_then(), 7.3, apart_s=0.25)
        head, *lines = (self.scratch / "meter.csv").read_text().splitlines()
        self.read("\n".join([head] + [f"{int(float(line.split(',')[0]))},{line.split(',')[1]}"
                                      for line in lines]))
        found = self.found()
        self.assertLess(abs(found.offset_s - 7.3 - 0.5), found.off_s)

    def test_readings_that_are_no_numbers_are_missing(self):
        lines = [f"{i},{i % 7}" for i in range(40)] + ["nan,3", "40,nan", "41,inf", "1e300,2"]
        meter = self.read("time_s,node_w\n" + "\n".join(lines))
        self.assertEqual(len(meter.watts), 40)
        self.assertTrue(np.isfinite(meter.watts).all())

    def test_a_counter_that_was_reset_loses_one_stretch(self):
        meter = self.read("time_s,node_j\n" + "".join(f"{i},{5 * (i % 30)}\n" for i in range(60)))
        self.assertEqual(len(meter.watts), 58)
        self.assertTrue(np.allclose(meter.watts, 5))

    def test_a_file_of_other_bytes_is_read_or_named(self):
        lines = b"".join(b"%d,%d\n" % (i, i % 7) for i in range(40))
        self.assertEqual(self.read(b"time_s,node_w,\xb0C\n" + lines).name, "node_w")
        self.assertEqual(self.read(b"\xef\xbb\xbftime_s,node_w\n" + lines).name, "node_w")
        with self.assertRaisesRegex(Trouble, "meter.csv:2: no CSV"):
            self.read(b"time_s,node_w\n1," + b"9" * 200000 + b"\n" + lines)

    def test_a_meter_that_is_finer_than_the_trace_is_thinned(self):
        self.leave(self.busy_now_and_then(), -23.85, apart_s=0.01)
        meter = alignment.read_meter(self.scratch / "meter.csv")
        self.assertLess(len(meter.not_finer(0.1).watts), len(meter.watts) / 9)
        found = self.found(within_s=86400)
        self.assertLess(abs(found.offset_s + 23.85), found.off_s)
        self.assertLess(found.off_s, 0.3)

    def test_a_line_of_another_year_does_not_matter(self):
        self.leave(self.busy_now_and_then(), 7.3)
        with open(self.scratch / "meter.csv", "a") as file:
            file.write("0,100\n9e17,100\n")
        self.assertLess(abs(self.found().offset_s - 7.3), 0.3)

    def test_a_pipe_is_refused(self):
        os.mkfifo(self.scratch / "pipe")
        with self.assertRaisesRegex(Trouble, "pipe is not a regular file"):
            alignment.read_meter(self.scratch / "pipe")

    def test_a_counter_of_energy_is_taken_too(self):
        (self.scratch / "meter.csv").write_text(
            "time_ms,rail_mj\n" + "".join(f"{1000 * i},{5000 * i}\n" for i in range(30)))
        meter = alignment.read_meter(self.scratch / "meter.csv")
        self.assertEqual((meter.name, meter.apart_s), ("rail_mj", 1.0))
        self.assertTrue(np.allclose(meter.watts, 5.0))


if __name__ == "__main__":
    unittest.main()
