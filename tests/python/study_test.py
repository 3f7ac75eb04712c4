"""Tests what is made of the rows of a sweep, with rows of which the truth is known."""

import csv
import dataclasses
import hashlib
import pathlib
import struct
import tempfile
import unittest
import zipfile
from unittest import mock

import numpy as np
from diapause import commands, files
from diapause.study import command, fields, figures, published, results
from diapause.study.sweep import Dump, Row

CLOCKS = (1.0, 0.9, 0.875, 0.85, 0.7, 0.6, 0.5)
PHI = 0.6


def power(clock):
    return 0.3 * clock**3 + 0.7


def row(step, clock, codec="lattice", bound=1e-3, by="cpufreq", kind="measured"):
    seconds = (PHI / clock + 1 - PHI) * (2.0 if step == "compress" else 1.0)
    return Row("f", "float64", "8x8", codec, bound, step, clock, clock, by, seconds, 1, 10**9,
               10**8, 10.0, bound / 2, 1, 0, 100.0 * power(clock) * seconds if kind else None,
               "node", kind)


def study(clocks=CLOCKS, dumps=(), **more):
    return results.Study([row(step, clock, **more)
                          for clock in clocks for step in ("compress", "write", "decompress")],
                         "m510-broadwell", dumps)


def dumps(by, kind):
    """Three GB without the rule and with it."""
    return [Dump("f", "lattice", 1e-3, False, by, 3 * 10**9, 9.0, 1.0, 3.0, 1.0, 1200.0, kind),
            Dump("f", "lattice", 1e-3, True, by, 3 * 10**9, 11.0, 0.875, 4.0, 0.85, 900.0, kind)]


class StudyTest(unittest.TestCase):
    def test_measured_power_and_time_are_fitted(self):
        found = study()
        fit = found.power_fit("compress")
        self.assertAlmostEqual(fit.b, 3.0, 5)
        self.assertAlmostEqual(found.runtime_fit("write").phi, PHI)
        self.assertEqual(found.power_at("compress", 0.875)[1], "measured")
        self.assertEqual(found.label(), "time measured; power over clock measured")

    def test_ratios_are_compared_where_the_real_errors_are_equal(self):
        def at(codec, bound, share, ratio):
            # A codec whose real error is that share of its bound.
            made = dataclasses.replace(row("compress", 1.0, codec=codec, bound=bound),
                                       greatest_error=share * bound, ratio=ratio,
                                       rms_error=share * bound / 2, value_range=1.0)
            return made

        rows = [at("lattice", bound, 1.0, 4 / bound**0.25) for bound in (1e-1, 1e-2, 1e-3, 1e-4)]
        # At equal bounds it compresses half as well, at equal errors better: it stays a hundred
        # times below its bound.
        rows += [at("zfp", bound, 0.01, 2 / bound**0.25) for bound in (1e-1, 1e-2, 1e-3, 1e-4)]
        found = {(one["codec"], one["measure"], one["value"]): one["ratio"]
                 for one in results.Study(rows, "m510-broadwell").at_equal_error()}
        self.assertAlmostEqual(found["lattice", "greatest_error", 1e-3], 4 * 10**0.75, 5)
        self.assertAlmostEqual(found["zfp", "greatest_error", 1e-3], 2 * 10**0.25, 5)
        self.assertAlmostEqual(found["lattice", "psnr_db", 80.0] / found["zfp", "psnr_db", 80.0],
                               2 * 10**0.5, 4)
        self.assertNotIn(("zfp", "psnr_db", 60.0), found, "a bound that was not measured")

    def test_the_scatter_of_repetitions_makes_the_interval_of_a_time(self):
        rows = [dataclasses.replace(row("compress", 1.0), passes=4, seconds_scatter=0.2)]
        self.assertAlmostEqual(
            results.Study(rows, "m510-broadwell").seconds_off("lattice", 1e-3, "compress"),
            3.182 * 0.1 / 2, 4)
        self.assertIsNone(study().seconds_off("lattice", 1e-3, "compress"),
                          "of a single pass nobody knows")

    def test_the_rule_saves_what_power_and_time_say(self):
        found = study()
        self.assertTrue(found.in_joules)
        self.assertAlmostEqual(found.energy("lattice", 1e-3, "compress", False), 200.0)
        self.assertAlmostEqual(found.energy("lattice", 1e-3, "compress", True),
                               200.0 * power(0.875) * (PHI / 0.875 + 1 - PHI), 4)

    def test_power_at_an_emulated_clock_is_not_taken_for_measured(self):
        found = study(by="emulated")
        self.assertFalse(found.measures_power)
        self.assertIsNone(found.power_fit("compress"))
        self.assertEqual(found.power_at("compress", 0.875)[1], "modelled")
        self.assertEqual(found.longer_at("compress", 0.875)[1], "emulated")
        self.assertIn("slowdown emulated", found.label())

    def test_modelled_joules_are_no_measurement(self):
        found = study(kind="modelled")
        self.assertFalse(found.measures_power)
        self.assertFalse(found.in_joules)
        # The unit is seconds for a GB.
        self.assertAlmostEqual(found.energy("lattice", 1e-3, "write", False), 1.0)

    def test_without_other_clocks_the_published_share_of_the_clock_is_taken(self):
        found = study(clocks=(1.0,), by="none", kind="")
        self.assertEqual(found.longer_at("write", 0.85)[1], "modelled")
        self.assertAlmostEqual(found.longer_at("write", 0.85)[0], published.LONGER["write"])

    def test_a_method_that_was_not_tried_has_no_energy(self):
        self.assertIsNone(study().energy("zfp", 1e-3, "write", True))

    def test_a_dump_stands_beside_what_is_reckoned_of_it_and_what_is_published(self):
        found = study(dumps=dumps("cpufreq", "measured"))
        (dump,) = found.dump_rows()
        self.assertEqual((dump["gb"], dump["here_seconds"], dump["here_seconds_with_rule"],
                          dump["here_longer_pct"]),
                         (3.0, 12.0, 15.0, 25.0))
        self.assertEqual((dump["here_joules"], dump["here_joules_with_rule"],
                          dump["here_energy_saved_pct"]),
                         (1200.0, 900.0, 25.0))
        self.assertEqual((dump["energy"], dump["clock_by"], dump["published_gb"]),
                         ("measured", "cpufreq", 512.0))
        self.assertAlmostEqual(dump["reckoned_seconds"], 3 * (2.0 + 1.0))
        self.assertAlmostEqual(dump["reckoned_seconds_with_rule"],
                               3 * (2 * (PHI / 0.875 + 1 - PHI) + PHI / 0.85 + 1 - PHI))
        self.assertAlmostEqual(dump["reckoned_joules"], 900.0)

    def test_joules_of_steps_and_dumps_have_their_bounds(self):
        off = {"sampling_j": 2.0, "sensor_j": 60.0, "attribution_j": 0.0}
        bounded = [dataclasses.replace(one, **off) for one in dumps("cpufreq", "measured")]
        (dump,) = study(dumps=bounded).dump_rows()
        self.assertEqual((dump["here_joules_uncertainty_j"], dump["here_joules_sampling_j"],
                          dump["here_joules_sensor_j"], dump["here_joules_bound"]),
                         (62.0, 2.0, 60.0, "bound"))
        self.assertAlmostEqual(dump["here_energy_saved_off_pct"], 100 * (902 / 1198 - 0.75))
        self.assertEqual((dump["reckoned_joules_bound"], dump["reckoned_joules_uncertainty_j"]),
                         ("no bound", None))
        rows = [dataclasses.replace(row("write", 1.0), **off), row("compress", 1.0)]
        measured, unbounded = csv.DictReader(results.measurements(rows).decode().splitlines())
        self.assertEqual((measured["uncertainty_j"], measured["joules_bound"]), ("62.0", "bound"))
        self.assertEqual((unbounded["uncertainty_j"], unbounded["joules_bound"]), ("", "no bound"))
        page = "".join(command._dump_parts(study(dumps=bounded)))
        self.assertIn("1,200 ± 60 J (2.0 + 60 + 0 J)", page)
        self.assertIn("25.00 ± 0.29", page)
        self.assertIn("(no bound)", page)

    def test_joules_of_a_dump_are_not_measured_at_emulated_clocks_or_by_a_model(self):
        (emulated,) = study(dumps=dumps("emulated", "measured")).dump_rows()
        self.assertEqual((emulated["energy"], emulated["here_joules"]), ("measured", 1200.0))
        self.assertEqual((emulated["here_joules_with_rule"], emulated["here_energy_saved_pct"]),
                         (None, None))
        (modelled,) = study(dumps=dumps("cpufreq", "modelled")).dump_rows()
        self.assertEqual((modelled["energy"], modelled["here_joules"],
                          modelled["here_seconds_with_rule"]),
                         ("not measured", None, 15.0))
        (plain,) = study(dumps=dumps("none", "measured")[:1]).dump_rows()
        self.assertEqual((plain["here_seconds_with_rule"], plain["here_longer_pct"]), (None, None))

    def test_pictures_are_drawn_of_whatever_is_known(self):
        for found in (study(), study(by="emulated"), study(clocks=(1.0,), by="none", kind=""),
                      study(codec="raw", bound=0.0)):
            for draw in (figures.power_and_runtime, figures.energy_by_bound,
                         figures.ratio_and_speed):
                self.assertGreater(len(draw(found).axes), 0)


class RecoveredTest(unittest.TestCase):
    def test_fits_of_synthesised_data_stand_beside_the_published_numbers(self):
        for curve in published.curves():
            again = results.recovered(curve)
            self.assertAlmostEqual(again.b / curve.b, 1.0, 4, (curve.step, curve.data))


class FieldTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.values = np.arange(24.0).reshape(2, 3, 4)

    def test_a_file_is_read_with_the_type_and_shape_behind_it(self):
        (self.scratch / "u.raw").write_bytes(self.values.tobytes())
        field = fields.of_file(f"{self.scratch}/u.raw:float64:2x3x4")
        self.assertEqual(field.name, "u")
        np.testing.assert_array_equal(field.values, self.values)

    def test_a_file_of_numpy_brings_them_along_in_any_order(self):
        np.save(self.scratch / "u.npy", np.asfortranarray(self.values.astype(">f4")))
        field = fields.of_file(f"{self.scratch}/u.npy")
        self.assertEqual(field.values.dtype, np.dtype("float32"))
        self.assertEqual(field.values.tobytes(), self.values.astype("float32").tobytes())

    def test_what_is_no_field_is_refused_by_name(self):
        (self.scratch / "u.raw").write_bytes(self.values.tobytes())
        np.save(self.scratch / "objects.npy", np.array([{}]), allow_pickle=True)
        np.save(self.scratch / "whole.npy", np.arange(3))
        for text in ("u.raw:float64:2x3x5", "u.raw:int32:2x3x4", "u.raw", "u.raw:float64:2xx",
                     "gone.npy", "objects.npy", "whole.npy"):
            with self.subTest(text), self.assertRaisesRegex(fields.FieldError, text):
                fields.of_file(f"{self.scratch}/{text}")

    def test_a_package_that_is_another_one_is_refused(self):
        package = fields.Package("p", "1", "0" * 64)
        (self.scratch / "p_1_all.deb").write_bytes(b"another")
        with self.assertRaisesRegex(fields.FieldError, "p_1_all.deb"):
            fields._fetched(package, self.scratch)

    def test_without_a_package_or_a_program_the_others_are_there_and_a_line_says_why(self):
        missing = FileNotFoundError("no network")
        left_out = []
        with mock.patch.object(fields, "_fetch", side_effect=missing), mock.patch(
                "shutil.which", return_value=None):
            used = list(fields.built_in(self.scratch / "set", self.scratch, left_out.append))
        self.assertEqual(used, [])
        for name in ("cam_t", "protein_v", "LAMMPS", "heat program", "benchmarks"):
            self.assertEqual(len([line for line in left_out if name in line]), 1, name)
        self.assertIn("no network", left_out[0])

    def test_a_package_is_unpacked_once_for_all_of_its_fields(self):
        with zipfile.ZipFile(self.scratch / "p-1.whl", "w") as wheel:
            wheel.writestr("a", "first")
            wheel.writestr("b", "second")
        package = fields.Package(
            "p", "1", hashlib.sha256((self.scratch / "p-1.whl").read_bytes()).hexdigest(),
            "p-1.whl")
        with mock.patch.object(fields, "_fetched", wraps=fields._fetched) as fetched:
            self.assertEqual([fields._archive(package, self.scratch)(name) for name in "ab"],
                             [b"first", b"second"])
        self.assertEqual(fetched.call_count, 1)

    def test_fields_of_the_met_office_are_those_of_one_code(self):
        def record(data):
            return struct.pack(">i", len(data)) + data + struct.pack(">i", len(data))

        def field(code, values):
            words = np.zeros(64, ">i4")
            words[[17, 18, 41]] = (*values.shape, code)
            return record(words.tobytes()) + record(values.astype(">f4").tobytes())

        first, other, second = np.arange(6.0).reshape(2, 3), np.zeros((2, 3)), np.ones((2, 3))
        found = fields._pp(4)(field(4, first) + field(408, other) + field(4, second))
        np.testing.assert_array_equal(found, [first, second])

    def test_a_trajectory_has_positions_and_velocities_of_all_frames(self):
        def frame(x, v):
            sizes = (0, 0, 36, 0, 0, 0, 0, x.size * 4, v.size * 4, 0, len(x), 7, 0)
            return (struct.pack(">3i12s", 1993, 13, 12, b"GMX_trn_file")
                    + struct.pack(">13i2f", *sizes, 0.5, 0) + bytes(36) + x.astype(">f4").tobytes()
                    + v.astype(">f4").tobytes())

        x, v = np.arange(6.0).reshape(2, 3), -np.arange(6.0).reshape(2, 3)
        data = frame(x, v) + frame(x + 1, v - 1)
        np.testing.assert_array_equal(fields._trr("x")(data), np.concatenate([x, x + 1]))
        np.testing.assert_array_equal(fields._trr("v")(data), np.concatenate([v, v - 1]))


class WordsTest(unittest.TestCase):
    def test_wrong_numbers_are_refused_by_name(self):
        for option in ("--clocks=2", "--clocks=0", "--clocks=nan", "--bounds=small", "--seconds=x"):
            with self.subTest(option), self.assertRaisesRegex(
                    files.Trouble, option.partition("=")[0]):
                commands.run(["study-compress", "--encoder=x", "--output=y", option])
