"""Tests what is made of the runs of `study transparent`, and the checkpoint-fill-time law."""

import argparse
import unittest

from diapause.study import launched, programs, transparent


def arguments(**more):
    return argparse.Namespace(**{"ranks": (1, 2), "size": (64.0,), "repetitions": 3,
                                 "seconds": 20.0, "nodes": (1, 2), "program": None} | more)


def study(chosen, refused=""):
    results = {"possible": {"refused": refused}, "rate": {"bytes_per_s": 5e8}}
    for case in transparent._cases(chosen):
        for i in range(chosen.repetitions):
            results[transparent._key(case, i + 1)] = {} if refused else {
                "native_once_s": 1.0, "native_s": 20.0 + i, "launched_once_s": 1.5,
                "launched_s": 21.0 + i, "checkpoint_s": 4.0 + i, "stood_still_s": 0.5,
                "image_bytes": 1e9, "restart_s": 3.0}
    for nodes, ranks, size_mb in transparent._weak_cases(chosen):
        for i in range(chosen.repetitions):
            image = 1e6 * size_mb * nodes * ranks
            results[transparent._weak_key((nodes, ranks, size_mb), i + 1)] = {} if refused else {
                "native_once_s": 1.0, "launched_once_s": 1.5 + i, "image_bytes": image,
                "stop_s": 0.01 * ranks, "local_s": 0.1 + 0.001 * ranks * size_mb,
                "global_s": 0.2 + 0.001 * ranks * size_mb + image / 1e9,
                "restart_s": 0.5 + image / 2e9, "restart_level": 4}
    for name, _ in chosen.program or ():
        for i in range(chosen.repetitions):
            results[transparent._program_key(name, i + 1)] = {} if refused else {
                "processes": 2, "mpi": "Open MPI", "native_s": 10.0 + i, "launched_s": 10.5 + i,
                "checkpoint_s": 3.0 + i, "restart_s": 2.0, "image_bytes": 1e8}
    return transparent.Study(chosen, results)


class PublishedTest(unittest.TestCase):
    def test_all_published_tables_can_be_read(self):
        for name in transparent.PUBLISHED:
            self.assertGreaterEqual(len(transparent.published(name)), 2, name)


class WeakScalingTest(unittest.TestCase):
    def test_the_medians_of_all_repetitions_count(self):
        row = study(arguments()).weak()[-1]
        self.assertEqual((row.nodes, row.ranks, row.size_bytes), (2, 2, 2.56e8))
        self.assertAlmostEqual(row.launch_s, 1.5)

    def test_a_case_of_one_kind_is_not_extrapolated(self):
        self.assertEqual(study(arguments(nodes=(1,))).extrapolated(), [])
        self.assertEqual(study(arguments(ranks=(2,), size=(64.0, 256.0))).extrapolated(), [])
        self.assertEqual(study(arguments()).extrapolated(), [], "one size")
        self.assertGreater(len(study(arguments(size=(64.0, 256.0))).extrapolated()), 5)

    def test_the_page_tells_what_is_assumed(self):
        found = study(arguments(size=(64.0, 256.0)))
        page = found.page(found.figures()).decode()
        self.assertIn('id="weak"', page)
        self.assertIn('id="extrapolated"', page)
        self.assertIn("nominal rate of FDR InfiniBand", page)


class AgainTest(unittest.TestCase):
    def test_a_port_that_another_program_has_taken_is_tried_again_and_nothing_else(self):
        tries = []

        def fail(why, times):
            tries.append(why)
            if len(tries) <= times:
                raise programs.RunError(why)
            return len(tries)

        self.assertEqual(launched.again(fail, f"port 1027: {launched.PORT_IN_USE}", 2), 3)
        tries.clear()
        with self.assertRaises(programs.RunError):
            launched.again(fail, "no memory", 1)
        self.assertEqual(len(tries), 1)
        tries.clear()
        with self.assertRaises(programs.RunError):
            launched.again(fail, launched.PORT_IN_USE, 99)
        self.assertEqual(len(tries), launched.ATTEMPTS)


class ProgramTest(unittest.TestCase):
    def test_a_program_stands_beside_the_published_numbers_of_its_benchmark(self):
        rows = study(arguments(program=[("LU.A", "x")])).claim_rows()
        (overhead,) = [row for row in rows if row["table"] == "V" and row["processes"] == 4096]
        self.assertEqual(overhead["published"], 0.1)
        self.assertAlmostEqual(overhead["ours"], 5.0)
        self.assertIn("LU.A, 2 processes; not the same machine", overhead["ours_of"])
        (checkpoint,) = [row for row in rows if row["program"] == "LU.E, Open MPI"
                         and row["quantity"] == "checkpoint, s"]
        self.assertEqual(checkpoint["ours"], 4.0)

    def test_options_name_a_program_and_its_command(self):
        self.assertEqual(transparent._program("LU.A=mpirun -n {ranks} lu"),
                         ("LU.A", "mpirun -n {ranks} lu"))
        for text in ("LU.A", "LU.A=", "../x=lu", "=lu"):
            with self.subTest(text), self.assertRaises(argparse.ArgumentTypeError):
                transparent._program(text)

    def test_a_launcher_that_is_not_there_has_no_name(self):
        self.assertEqual(transparent._mpi_of("/nonexistent/mpirun"), "")


class StudyTest(unittest.TestCase):
    def test_overhead_is_that_of_the_fastest_runs_and_times_are_medians(self):
        found = study(arguments())
        self.assertAlmostEqual(found.overhead((2, 64.0)), 5.0)
        self.assertEqual(found.median((2, 64.0), "checkpoint_s"), 5.0)
        self.assertEqual(found.least_s((2, 64.0)), 2.0)
        self.assertEqual(len(found.rows()), 6)

    def test_where_nothing_can_be_launched_the_page_says_why_and_has_what_is_published(self):
        found = study(arguments(), "launch: no user namespaces here")
        page = found.page(found.figures()).decode()
        self.assertIn("no user namespaces here", page)
        self.assertNotIn('id="here"', page)
        self.assertIn("2539.05", page)
        self.assertEqual(found.rows(), [])

    def test_the_page_has_what_was_measured_and_every_published_table(self):
        found = study(arguments())
        page = found.page(found.figures()).decode()
        self.assertIn('id="here"', page)
        self.assertEqual(page.count('id="published-'), len(transparent.PUBLISHED))
