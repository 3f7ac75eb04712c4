#!/usr/bin/env python3
"""Studies that start programs: small ones, with a launcher that all machines have."""

import csv

import support
from support import CommandTest


class StudiesTest(CommandTest):
    def study(self, name, *options, status=0):
        """Standard error, on which the progress is."""
        launch = [f"--launch={support.MPIEXEC} -n {{ranks}}"] if name != "throttle" else []
        return self.diapause("study", name, "-o", "out", *launch, *options, status=status,
                             limit_s=500,
                             DIAPAUSE_MEMORY_PATH=self.scratch / "memory")

    def table(self, name):
        with open(self.scratch / "out" / f"{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    LEVELS = ("--ranks=2", "--ranks-per-node=1", "--size=0.1", "--seconds=0.5", "--repetitions=1")

    def test_levels_are_run_go_on_and_stand_beside_the_published_ones(self):
        options = (*self.LEVELS, "--configuration=ckp(1,2,3,4)")
        plan = self.study("levels", *options, "--dry-run")[0]
        self.assertIn("heat ckp(1,2,3,4), 1", plan)
        self.assertIn("6 of 6 runs to do, about ", plan)
        self.assertFalse((self.scratch / "out").exists())

        self.study("levels", *options)
        self.assertEqual(list((self.scratch / "memory").glob("*")), [], "a job was not cleaned up")
        rows = {(row["application"], row["configuration"]): row
                for row in self.table("measurements")}
        self.assertEqual(list(rows), [(name, configuration) for name in ("heat", "stream")
                                      for configuration in ("Original", "ckp(1,2,3,4)")])
        for (_, configuration), row in rows.items():
            taken = sum(int(row[f"checkpoints_of_level_{level}"]) for level in (1, 2, 3, 4))
            if configuration == "Original":
                # How many checkpoints there are in so short a run depends on the machine.
                self.assertEqual(taken, 0)
            self.assertGreater(float(row["runtime_s"]), 0)
            self.assertTrue(row["host"] and row["cores"])
        compared = [row for row in self.table("comparison")
                    if row["configuration"] == "ckp(1,2,3,4)"]
        self.assertEqual([(row["application"], row["published_xc40_energy_pct"])
                          for row in compared],
                         [("heat", "1.08"), ("stream", "3.53")])
        self.assertIn("Published: 64 ranks a node", (self.scratch / "out/study.html").read_text())

        (self.scratch / "out/runs/stream-original-1.json").unlink()
        before = self.table("measurements")
        progress = self.study("levels", *options)[1]
        begun = [line.rpartition(": ")[2] for line in progress.splitlines() if line.startswith("[")]
        self.assertEqual(begun, ["stream Original, 1"])
        changed = [new["configuration"]
                   for old, new in zip(before, self.table("measurements")) if old != new]
        self.assertEqual(changed, ["Original"])
        self.assertIn("size was 0.1 and is 0.2",
                      self.study("levels", *options, "--size=0.2", status=3)[1])

    def test_messages_are_measured_and_equation_1_shows_its_bias(self):
        self.study("messages", "--ranks=2", "--ranks-per-node=1", "--largest=64", "--seconds=0.002",
                   "--repetitions=1")
        rows = self.table("measurements")
        self.assertEqual(len(rows), 3 * 4 * 7)
        self.assertTrue(all(float(row["time_us"]) > 0 for row in rows))
        compared = self.table("comparison")
        self.assertEqual([row["operation"] for row in compared],
                         ["Sendrecv", "Reduce", "Allreduce", "Gather"])
        for row in compared:
            self.assertGreater(float(row["here_two_without_equation_1_pct"]), 0)
        self.assertEqual(compared[0]["published_xc40_equation_1_pct"], "7.39")

    def test_writes_are_timed_and_the_planner_says_where_the_time_goes(self):
        self.study("throttle", "--size=1", "--seconds=0.01", "--repetitions=1",
                   f"--medium=local={self.scratch}")
        (row,) = self.table("measurements")
        self.assertEqual((row["medium"], row["bytes"], row["clock_by"], row["clock_asked"]),
                         ("local", "1000000", "none", "1"))
        self.assertGreater(float(row["seconds"]), 0)
        self.assertEqual([row["here"] for row in self.table("comparison")],
                         ["full clock only", "not measured", "not measured"])
        for row in self.table("figure-1"):
            self.assertAlmostEqual(sum(
                float(row[part]) for part in ("work", "checkpoints", "rework", "restarts")), 1, 6)
        self.assertIn("no-such", self.study("throttle", "--medium=ip=no-such", status=3)[1])

    def test_every_way_of_writing_brings_every_checkpoint_to_the_global_directory(self):
        self.study("writes", "--ranks=1", "--size=0.5", "--repetitions=1")
        rows = self.table("measurements")
        self.assertEqual([(row["method"], row["checkpoint"], row["level"], row["bytes"])
                          for row in rows],
                         [(method, str(number), "4", "499992") for method in
                          ("posix-file-per-rank", "posix-aggregated", "mpi-io", "async-memory",
                           "async-disk") for number in range(1, 6)])
        self.assertEqual([row["published"] for row in self.table("comparison")],
                         ["1.25", "0.8", "4.0"])
        self.assertFalse((self.scratch / "out/diapause-first-tier").exists())

    def test_clocks_of_flushes_are_answered_for_each_profile_by_a_model(self):
        self.study("flush", "--interval-s=12")
        rows = self.table("model")
        self.assertEqual(len({row["machine"] for row in rows}), 9)
        for row in rows:
            if row["ratio"] == "1.0":
                self.assertEqual((float(row["own_core_energy_pct"]),
                                  float(row["shared_cores_energy_pct"])), (0, 0))
            else:
                self.assertGreater(float(row["shared_cores_energy_pct"]), 0, row)
            self.assertEqual(row["in_time"], str(float(row["flush_s"]) <= 12))
        page = (self.scratch / "out/study.html").read_text()
        self.assertIn("every lower clock costs energy", page)
        self.assertIn("not measured", page)

    def test_a_job_that_is_killed_again_and_again_is_played_with_the_same_failures(self):
        self.study("failures", "--ranks=2", "--size=0.1", "--seconds=2", "--interval-s=0.2",
                   "--repetitions=1", "--mtbf=process=2", "--mtbf=node=6")
        (row,) = self.table("measurements")
        self.assertEqual(int(row["measured_restarts"]),
                         int(row["failures_of_processes"]) + int(row["failures_of_nodes"]))
        self.assertGreater(int(row["measured_restarts"]), 0)
        self.assertGreater(float(row["predicted_restarts"]), 0)
        self.assertGreater(float(row["predicted_s"]), 2)  # an iteration takes no less than it says
        costs = {row["what"]: float(row["seconds"]) for row in self.table("costs")}
        self.assertGreater(costs["restart after a node failed"], 0)
        self.assertEqual(list((self.scratch / "memory").glob("*")), [], "a job was not cleaned up")
        self.assertIn("are predicted for the same failures",
                      (self.scratch / "out/study.html").read_text())

    def test_a_program_that_knows_nothing_of_it_is_launched_stopped_and_restarted(self):
        self.study("transparent", "--ranks=1", "--size=1", "--nodes=2", "--seconds=0.3",
                   "--repetitions=1")
        (row,) = self.table("measurements")
        self.assertGreater(float(row["image_bytes"]), 1e6)
        for what in ("native_s", "launched_s", "checkpoint_s", "stood_still_s", "restart_s",
                     "storage_bytes_per_s"):
            self.assertGreater(float(row[what]), 0, what)
        self.assertEqual(len(self.table("law")), 7)
        (weak,) = self.table("weak")
        self.assertEqual((weak["nodes"], weak["processes"]), ("2", "2"))
        for what in ("size_bytes", "stop_s", "local_s", "global_s", "restart_s"):
            self.assertGreater(float(weak[what]), 0, what)
        self.assertEqual({row["ours"] for row in self.table("claims")}, {""},
                         "nothing published is ours")
        self.assertEqual(list((self.scratch / "memory").glob("*")), [], "a job was not cleaned up")

    def test_what_cannot_be_run_is_named(self):
        for options, named in ((["--configuration=ckp(1,2)"], "ckp(1,2)"),
                               (["--application=cg"], "cg"), (["--ranks=0"], "'0'"),
                               (["--launch=no-such-launcher {ranks}"], "no-such-launcher"),
                               (["--launch=x {nodes}"], "{nodes}")):
            with self.subTest(options):
                error = self.study("levels", *self.LEVELS, *options, status=3)[1]
                self.assertIn(named, error)
                self.assertNotIn("Traceback", error)


if __name__ == "__main__":
    support.main()
