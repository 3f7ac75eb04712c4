"""What is made of the runs of `study transparent`, and the checkpoint-fill-time law."""

import argparse
import unittest

from diapause.study import transparent


def arguments(**more):
    return argparse.Namespace(**{"ranks": (1, 2), "size": (64.0,), "repetitions": 3, "seconds": 20.0} | more)


def study(chosen, refused=""):
    results = {"possible": {"refused": refused}, "rate": {"bytes_per_s": 5e8}}
    for case in transparent._cases(chosen):
        for i in range(chosen.repetitions):
            results[transparent._key(case, i + 1)] = {} if refused else {
                "native_once_s": 1.0, "native_s": 20.0 + i, "launched_once_s": 1.5, "launched_s": 21.0 + i, "checkpoint_s": 4.0 + i,
                "stood_still_s": 0.5, "image_bytes": 1e9, "restart_s": 3.0}
    return transparent.Study(chosen, results)


class LawTest(unittest.TestCase):
    def test_the_least_time_is_memory_over_storage_times_the_time_to_fill_a_device(self):
        self.assertAlmostEqual(transparent.fill_time_s(205e12, 10e15, 2e12, 100e6), 410.0)

    def test_the_law_gives_what_is_printed_where_the_paper_agrees_with_itself(self):
        for row in study(arguments()).law_rows():
            if row["system"].startswith("SSD"):
                self.assertAlmostEqual(row["law_min"], 16.67, 2)  # printed 4.3: of another disk
            else:
                self.assertLess(abs(row["law_min"] / row["published_ideal_min"] - 1), 0.05, row)

    def test_all_published_tables_can_be_read(self):
        for name in transparent.PUBLISHED:
            self.assertGreaterEqual(len(transparent.published(name)), 2, name)
        self.assertEqual(transparent._bytes_of(transparent.published("HPCG")[-1]), 38e12)
        self.assertEqual(transparent._bytes_of(transparent.published("LU.E")[0]), 1024 * 428e6)


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
