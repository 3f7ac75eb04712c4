"""Tests what is made of the runs of `study messages`: Equation 1 takes noise for overhead, and the
signed mean does not."""

import argparse
import random
import unittest

from diapause.study import messages, multilevel

LARGEST = 1 << 22


def arguments(**more):
    return argparse.Namespace(**{"ranks": (2,), "repetitions": 12, "largest": LARGEST,
                                 "seconds": 0.5, "minute_s": None} | more)


def study(chosen, factor, noise=0.0):
    """Each arm takes `factor` as long as the first, times what chance adds."""
    chance = random.Random(1)
    results = {}
    for ranks in chosen.ranks:
        for i in range(chosen.repetitions):
            for arm in messages.ARMS:
                slower = factor if arm == "checkpoints" else 1.0
                times = {operation: {
                    str(size): (1 + size / 1e3) * slower * (1 + noise * chance.uniform(-1, 1))
                    for size in messages.sizes(chosen.largest)}
                         for operation in messages.OPERATIONS}
                checkpoints = [[1.0, 1]] if arm == "checkpoints" else []
                results[messages._key(ranks, arm, i)] = {"times": times, "checkpoints": checkpoints}
    return messages.Study(chosen, results)


class MessagesTest(unittest.TestCase):
    def test_sizes_go_from_a_byte_to_four_megabytes(self):
        found = messages.sizes(LARGEST)
        self.assertEqual((found[0], found[-1], len(found)), (1, 4194304, 23))

    def test_without_noise_both_means_say_what_checkpoints_cost(self):
        slow = study(arguments(), 1.25)
        for operation in messages.OPERATIONS:
            lost = 20.0 if operation == "Sendrecv" else 25.0  # less bandwidth, or more time
            self.assertAlmostEqual(slow.by_equation_1(2, "checkpoints", operation).value, lost)
            self.assertAlmostEqual(slow.signed(2, "checkpoints", operation).value, lost)
            self.assertAlmostEqual(slow.by_equation_1(2, "second", operation).value, 0.0)

    def test_equation_1_takes_noise_for_overhead_and_the_signed_mean_does_not(self):
        noisy = study(arguments(repetitions=40), 1.0, noise=0.1)
        for operation in messages.OPERATIONS:
            self.assertGreater(noisy.by_equation_1(2, "checkpoints", operation).value, 5.0)
            self.assertGreater(noisy.by_equation_1(2, "second", operation).value, 5.0)
            self.assertLess(abs(noisy.signed(2, "checkpoints", operation).value), 2.0)

    def test_a_faster_run_is_overhead_by_equation_1_and_a_gain_by_the_signed_mean(self):
        fast = study(arguments(), 0.8)
        self.assertAlmostEqual(fast.by_equation_1(2, "checkpoints", "Gather").value, 20.0)
        self.assertAlmostEqual(fast.signed(2, "checkpoints", "Gather").value, -20.0)
        self.assertAlmostEqual(fast.signed(2, "checkpoints", "Sendrecv").value, -25.0)

    def test_the_error_is_half_of_the_confidence_interval(self):
        mean = messages.Mean.of([1.0, 3.0])
        self.assertAlmostEqual(mean.value, 2.0)
        self.assertAlmostEqual(mean.error, 12.71)
        self.assertFalse(mean.tells)
        self.assertTrue(messages.Mean.of([2.0, 2.1, 1.9, 2.0]).tells)
        self.assertEqual(messages.Mean.of([5.0]), messages.Mean(5.0, None))

    def test_what_is_published_stands_beside_the_same_number_of_ranks_and_in_no_column_of_here(
            self):
        rows = study(arguments(ranks=(2, 3)), 1.1).comparison()
        self.assertEqual([row["published_xc40_equation_1_pct"]
                          for row in rows if row["ranks"] == 2], [7.39, 5.80, 1.39, 1.87])
        self.assertEqual({row["published_bgq_equation_1_pct"] for row in rows if row["ranks"] == 3},
                         {None})
        self.assertEqual({name.partition("_")[0] for name in rows[0]},
                         {"ranks", "operation", "here", "published"})

    def test_the_page_names_the_bias_and_has_all_published_numbers(self):
        noisy = study(arguments(), 1.0, noise=0.1)
        page = noisy.page(noisy.figures()).decode()
        self.assertIn("between two runs without any checkpoint", page)
        for machine in multilevel.MESSAGE_TABLES:
            self.assertGreaterEqual(page.count(f">{multilevel.MACHINES[machine]}<"), 5)
