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
        return self.diapause("study", "compress", *arguments, "-o", "out", "--seconds", "0", status=status)

    def test_rows_tables_and_pictures_tell_what_each_codec_took_and_what_is_modelled(self):
        self.study(self.field, "--codecs", "raw,shuffle+lz4,lattice", "--bounds", "1e-2,1e-4")
        with open(self.scratch / "out/measurements.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        steps = [("raw", "0"), ("shuffle+lz4", "0"), ("lattice", "0.01"), ("lattice", "0.0001")]
        self.assertEqual([(row["codec"], row["bound"], row["step"]) for row in rows],
                         [(codec, bound, step) for codec, bound in steps for step in ("compress", "write", "decompress")])
        for row in rows:
            self.assertEqual((row["field"], row["type"], row["shape"]), ("wave", "float64", "24x32x40"))
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
                         ["energy-by-bound.png", "fits.csv", "measurements.csv", "power-and-runtime.png",
                          "ratio-and-speed.png", "study.html"])
        page = (self.scratch / "out/study.html").read_text()
        self.assertIn('class="kind modelled"', page)
        self.assertIn("there is no P(f) of this machine", page)
        self.assertIn("Everything was timed at the full clock", page)
        self.assertNotIn("this machine, f over its base clock", page)

    def test_a_codec_that_there_is_not_is_refused_by_name(self):
        error = self.study(self.field, "--codecs", "zip", status=3)[1]
        self.assertIn("zip: no such codec", error)
        self.assertNotIn("Traceback", error)


if __name__ == "__main__":
    support.main()
