"""The built-in set of the study as it is fetched and run: needs a network, and LAMMPS."""

import pathlib
import tempfile
import unittest

import numpy as np
from diapause.study import fields

WANTED = {name for name, *_ in fields.BUILT_IN} | {"lammps_x", "lammps_v"}


class BuiltInSetTest(unittest.TestCase):
    def test_all_of_it_can_be_had_and_looks_like_data(self):
        left_out = []
        with tempfile.TemporaryDirectory() as scratch:
            found = {field.name: field.values for field in
                     fields.built_in(pathlib.Path(scratch), pathlib.Path("no-build"),
                                     left_out.append)}
        self.assertEqual(set(found), WANTED, left_out)
        for name, values in found.items():
            sound = values[np.abs(values) < 1e30]
            self.assertTrue(np.isfinite(sound).all(), name)
            self.assertGreater(np.unique(sound[:10000]).size, 20, name)
            self.assertLess(np.abs(sound).max(), 2e5, name)
        self.assertEqual(found["lammps_x"].shape, (32000, 3))


if __name__ == "__main__":
    unittest.main()
