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
                             status=status)

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
        self.assertEqual(sorted(path.name for path in (self.scratch / "out").iterdir()),
                         ["dump.csv", "energy-by-bound.png", "equal-error.csv", "fits.csv",
                          "measurements.csv", "power-and-runtime.png", "ratio-and-speed.png",
                          "study.html"])
        page = (self.scratch / "out/study.html").read_text()
        self.assertIn('class="kind modelled"', page)
        self.assertIn("there is no P(f) of this machine", page)
        self.assertIn("Everything was timed at the full clock", page)
        self.assertNotIn("this machine, f over its base clock", page)

    def test_a_dump_is_reckoned_from_what_a_gb_took(self):
        self.study(self.field, "--codecs", "raw,lattice", "--bounds", "1e-2,1e-4", "--dump-gb",
                   "1000")
        with open(self.scratch / "out/measurements.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        with open(self.scratch / "out/dump.csv", newline="") as file:
            dumps = list(csv.DictReader(file))
        self.assertEqual([(dump["codec"], float(dump["bound"])) for dump in dumps],
                         [("raw", 0), ("lattice", 0.01), ("lattice", 0.0001)])
        for dump in dumps:
            taken = [float(row["seconds"]) / float(row["raw_bytes"])
                     for row in rows if row["step"] != "decompress"
                     and (row["codec"], float(row["bound"]))
                     == (dump["codec"], float(dump["bound"]))]
            self.assertAlmostEqual(float(dump["seconds"]) / (1e12 * sum(taken)), 1, 9)
            self.assertGreater(float(dump["seconds_with_rule"]), float(dump["seconds"]))
            self.assertEqual(dump["joules"], "")  # none is measured
            self.assertGreater(float(dump["energy_saved_pct"]), 0)
        self.assertIn("A dump of 1000 GB", (self.scratch / "out/study.html").read_text())

    def test_a_plan_is_shown_before_and_nothing_is_done(self):
        plan = self.study(self.field, "--codecs", "raw,lattice", "--bounds", "1e-2,1e-4",
                          "--dry-run")[0]
        self.assertIn(f"{self.field}, lattice", plan)
        self.assertIn("2 of 2 runs to do", plan)
        self.assertIn("cam_t", self.study("--dry-run")[0])
        self.assertFalse((self.scratch / "out").exists())

    def test_a_codec_that_there_is_not_is_refused_by_name(self):
        error = self.study(self.field, "--codecs", "zip", status=3)[1]
        self.assertIn("zip: no such codec", error)
        self.assertNotIn("Traceback", error)


if __name__ == "__main__":
    support.main()
