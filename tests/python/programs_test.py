"""Tests what a run has used by the trace that was recorded meanwhile."""

import json
import pathlib
import tempfile
import unittest

from diapause.study import programs


class PowerTest(unittest.TestCase):
    def power(self, rows, accuracy=0.05):
        """Of a run from 1000 to 1010 of which `rows` are (seconds since 1000, joules, bound)."""
        domain = {"domain": "node", "source": "hwmon node", "kind": "measured", "part": "",
                  "accuracy": accuracy, "accuracy_source": "a data sheet"}
        head = {"schema": 1, "what": "diapause power trace", "host": "n1",
                "started_unix_s": 1000.0, "domains": [domain],
                "total": {"name": "node", "kind": "measured", "domains": [0]}}
        lines = [{"t": at, "j": [joules], "c": [at]} | ({} if off is None else {"o": [off]})
                 for at, joules, off in rows]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace"
            path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
            power = programs.power_between(path, 1000.0, 1010.0)
        return programs.joules_of({"seconds": 10.0, "watts": power.watts, "off": power.off})

    def test_the_energy_of_a_run_has_the_bounds_of_samples_and_sensor(self):
        used = self.power([(0.0, 0.0, 4.0), (5.0, 500.0, 4.0), (10.0, 1000.0, 6.0)])
        self.assertEqual((used.joules, used.attribution_j), (1000.0, 0.0))
        self.assertAlmostEqual(used.sampling_j, 10.0)
        self.assertAlmostEqual(used.sensor_j, 50.0)

    def test_what_no_row_covers_may_have_had_any_power(self):
        used = self.power([(1.0, 100.0, 0.0), (9.0, 900.0, 0.0)])
        self.assertEqual(used.joules, 1000.0)
        self.assertAlmostEqual(used.sampling_j, 2 * 150.0)  # 2 s at up to 250 W

    def test_a_trace_that_tells_no_bound_gives_none(self):
        rows = [(0.0, 0.0, None), (10.0, 1000.0, None)]
        self.assertIsNone(self.power(rows).uncertainty_j)
        rows = [(0.0, 0.0, 1.0), (10.0, 1000.0, 1.0)]
        self.assertIsNone(self.power(rows, accuracy=None).uncertainty_j)
