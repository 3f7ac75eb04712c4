"""Tests what is made of the runs of `study writes`, with runs of which the truth is known."""

import argparse
import pathlib
import tempfile
import unittest

import samples
from diapause import records
from diapause.study import writes

MB = 1e6


def arguments(**more):
    return argparse.Namespace(**{
        "ranks": (1, 2), "repetitions": 2, "size": 100.0, "disk": None, "clocks": (0.5,),
        "actuator": "cpufreq", "machine": "m510-broadwell", "output": pathlib.Path("/out")} | more)


def version(number_of_bytes, **more):
    return {"bytes": number_of_bytes,
            "level": 4,
            "blocked_s": 0.1,
            "local_s": 0.1,
            "flush_s": 0.9,
            "local_j": 1.0,
            "flush_j": 3.0,
            "clock": None} | more


def study(chosen, of=lambda case: {}, kind="measured", **of_run):
    results = {}
    for case in writes.cases(chosen):
        cold = version(1, blocked_s=99.0, local_s=99.0)  # the first one does not count
        warm = version(case.ranks * case.size_mb * MB, **of(case))
        for i in range(chosen.repetitions):
            results[f"{case.key}-{i + 1}"] = {"seconds": 10.0 + i,
                                              "watts": {"total": 50.0} if kind else {},
                                              "kind": kind,
                                              "versions": [cold, warm, warm]} | of_run
    return writes.Study(chosen, results)


class CasesTest(unittest.TestCase):
    def test_a_rank_has_as_much_as_before_or_its_part_of_the_same(self):
        sizes = {case.key: case.size_mb for case in writes.cases(arguments())}
        self.assertEqual((sizes["weak-1-mpi-io"], sizes["weak-2-mpi-io"]), (100.0, 100.0))
        self.assertEqual((sizes["strong-1-mpi-io"], sizes["strong-2-mpi-io"]), (200.0, 100.0))

    def test_without_an_actuator_there_are_no_runs_at_other_clocks(self):
        self.assertFalse([case for case in writes.cases(arguments(actuator="none")) if case.clock])
        self.assertEqual([case.clock for case in writes.cases(arguments()) if case.clock],
                         [1.0, 0.5])


class LedgerTest(unittest.TestCase):
    def test_local_phase_and_flush_are_told_apart(self):
        slowed = {"actuator": "cpufreq", "asked": 0.5, "obtained": 0.6}
        lines = [samples.event("checkpoint", 1001.0, version=10, level_reached=4, bytes_total=1024,
                               blocked_s=0.5),
                 samples.energy(1010.0,
                                10.0, 100.0, [samples.phase("capture", 10, 0, 5.0),
                                              samples.phase("drain", 10, 0, None),
                                              samples.phase("global", 10, 4, 7.0, slowed=slowed),
                                              samples.phase("restore", 10, 0, 9.0)])]
        with tempfile.TemporaryDirectory() as folder:
            ledger = records.read_ledger(samples.write(pathlib.Path(folder) / "ledger.jsonl",
                                                       lines))
        self.assertEqual(writes.versions_of(ledger),
                         [{"bytes": 1024, "blocked_s": 0.5, "level": 4, "local_s": 2.0,
                           "flush_s": 1.0, "local_j": 5.0, "flush_j": 7.0,
                           "local_off": samples.off(3.0), "flush_off": samples.off(3.0),
                           "clock": 0.6}])


class StudyTest(unittest.TestCase):
    def test_the_first_checkpoint_of_a_run_does_not_count(self):
        cost = study(arguments()).cost("weak-2-async-memory")
        self.assertEqual((cost.bytes, cost.blocked_s, cost.energy.joules, cost.durable_s),
                         (200 * MB, 0.1, 4.0, 1.0))
        self.assertIsNone(cost.energy.uncertainty_j, "nothing tells it")

    def test_the_energy_of_a_checkpoint_has_its_bounds_everywhere(self):
        off = {"sampling_j": 0.1, "sensor_j": 0.2, "attribution_j": 0.3}
        found = study(arguments(), lambda case: {"local_off": off, "flush_off": off})
        self.assertEqual(found.cost("weak-2-async-memory").energy.parts_j, (0.2, 0.4, 0.6))
        row = found.rows()[-1]
        self.assertEqual([row[f"flush_{what}"] for what in (
            "j", "uncertainty_j", "sampling_j", "sensor_j", "attribution_j", "bound")],
            [3.0, 0.1 + 0.2 + 0.3, 0.1, 0.2, 0.3, "bound"])
        self.assertEqual(study(arguments()).rows()[-1]["flush_bound"], "no bound")
        page = found.page(found.figures()).decode()
        for text in ("3.0 J", "± 0.6 J", "samples are apart", "who is charged"):
            self.assertIn(text, page)
        self.assertIn("no bound", study(arguments()).page(found.figures()).decode())
        energy = found.comparison()[1]
        self.assertAlmostEqual(energy["here_off"], 1.4 / 0.6 - 1)  # 1.0 ± 0.4 J over the same

    def test_factors_are_of_the_largest_number_of_ranks_and_the_published_stand_apart(self):
        disk = {"async-disk": {"local_s": 0.15, "local_j": 2.0},
                "posix-file-per-rank": {"local_j": None, "flush_j": 12.0}}
        rows = study(arguments(), lambda case: disk.get(case.method, {})).comparison()
        self.assertEqual([round(row["here"], 6) for row in rows], [1.5, 0.5, 3.0])
        self.assertEqual([row["published"] for row in rows], [1.25, 0.80, 4.0])

    def test_what_no_checkpoint_reached_or_no_meter_told_is_not_known(self):
        lost = study(arguments(), lambda case: {"level": 1} if case.method == "async-disk"
                     else {"local_j": None, "flush_j": None}, "")
        self.assertIsNone(lost.cost("weak-2-async-disk"))
        self.assertEqual([row["here"] for row in lost.comparison()], [None, None, None])
        self.assertIn("Nothing tells energy here", lost.page(lost.figures()).decode())

    def test_a_clock_that_was_not_obtained_is_not_measured(self):
        (full, half) = study(arguments()).clock_rows()
        self.assertEqual((full["here_program_over_full"], half["here_program_over_full"]),
                         (1.0, None))
        self.assertIn("could not be changed here", study(arguments()).answer())

    def test_energy_of_a_slower_flush_counts_only_at_clocks_that_were_set(self):
        def slowed(case):
            return {"clock": 0.5, "flush_s": 1.8} if case.clock == 0.5 else {}

        half = study(arguments(), slowed).clock_rows()[-1]
        self.assertEqual((half["here_flush_over_full"], half["here_energy_over_full"]), (2.0, 1.0))
        for chosen, kind in ((arguments(actuator="emulated"), "measured"),
                             (arguments(), "modelled")):
            half = study(chosen, slowed, kind).clock_rows()[-1]
            self.assertEqual((half["here_flush_over_full"], half["here_energy_over_full"]),
                             (2.0, None))
        self.assertIn("differed by 10 %", study(arguments(), slowed).answer())
        self.assertIn("is not known: there was one",
                      study(arguments(repetitions=1), slowed).answer())
        self.assertIn("not measured. --actuator cpufreq sets them",
                      study(arguments(actuator="none")).answer())
