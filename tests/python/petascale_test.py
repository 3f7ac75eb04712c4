"""The checkpoint-fill-time law, the model of published dumps, and what is extrapolated from
measurements of here."""

import unittest

from diapause.study import claims, petascale
from diapause.study.petascale import Dump, Machine, Weak


class LawTest(unittest.TestCase):
    def test_the_least_time_is_memory_over_storage_times_the_time_to_fill_a_device(self):
        self.assertAlmostEqual(petascale.fill_time_s(205e12, 10e15, 2e12, 100e6), 410.0)

    def test_a_machine_of_nodes_and_devices_is_one_of_their_capacity(self):
        machine = Machine.of_nodes(200e12, 50, 100, 2e12, 100e6)
        self.assertEqual(machine.storage_bytes, 10e15)
        self.assertAlmostEqual(machine.storage_bytes_per_s, 50 * 100 * 100e6)
        self.assertAlmostEqual(machine.device_fill_s, 20000.0)
        self.assertAlmostEqual(machine.least_s(used=0.25), machine.least_s() / 4)

    def test_each_published_machine_is_as_printed_or_has_the_reason_why_not(self):
        rows = petascale.law_rows()
        self.assertEqual(len(rows), 7)
        for row in rows:
            with self.subTest(row["system"]):
                if row["system"] in petascale.DIFFERENCES:
                    self.assertGreater(abs(row["difference_pct"]), 2)
                else:
                    # Printed ratios have one to three digits.
                    self.assertLess(abs(row["difference_pct"]), 2.5)

    def test_the_reasons_are_those_of_the_numbers(self):
        ssd = petascale.machines()["SSD-based 4-core node"]
        self.assertAlmostEqual(ssd.device_fill_s / 60, 133.3, 1)
        self.assertAlmostEqual(0.128e12 / ssd.device_bytes_per_s / 60, 4.27, 2)
        self.assertAlmostEqual(petascale.machines()["Theoretical Exascale"].device_fill_s / 60,
                               16.67, 2)

    def test_published_dumps_took_longer_than_the_law(self):
        rows = petascale.beyond_law()
        self.assertEqual(len(rows), 11)
        largest = next(row for row in rows if row["processes"] == petascale.LARGEST)
        self.assertAlmostEqual(largest["law_s"], 76.0, 6)
        self.assertAlmostEqual(largest["times_the_law"], 652.8 / 76, 6)
        self.assertGreater(min(row["times_the_law"] for row in rows), 7)
        self.assertLess(max(row["times_the_law"] for row in rows), 17.5)


def dumps_of(costs, cases):
    return [Dump("x", processes, size, costs.checkpoint_s(processes, size),
                 costs.restart_s(processes, size), "")
            for processes, size in cases]


class ModelTest(unittest.TestCase):
    def test_constants_come_back_from_dumps_made_of_them(self):
        made = petascale.Costs(5.0, 0.002, 2e-11, 1e-16, 6.0, 1e-6, 1e-11)
        cases = [(1024, 1e12), (4096, 1e12), (4096, 9e12), (16384, 5e12), (16384, 30e12),
                 (2048, 8e12), (32768, 20e12)]
        found = petascale.fitted(dumps_of(made, cases))
        for processes, size in ((8192, 3e12), (32752, 38e12)):
            self.assertAlmostEqual(
                found.checkpoint_s(processes, size) / made.checkpoint_s(processes, size), 1, 6)
            self.assertAlmostEqual(found.restart_s(processes,
                                                   size) / made.restart_s(processes, size), 1, 6)
        self.assertLess(abs(petascale.errors(found, dumps_of(made, cases))).max(), 1e-4)

    def test_no_cost_is_below_nothing(self):
        self.assertTrue((petascale.least_squares([(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)],
                                                 [3.0, 2.0, 1.0]) >= 0).all())

    def test_a_negative_time_does_not_outweigh_the_others(self):
        (mean,) = petascale.least_squares([(1.0,), (1.0,), (1.0,), (1.0,)], [1.0, 1.0, 1.0, -0.001],
                                          least_s=0.1)
        self.assertLess(mean, 0.1)  # a hundred times the weight of the others
        (mean,) = petascale.least_squares([(1.0,), (1.0,), (1.0,), (1.0,)], [1.0, 1.0, 1.0, -0.001],
                                          least_s=10.0)
        self.assertAlmostEqual(mean, 0.75, 3)

    def test_no_row_is_fitted_on_and_tested(self):
        for what, known, unknown in petascale.splits():
            with self.subTest(what):
                self.assertFalse(set(known) & set(unknown))
                self.assertGreaterEqual(min(len(known), len(unknown)), 4)

    def test_a_tested_row_does_not_change_its_prediction(self):
        _, known, unknown = petascale.splits()[0]
        before = petascale.fitted(known)
        other = [Dump(one.program, one.processes, one.size_bytes, 10 * one.checkpoint_s,
                      one.restart_s, "") for one in unknown]
        self.assertEqual(petascale.fitted(known), before)
        self.assertAlmostEqual(petascale.errors(before, other)[0, 0],
                               (100 + petascale.errors(before, unknown)[0, 0]) / 10 - 100, 6)

    def test_larger_runs_are_nearer_by_the_model_than_by_the_median_rate(self):
        larger = petascale.tested()[0]
        self.assertLess(larger["checkpoint_rms_pct"], larger["rate_checkpoint_rms_pct"])
        self.assertLess(larger["restart_rms_pct"], larger["rate_restart_rms_pct"])

    def test_the_median_rate_of_equal_dumps_has_no_error(self):
        same = [Dump("x", 10, 1e9, 2.0, 4.0, ""), Dump("x", 20, 2e9, 4.0, 8.0, "")]
        self.assertEqual(petascale.rate_errors(same, same).tolist(), [[0, 0], [0, 0]])

    def test_sizes_are_those_of_all_images(self):
        self.assertEqual(petascale.dumps("LU.E")[0].size_bytes, 1024 * 428e6)
        self.assertEqual(petascale.dumps("HPCG")[-1].size_bytes, 38e12)

    def test_launches_and_overheads_are_predicted_from_the_other_rows(self):
        linear, square = petascale.launch_costs([(10, 10 * 2 + 100 * 3), (20, 20 * 2 + 400 * 3),
                                                 (40, 40 * 2 + 1600 * 3)])
        self.assertAlmostEqual(linear, 2, 6)
        self.assertAlmostEqual(square, 3, 6)
        self.assertEqual(len(petascale.launch_errors()), len(petascale.launches()))
        self.assertAlmostEqual(petascale.overhead_errors()[3], (0.8 + 0.5 + 2.2) / 3 - 0.1)


def weak(nodes, ranks, rank_bytes, byte_s=1e-9):
    processes = nodes * ranks
    size_bytes = processes * rank_bytes
    local_s = 0.2 * nodes + 0.01 * processes + byte_s * size_bytes
    return Weak(nodes, ranks, rank_bytes / 1e6, size_bytes, 0.1 * nodes + 0.02 * processes,
                0.01 * nodes + 0.001 * processes + byte_s / 100 * size_bytes, local_s,
                local_s + 0.3 + 4e-9 * size_bytes,
                0.5 * nodes + 0.02 * processes + 2e-9 * size_bytes)


ROWS = [weak(nodes, ranks, size) for nodes in (1, 2, 4) for ranks in (1, 2, 4)
        for size in (64e6, 256e6)]


class ExtrapolationTest(unittest.TestCase):
    def test_constants_come_back_from_measurements_made_of_them(self):
        costs = petascale.own_costs(ROWS)
        self.assertAlmostEqual(costs.launch_s(1, 16), 0.42, 4)
        self.assertAlmostEqual(costs.local_s(1, 16, 2e10), 0.2 + 0.16 + 20, 4)
        self.assertAlmostEqual(costs.global_s(1, 16, 2e10, 1e12), 20.36 + 0.3 + 4000, 1)
        self.assertAlmostEqual(costs.restart_s(1, 16, 1e12), 0.5 + 0.32 + 2000, 1)
        self.assertAlmostEqual(costs.stop_s(1, 16, 0.0), 0.026, 4)
        for values in petascale.own_errors(ROWS).values():
            self.assertLess(petascale.rms(values), 1e-3)

    def test_another_storage_stands_in_for_that_of_here(self):
        costs = petascale.own_costs(ROWS)
        node = (1, 16)
        self.assertAlmostEqual(costs.global_s(*node, 0.0, 1e12, byte_s=1e-12)
                               - costs.global_s(*node, 0.0, 0.0), 1.0, 4)
        self.assertAlmostEqual(costs.restart_s(*node, 1e12, byte_s=1e-12)
                               - costs.restart_s(*node, 0.0), 1.0, 4)

    def test_deeper_levels_take_longer_and_the_law_is_the_best_storage(self):
        rows = {row["what"]: row["extrapolated_s"]
                for row in petascale.extrapolated(petascale.own_costs(ROWS))}
        self.assertLess(rows["level 1"], rows["level 2"])
        self.assertAlmostEqual(rows["level 2"] - rows["level 1"], 38e12 / 2047 / 6.82e9, 1)
        self.assertLess(rows["level 4, storage by the law"],
                        rows["level 4, storage as the published dumps used it"])
        self.assertGreater(rows["level 4, storage by the law"], 76.0)

    def test_what_the_measurements_do_not_tell_is_not_extrapolated(self):
        costs = petascale.own_costs([weak(row.nodes, row.ranks, 1e6 * row.rank_mb, byte_s=0.0)
                                     for row in ROWS])
        costs = petascale.OwnCosts(costs.launch, (*costs.stop[:2], 0.0), (*costs.local[:2], 0.0),
                                   costs.more_of_global, costs.restart)
        for row in petascale.extrapolated(costs):
            with self.subTest(row["what"]):
                is_known = row["what"] == "launch" or row["what"].startswith("restart")
                self.assertEqual(row["extrapolated_s"] is not None, is_known)
                self.assertEqual(row["rests_on"] != petascale.UNKNOWN, is_known)

    def test_a_launch_that_the_fit_finds_free_is_not_known(self):
        costs = petascale.own_costs(ROWS)
        free = petascale.OwnCosts((0.0, 0.0), costs.stop, costs.local, costs.more_of_global,
                                  costs.restart)
        (launch,) = [row for row in petascale.extrapolated(free) if row["what"] == "launch"]
        self.assertEqual((launch["extrapolated_s"], launch["rests_on"]), (None, petascale.UNKNOWN))

    def test_no_row_of_it_is_called_measured_where_its_storage_is_assumed(self):
        for row in petascale.extrapolated(petascale.own_costs(ROWS)):
            self.assertEqual("level 4" in row["what"] or row["what"].startswith("restart"),
                             "assumed storage" in row["rests_on"])


class ClaimsTest(unittest.TestCase):
    def test_nothing_published_stands_in_a_column_called_ours(self):
        rows = claims.rows({})
        self.assertEqual({row["table"] for row in rows}, set(claims.TABLES))
        self.assertEqual([row for row in rows if row["ours"] is not None], [])
        self.assertTrue(all(row["ours_of"].startswith("not measured") for row in rows))
        self.assertEqual(len(rows), 2 * (4 + 2 + 5 + 2 + 12) + 4)

    def test_a_benchmark_is_the_same_in_any_class_but_not_with_another_mpi(self):
        one = {"processes": 4, "mpi": "Open MPI", "checkpoint_s": 1.5, "restart_s": 2.5,
               "overhead_pct": 0.3}
        rows = claims.rows({"lu.A": one})
        ours = {row["program"] for row in rows if row["ours"] is not None}
        self.assertEqual(ours, {"LU.E", "LU.E, Open MPI"})
        self.assertTrue(all("not the same machine" in row["ours_of"]
                            for row in rows if row["ours"] is not None))
        self.assertEqual({row["ours"] for row in rows if row["ours"] is not None}, {1.5, 2.5, 0.3})
