"""Tests what is made of the runs of `study throttle`, with runs of which the truth is known."""

import argparse
import pathlib
import unittest

from diapause.study import options, published, throttle

PHI = 0.5
OFF = {"sampling_j": 0.01, "sensor_j": 0.5, "attribution_j": 0.0}


def arguments(**more):
    return argparse.Namespace(**{"repetitions": 2, "size": 1500.0,
                                 "medium": [("local", "/a"), ("ip", "/b")], "actuator": "cpufreq",
                                 "clocks": (1.0, 0.8, 0.5), "machine": "m510-broadwell",
                                 "seconds": 1.0,
                                 "output": pathlib.Path("/out")} | more)


def line(clock, rest_w, kind="measured"):
    seconds = PHI / clock + 1 - PHI
    cpu = seconds * (0.2 + 0.8 * clock**3)
    return {"asked": clock, "obtained": clock, "seconds": seconds, "passes": 3, "raw_bytes": 1e9,
            "joules": cpu + rest_w * seconds, "uncertainty": OFF,
            "uncertainty_of": {"package": OFF},
            "joules_of": {"package": cpu, "dram": 0.1}, "energy_of": "node", "energy_kind": kind}


def study(chosen, kind="measured", rest_w=10.0):
    gears = {"gears": [line(clock, rest_w, kind) for clock in throttle._gears(chosen)]}
    results = {f"{medium}-{i + 1}": gears for medium in throttle._media(chosen)
               for i in range(chosen.repetitions)}
    shares = [{"nodes": nodes, "work_s": 100.0, "work": 0.7, "checkpoints": 0.1, "rework": 0.1,
               "restarts": 0.1}
              for nodes in throttle.SIZES]
    return throttle.Study(chosen, results | {"figure-1": {"sizes": shares}})


class ThrottleTest(unittest.TestCase):
    def test_gears_go_from_the_highest_published_clock_to_the_lowest(self):
        self.assertEqual((len(throttle.GEARS), throttle.GEARS[0], throttle.GEARS[-1]),
                         (6, 1.0, 0.368))

    def test_the_processor_saves_where_the_node_that_draws_much_else_does_not(self):
        found = study(arguments())
        half = found.gears("local")[-1]
        self.assertAlmostEqual(half.time, 1.5)
        self.assertAlmostEqual(half.cpu, 1.5 * 0.3)
        self.assertGreater(half.node, 1.0)
        self.assertIn("the processor uses least at 0.50 of the clock (55.0 ± 1.5 % saved), the "
                      "node at 1.00 (nothing saved)",
                      found.conclusion("local"))

    def test_every_energy_has_its_bounds_or_says_that_it_has_none(self):
        found = study(arguments())
        row = found.rows()[0]
        self.assertEqual([row[f"joules_{what}"] for what in ("sampling_j", "sensor_j",
                                                             "attribution_j", "bound")],
                         [0.01, 0.5, 0.0, "bound"])
        self.assertEqual((row["package_uncertainty_j"], row["dram_bound"]), (0.51, "no bound"))
        half = found.gears("local")[-1]  # the meter is off by the same share of both
        self.assertAlmostEqual(half.cpu_off, 0.46 / 0.99 - 0.45)
        page = found.page(found.figures()).decode()
        self.assertIn("samples are apart", page)
        self.assertIn("modelled, no bound", page)

    def test_a_saving_within_what_samples_miss_is_not_told_apart(self):
        self.assertEqual([throttle._saved(0.9, off) for off in (0.01, 0.2)],
                         ["10.0 ± 1.0 % saved", "no saving told apart"])

    def test_joules_count_only_if_a_counter_measured_them_at_real_clocks(self):
        for found in (study(arguments(actuator="emulated")), study(arguments(), kind="modelled")):
            self.assertFalse(found.is_real)
            self.assertEqual({(gear.cpu, gear.node) for gear in found.gears("local")},
                             {(None, None)})
            self.assertAlmostEqual(found.gears("local")[-1].time, 1.5)
            self.assertIn("only where power falls by more than 33 %", found.conclusion("local"))
            self.assertEqual({row["here_node_energy_over_full"]
                              for row in found.comparison() if row["medium"] == "local"}, {None})

    def test_without_an_actuator_nothing_is_said_of_slower_clocks(self):
        found = study(arguments(actuator="none"))
        self.assertEqual([gear.clock for gear in found.gears("ip")], [1.0])
        self.assertIn("full clock only", found.conclusion("ip"))

    def test_a_medium_that_was_not_written_to_is_not_measured(self):
        found = study(arguments())
        (row,) = [row for row in found.comparison() if row["medium"] == "rdma"]
        self.assertEqual(row["here"], "not measured")
        self.assertEqual(row["published_energy_saved_at_best_pct"], "15")
        self.assertFalse([name for name in row if name.startswith(("here_", "modelled_"))])

    def test_energy_is_modelled_as_far_as_power_is_published(self):
        curve, top = published.curve_of("m510-broadwell", "write")
        found = study(arguments(actuator="emulated", clocks=(0.8, 0.3)))
        _, slower, slowest = found.gears("local")
        expected = slower.time * curve.power(0.8 * top) / curve.power(top)
        self.assertAlmostEqual(found.modelled(slower)[0], expected)
        self.assertEqual(found.modelled(slowest), (None, None))

    def test_pictures_and_page_are_made_of_whatever_is_known(self):
        for chosen in (arguments(), arguments(actuator="emulated"), arguments(actuator="none")):
            found = study(chosen)
            page = found.page(found.figures()).decode()
            self.assertIn("remote, over RDMA: not measured", page)

    def test_media_and_clocks_that_there_are_not_are_refused_by_name(self):
        for text in ("disk=/a", "local", "local="):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, text):
                throttle._medium(text)
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "1.5"):
            options.clocks("1.5,1")
