"""Tests what is made of the runs of `study levels`, with runs of which the truth is known."""

import argparse
import unittest

from diapause.study import levels, multilevel


def arguments(**more):
    return argparse.Namespace(**{"application": ("heat", "stream"), "configuration": None,
                                 "repetitions": 2, "ranks": 4, "ranks_per_node": None, "size": 32.0,
                                 "seconds": 1076.0, "minute_s": None, "launch": "{ranks}",
                                 "command": levels.programs.pathlib.Path("/x")} | more)


def result(seconds, watts, checkpoints=(), kind="measured", **more):
    means = {} if watts is None else {"total": watts, "node": watts, "dram": watts / 10}
    return {"seconds": seconds, "watts": means, "total": "node", "kind": kind if means else "",
            "begin_unix_s": 0.0,
            "curve": [[0.1, watts], [0.2, watts]] if means else [],
            "checkpoints": list(checkpoints)} | more


def study(chosen, of):
    """`of(name, configuration, repetition)` is a result."""
    results = {}
    for name in chosen.application:
        for configuration in levels._configurations(chosen, name):
            for i in range(chosen.repetitions):
                results[levels._key(name, configuration, i)] = of(name, configuration, i)
    return levels.Study(chosen, results)


class PublishedTest(unittest.TestCase):
    def test_a_minute_is_such_that_a_run_has_as_many_as_on_the_cray(self):
        self.assertAlmostEqual(levels._application(arguments(seconds=1076.0), "heat").minute_s,
                               60.0)
        self.assertAlmostEqual(levels._application(arguments(seconds=323.0), "stream").minute_s,
                               60.0)

    def test_every_published_configuration_is_run_once(self):
        heat = levels._configurations(arguments(), "heat")
        self.assertEqual(len(heat), len(set(heat)))
        for one in ("Original", "ckp(3,5,7,11)", "ckp(1,2,3,4)/e1", "ckp(3,5,7,11)/e31"):
            self.assertIn(one, heat)
        self.assertFalse([one for one in levels._configurations(arguments(), "stream")
                          if "/e" in one])
        keys = [levels._key("heat", one, 0) for one in heat]
        self.assertEqual(len(keys), len(set(keys)))

    def test_every_table_has_one_baseline_on_all_machines(self):
        for name, kind in multilevel.TABLES:
            for machine in multilevel.MACHINES:
                rows = multilevel.table(name, kind, machine)
                self.assertEqual([row.configuration for row in rows if row.runtime_s is not None],
                                 [multilevel.baseline(name, kind)], (name, kind, machine))


class StudyTest(unittest.TestCase):
    def of(self, name, configuration, i):
        if configuration == multilevel.ORIGINAL:
            return result(100.0 + 4 * i, 200.0)
        return result(110.0 - 5 * i, 210.0, [[30.0, 1], [60.0, 4]])  # 105 s is the fastest

    def test_the_fastest_run_counts_in_percent_of_the_fastest_one_without_checkpoints(self):
        change = study(arguments(), self.of).change("heat", "ckp(3,5,7,11)", multilevel.ORIGINAL)
        self.assertAlmostEqual(change.runtime, 5.0)
        self.assertAlmostEqual(change.power, 5.0)
        self.assertAlmostEqual(change.energy, 10.25)

    def test_joules_and_their_changes_have_bounds_or_say_that_they_have_none(self):
        off = {"total": {"sampling_j": 0.01, "sensor_j": 0.05, "attribution_j": 0.0}}
        chosen = arguments(application=("stream",))
        found = study(chosen, lambda *of: self.of(*of) | {"off": off})
        row = found.rows()[0]
        self.assertEqual([row[f"energy_{what}"] for what in (
            "j", "uncertainty_j", "sampling_j", "sensor_j", "attribution_j", "bound")],
            [20000.0, 1200.0, 200.0, 1000.0, 0.0, "bound"])
        change = found.change("stream", "ckp(3,5,7,11)", multilevel.ORIGINAL)
        self.assertAlmostEqual(change.off, 100 * 1.1025 * (1.01 / 0.99 - 1))
        page = found.page(found.figures()).decode()
        self.assertIn("± 1,200 J", page)
        self.assertIn("+10.3 ± 2.2 %", page)
        unknown = study(chosen, self.of)
        self.assertEqual(unknown.rows()[0]["energy_bound"], "no bound")
        self.assertIn(" % (no bound)", unknown.page(unknown.figures()).decode())

    def test_runs_without_checkpoints_tell_the_noise(self):
        self.assertAlmostEqual(study(arguments(), self.of).noise("heat"), 4.0)

    def test_what_is_published_stands_in_no_column_of_here(self):
        rows = study(arguments(), self.of).comparison()
        of_cray = next(row for row in rows
                       if (row["application"], row["configuration"]) == ("heat", "ckp(1,2,3,4)"))
        self.assertAlmostEqual(of_cray["here_energy_pct"], 10.25)
        self.assertEqual(of_cray["published_xc40_energy_pct"], 1.08)
        self.assertEqual({name.partition("_")[0] for name in of_cray},
                         {"application", "table", "configuration", "baseline", "here", "published"})

    def test_a_configuration_of_ones_own_is_compared_and_nothing_is_published_of_it(self):
        own = study(arguments(application=("heat",), configuration=["ckp(2,2,2,2)"]), self.of)
        (row,) = [row for row in own.comparison() if row["configuration"] == "ckp(2,2,2,2)"]
        self.assertAlmostEqual(row["here_runtime_pct"], 5.0)
        self.assertIsNone(row["published_xc40_runtime_pct"])

    def test_without_a_meter_power_and_energy_are_unknown_and_the_page_says_so(self):
        unmetered = study(arguments(),
                          lambda *of: {**self.of(*of), "watts": {}, "curve": [], "kind": ""})
        change = unmetered.change("heat", "ckp(3,5,7,11)", multilevel.ORIGINAL)
        self.assertEqual((change.power, change.energy), (None, None))
        figures = unmetered.figures()
        self.assertNotIn("heat-power", figures)
        self.assertIn("No meter tells the power", unmetered.page(figures).decode())

    def test_power_over_time_has_a_line_for_each_component(self):
        def of(*where):
            return {**self.of(*where), "parts": {"package": [[0.1, 60], [0.2, 70]],
                                                 "dram": [[0.1, 8], [0.2, 9]], "disk": []}}

        (axes,) = study(arguments(), of).figures()["heat-power"].axes
        labels = [line.get_label() for line in axes.lines]
        self.assertTrue({"package", "dram"} < set(labels), labels)
        self.assertNotIn("disk", labels, "nothing is known of it")

    def test_pictures_and_page_have_every_table(self):
        whole = study(arguments(), self.of)
        figures = whole.figures()
        self.assertEqual(set(figures), {"heat-runs", "heat-flips", "heat-bits", "stream-runs",
                                        "heat-power", "stream-power"})
        page = whole.page(figures).decode()
        for name in ("heat-runs", "heat-flips", "heat-bits", "stream-runs"):
            self.assertIn(f'<table id="{name}">', page)
