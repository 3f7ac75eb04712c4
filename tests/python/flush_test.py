"""The model of clocks during background flushes, against cases that can be told by hand."""

import unittest

from diapause.study import background

# A package of 20 W when idle, and 5 W more for each of 4 busy cores, half of which goes with the
# cube of the clock.
NODE = background.Node("made up", 4, 20.0, 20.0, 60.0, 0.25, 3.0, False, False)


class FlushTest(unittest.TestCase):
    def test_a_core_draws_its_dynamic_part_by_the_clock_and_the_rest_at_any(self):
        self.assertEqual(NODE.dynamic_w, 2.5)
        self.assertAlmostEqual(float(NODE.flush_w(1)), 5.0)
        self.assertAlmostEqual(float(NODE.flush_w(0.5)), 2.5 / 8 + 2.5)

    def test_a_flush_that_only_waits_takes_as_long_at_any_clock_and_saves_most_at_the_lowest(self):
        flush = background.Flush(10, 0.0, 60)
        rows = background.rows_of(NODE, flush)
        self.assertEqual({row["flush_s"] for row in rows}, {10.0})
        self.assertEqual(background.best(rows, "own_core_energy_pct")["ratio"], 0.5)

    def test_a_flush_that_only_computes_takes_as_much_longer_as_the_clock_is_lower(self):
        flush = background.Flush(10, 1.0, 60)
        self.assertAlmostEqual(float(flush.takes(0.5)), 20)
        # Energy at r: 10 / r (2.5 r^3 + 2.5), least where 2 r^3 = 1.
        best = background.best(background.rows_of(NODE, flush), "own_core_energy_pct")
        self.assertAlmostEqual(best["ratio"], 0.5 ** (1 / 3), delta=0.025)

    def test_none_is_slowed_beyond_the_next_checkpoint(self):
        flush = background.Flush(10, 1.0, 12.5)
        self.assertAlmostEqual(flush.least_ratio, 0.8)
        self.assertGreaterEqual(background.best(background.rows_of(NODE, flush),
                                                "own_core_energy_pct")["ratio"], 0.8)
        late = background.Flush(10, 0.5, 9)
        self.assertIsNone(late.least_ratio)
        self.assertIn("must not be slowed", background.answer(NODE, late))

    def test_on_the_programs_cores_all_of_the_node_pays_for_its_loss(self):
        flush = background.Flush(10, 0.0, 100)
        (full, slow) = background.rows_of(NODE, flush, ratios=(1.0, 0.8))
        self.assertAlmostEqual(full["shared_cores_program_pct"], 0)
        # The program has four fifths of its pace for 10 of 100 s.
        self.assertAlmostEqual(slow["shared_cores_program_pct"], 2.0)
        saved_j = full["flush_j"] - slow["flush_j"]
        whole_j = 100 * 100 + full["flush_j"]
        self.assertAlmostEqual(slow["shared_cores_energy_pct"], 100 * (2 * 100 - saved_j) / whole_j)
        self.assertIn("every lower clock costs energy", background.answer(NODE, flush))

    def test_a_program_that_only_waits_for_memory_loses_nothing_to_a_lower_clock(self):
        rows = background.rows_of(NODE, background.Flush(10, 0.5, 100, psi=0.0))
        self.assertEqual({row["shared_cores_program_pct"] for row in rows}, {0.0})

    def test_a_profile_is_read_by_its_parameters(self):
        parameters = {"domain.package.idle_w": 20, "domain.package.busy_w": 40,
                      "domain.dram.idle_w": 5, "domain.dram.busy_w": 3, "domain.other.idle_w": 30,
                      "domain.dram.j_per_gb": 1, "clock.base_ghz": 2.0, "phase.write.a": 0.05,
                      "phase.write.b": 3.0, "phase.write.c": 0.6}
        node = background.node_of("m", parameters, 8, True)
        self.assertEqual((node.watts, node.core_w, node.is_of_one_core), (98, 5, True))
        self.assertAlmostEqual(node.dynamic, 0.4)
        self.assertFalse(background.node_of("m", {"domain.package.busy_w": 40}, 8,
                                            False).is_of_one_core)


if __name__ == "__main__":
    unittest.main()
