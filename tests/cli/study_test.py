#!/usr/bin/env python3
"""study compress: a field of the test's own through all codecs of the build."""

import array
import csv
import math

import support
from support import CommandTest

SHAPE = (24, 32, 40)


def smooth(place):
    i, j, k = place // 1280, place // 40 % 32, place % 40
    return math.sin(0.2 * i) * math.cos(0.15 * j) + 0.3 * math.sin(0.1 * k)


class StudyTest(CommandTest):
    def setUp(self):
        super().setUp()
        values = array.array("d", (smooth(place) for place in range(math.prod(SHAPE))))
        (self.scratch / "wave.raw").write_bytes(values.tobytes())
        self.field = "wave.raw:float64:24x32x40"

    def study(self, *arguments, status=0):
        return self.diapause("study", "compress", *arguments, "-o", "out", "--seconds", "0",
                             "--dump-gb", "0.001", status=status)

    def test_rows_tables_and_pictures_tell_what_each_codec_took_and_what_is_modelled(self):
        self.study(self.field, "--codecs", "raw,shuffle+lz4,lattice", "--bounds", "1e-2,1e-4")
        with open(self.scratch / "out/measurements.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        steps = [("raw", "0"), ("shuffle+lz4", "0"), ("lattice", "0.01"), ("lattice", "0.0001")]
        self.assertEqual([(row["codec"], row["bound"], row["step"]) for row in rows],
                         [(codec, bound, step) for codec, bound in steps
                          for step in ("compress", "write", "decompress")])
        for row in rows:
            self.assertEqual((row["field"], row["type"], row["shape"]),
                             ("wave", "float64", "24x32x40"))
            self.assertEqual(int(row["raw_bytes"]), 8 * math.prod(SHAPE))
            self.assertGreater(float(row["seconds"]), 0)
            self.assertLessEqual(float(row["greatest_error"]), float(row["bound"]))
            self.assertEqual((row["clock_by"], row["clock_obtained"]), ("none", "1"))
        ratios = {(row["codec"], row["bound"]): float(row["ratio"]) for row in rows}
        self.assertLess(ratios["raw", "0"], 1)
        self.assertGreater(ratios["lattice", "0.01"], ratios["lattice", "0.0001"])
        self.assertGreater(ratios["lattice", "0.0001"], ratios["shuffle+lz4", "0"])

        self.assert_all_is_labelled()

    def assert_all_is_labelled(self):
        self.assertEqual(sorted(path.name for path in (self.scratch / "out").iterdir()), [
            "dump.csv", "energy-by-bound.png", "equal-error.csv", "fits.csv", "measurements.csv",
            "power-and-runtime.png", "ratio-and-speed.png", "runs", "study.html"])
        page = (self.scratch / "out/study.html").read_text()
        self.assertIn('class="kind modelled"', page)
        self.assertIn("there is no P(f) of this machine", page)
        self.assertIn("Everything was timed at the full clock", page)
        self.assertNotIn("this machine, f over its base clock", page)

    def test_a_dump_is_done_and_stands_beside_what_is_reckoned(self):
        self.study(self.field, "--codecs", "raw,lattice", "--bounds", "1e-2,1e-4")
        rows = self.table("measurements")
        dumps = self.table("dump")
        self.assertEqual([(dump["codec"], float(dump["bound"])) for dump in dumps],
                         [("raw", 0), ("lattice", 0.01), ("lattice", 0.0001)])
        for dump in dumps:
            size_bytes = 1e9 * float(dump["gb"])
            # A MB takes five copies of the field.
            self.assertAlmostEqual(size_bytes, 5 * 8 * math.prod(SHAPE), 3)
            taken = [
                float(row["seconds"]) / float(row["raw_bytes"]) for row in rows
                if row["step"] != "decompress"
                and (row["codec"], float(row["bound"])) == (dump["codec"], float(dump["bound"]))]
            self.assertAlmostEqual(float(dump["reckoned_seconds"]) / (size_bytes * sum(taken)), 1,
                                   9)
            self.assertGreater(float(dump["reckoned_seconds_with_rule"]),
                               float(dump["reckoned_seconds"]))
            self.assertGreater(float(dump["here_seconds"]), float(dump["here_write_s"]))
            # No clock could be lowered.
            self.assertEqual((dump["clock_by"], dump["here_seconds_with_rule"]), ("none", ""))
            self.assertEqual((dump["energy"], dump["here_joules"]), ("not measured", ""))
        self.assertIn("A dump of 0.00123 GB", (self.scratch / "out/study.html").read_text())
        self.assertIn("not measured", (self.scratch / "out/study.html").read_text())

    def test_a_study_goes_on_with_what_is_not_done_yet(self):
        self.study(self.field, "--codecs", "raw")
        before = (self.scratch / "out/measurements.csv").read_text()
        (self.scratch / "out/runs/dump-raw-wave.json").unlink()
        plan = self.study(self.field, "--codecs", "raw", "--dry-run")[0]
        self.assertIn("1 of 2 runs to do", plan)
        self.study(self.field, "--codecs", "raw")
        self.assertEqual((self.scratch / "out/measurements.csv").read_text(), before)
        self.assertEqual(len(self.table("dump")), 1)
        self.assertIn("codecs was", self.study(self.field, "--codecs", "lattice", status=3)[1])

    def table(self, name):
        with open(self.scratch / f"out/{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_a_plan_is_shown_before_and_nothing_is_done(self):
        plan = self.study(self.field, "--codecs", "raw,lattice", "--bounds", "1e-2,1e-4",
                          "--dry-run")[0]
        self.assertIn("wave, lattice", plan)
        self.assertIn("wave, lattice: a dump of 0.001 GB", plan)
        self.assertIn("4 of 4 runs to do", plan)
        self.assertIn("cam_t", self.study("--dry-run")[0])
        self.assertFalse((self.scratch / "out").exists())

    def test_a_codec_that_there_is_not_is_refused_by_name(self):
        error = self.study(self.field, "--codecs", "zip", status=3)[1]
        self.assertIn("zip: no such codec", error)
        self.assertNotIn("Traceback", error)


if __name__ == "__main__":
    support.main()
