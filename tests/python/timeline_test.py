"""The time axis of pictures, and power along it."""

import pathlib
import tempfile
import unittest

import numpy as np
import samples
from diapause import records, timeline


class TimelineTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "file.jsonl"

    def ledger(self, lines):
        return records.read_ledger(samples.write(self.path, lines))

    def test_time_between_two_starts_takes_no_room(self):
        axis = timeline.axis_of(self.ledger(samples.RUN))
        self.assertEqual(axis.length, 100.0)
        self.assertEqual([axis.at(moment) for moment in (1000.0, 1060.0, 1063.0, 1066.0, 1106.0)],
                         [0, 60, 60, 60, 100])
        self.assertEqual(axis.pauses(), [(60.0, 6.0)])

    def test_a_clock_that_was_set_back_does_not_turn_the_axis_round(self):
        axis = timeline.Axis([(1000.0, 1060.0), (1030.0, 1090.0)])
        self.assertEqual((axis.length, axis.at(1090.0), axis.pauses()), (90.0, 90.0, []))

    def test_power_is_the_energy_of_a_line_over_its_time(self):
        ledger = self.ledger(samples.RUN)
        total, node = timeline.curves_of_ledger(ledger, timeline.axis_of(ledger))
        self.assertEqual((total.domain, node.domain), ("total", "node"))
        self.assertEqual((list(total.edges), list(total.watts)),
                         ([0.0, 60.0, 100.0], [125.0, 87.5]))

    def test_time_of_which_no_line_tells_is_a_hole(self):
        ledger = self.ledger([samples.energy(10.0, 10.0, 100.0, []),
                              samples.energy(30.0, 10.0, 200.0, [])])
        total = timeline.curves_of_ledger(ledger, timeline.axis_of(ledger))[0]
        np.testing.assert_array_equal(total.watts, [10.0, np.nan, 20.0])

    def test_a_long_curve_is_thinned_without_losing_energy(self):
        lines = [samples.energy(second, 1.0, 100.0 + second % 7, []) for second in range(1, 10001)]
        ledger = self.ledger(lines)
        total = timeline.curves_of_ledger(ledger, timeline.axis_of(ledger))[0]
        self.assertEqual(len(total.watts), timeline.MOST_STEPS)
        self.assertAlmostEqual(np.sum(total.watts * np.diff(total.edges)),
                               sum(100.0 + s % 7 for s in range(1, 10001)))

    def test_a_trace_is_cut_to_the_time_of_the_job(self):
        head = {"schema": 1, "what": "diapause power trace", "host": "n1", "started_unix_s": 990.0,
                "domains": [
            {"domain": "package", "source": "a", "kind": "measured"},
            {"domain": "package", "source": "b", "kind": "measured"}],
            "total": {"name": "package", "kind": "measured", "domains": [0, 1]}}
        rows = [{"t": float(t), "j": [30.0 * t, 20.0 * t], "c": [float(t)] * 2}
                for t in range(1, 200, 5)]
        axis = timeline.Axis([(1000.0, 1060.0)])
        total, package = timeline.curves_of_trace(
            records.read_trace(samples.write(self.path, [head, *rows])), axis)
        np.testing.assert_allclose(total.watts, 50.0)
        np.testing.assert_allclose(package.watts, 50.0)
        self.assertEqual((total.edges[0], total.edges[-1]), (1.0, 56.0))

    def test_phases_that_would_touch_in_a_picture_are_one(self):
        axis = timeline.Axis([(0.0, 700.0)])
        ledger = self.ledger([samples.energy(700.0, 700.0, 1.0, [
            samples.phase("keep", 1, 1, 1.0, start_unix_s=10.0, seconds=0.2),
            samples.phase("keep", 2, 1, 1.0, start_unix_s=10.9, seconds=0.1),
            samples.phase("keep", 3, 1, 1.0, start_unix_s=50.0, seconds=20.0)])])
        (spans,) = timeline.lanes(ledger.energy[0].phases, axis).values()
        self.assertEqual([(round(begin, 6), round(length, 6)) for begin, length in spans],
                         [(10.0, 1.9), (50.0, 20.0)])
