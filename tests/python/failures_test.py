"""Tests what is made of the runs of `study failures`, with runs of which the truth is known."""

import argparse
import dataclasses
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import samples
from diapause import records
from diapause.files import Trouble
from diapause.study import failures, killing, options
from diapause.study.failures import Costs
from diapause.study.killing import Failure

TRUE = Costs(iteration_s=0.02, checkpoint_s=0.1, start_s=1.5,
             restart_s={"process": 2.0, "node": 3.0}, end_s=0.25)
INTERVAL, ITERATIONS = 50, 425


def arguments(**more):
    return argparse.Namespace(**{"ranks": 4, "ranks_per_node": 1, "repetitions": 2, "size": 2.0,
                                 "seconds": 8.0, "interval_s": 1.0, "mtbf": None,
                                 "command": pathlib.Path("/bin/diapause"),
                                 "launch": "mpirun -n {ranks}",
                                 "output": pathlib.Path("/out")} | more)


def played(kills, costs=TRUE, begin_unix_s=1000.0):
    """A run of these costs that is killed so many seconds of work behind a checkpoint: {version of
    the checkpoint: (class, seconds)}."""
    now_s, done, start, left = begin_unix_s + costs.start_s, 0, 1, dict(kills)
    told = {"begin_unix_s": begin_unix_s, "kills": [], "checkpoints": [], "restored": [],
            "iterations": ITERATIONS}
    while done + INTERVAL <= ITERATIONS:
        now_s, done = now_s + INTERVAL * costs.iteration_s, done + INTERVAL
        told["checkpoints"].append([start, now_s, done, costs.checkpoint_s])
        now_s += costs.checkpoint_s
        if done in left:
            kind, later_s = left.pop(done)
            told["kills"].append([kind, now_s + later_s])
            start, now_s = start + 1, now_s + later_s + costs.restart_s[kind]
            told["restored"].append([start, done])
    return told | {"seconds": now_s + (ITERATIONS - done) * costs.iteration_s
                   + costs.end_s - begin_unix_s}


CALIBRATION = {150: ("process", 0.3), 300: ("node", 0.7)}


class CostsTest(unittest.TestCase):
    def check(self, found, true=TRUE):
        for name in ("iteration_s", "checkpoint_s", "start_s", "end_s"):
            self.assertAlmostEqual(getattr(found, name), getattr(true, name), 9, name)
        for kind in killing.CLASSES:
            self.assertAlmostEqual(found.restart_s[kind], true.restart_s[kind], 9, kind)

    def test_calibration_runs_tell_every_cost(self):
        self.check(
            failures.costs_of([played(CALIBRATION), played(CALIBRATION, begin_unix_s=5000.0)]))

    def test_a_start_that_went_back_to_nothing_counts_from_there(self):
        one = played({50: ("process", 0.1), 200: ("node", 0.1)})
        one["restored"] = [pair for pair in one["restored"] if pair[0] != 2]
        one["checkpoints"] = [[start, unix_s + (start > 1), version, blocked_s]
                              for start, unix_s, version, blocked_s in one["checkpoints"]]
        one["kills"][1][1] += 1  # the 50 iterations that were done again
        one["seconds"] += 1
        self.check(failures.costs_of([one]))

    def test_what_the_runs_do_not_tell_is_named(self):
        with self.assertRaisesRegex(Trouble, "what this takes: node"):
            failures.costs_of([played({150: ("process", 0.3)})])
        with self.assertRaisesRegex(Trouble, "give more --seconds"):
            failures.costs_of([played(CALIBRATION) | {"checkpoints": []}])

    def test_a_checkpoint_that_puts_back_what_was_lost_belongs_to_the_restart(self):
        lines = [samples.event("checkpoint", 1001.0, version=50, level_reached=2, blocked_s=0.1),
                 samples.event("restart", 1004.0, version=50) | {"incarnation": 2},
                 samples.event("checkpoint", 1004.0, version=50, level_reached=2,
                               blocked_s=0.4) | {"incarnation": 2},
                 samples.event("checkpoint", 1005.0, version=100, level_reached=0,
                               blocked_s=0.1) | {"incarnation": 2}]
        with tempfile.TemporaryDirectory() as folder:
            told = failures.told_by(
                records.read_ledger(samples.write(pathlib.Path(folder) / "ledger.jsonl", lines)))
        self.assertEqual(told, {"checkpoints": [[1, 1001.0, 50, 0.1]], "restored": [[2, 50]]})


class FailuresTest(unittest.TestCase):
    def test_the_same_seed_draws_the_same_with_the_mean_that_was_asked_for(self):
        means = {"process": 5.0, "node": 20.0}
        found = killing.drawn(means, 4, 1e5, 7)
        self.assertEqual(found, killing.drawn(means, 4, 1e5, 7))
        self.assertNotEqual(found, killing.drawn(means, 4, 1e5, 8))
        for kind, mean_s in means.items():
            count = sum(one.kind == kind for one in found)
            self.assertLess(abs(count * mean_s / 1e5 - 1), 0.1)
        self.assertEqual({one.node for one in found}, {0, 1, 2, 3})

    def test_the_trace_begins_with_the_work_and_ends_behind_the_job(self):
        trace = killing.trace_of([Failure("process", 1, 0.5), Failure("node", 2, 4.0)], 1.5,
                                 99.0).decode().splitlines()
        self.assertEqual(trace, ["time_s,class,node", "0.000000,process,1", "2.500000,node,2",
                                 "99.000000,process,0"])

    def test_a_mean_time_has_a_class_and_seconds(self):
        self.assertEqual(failures._mean_times(arguments(mtbf=[failures._mean_time("process=3")])),
                         {"process": 3.0, "node": 9.0})
        for text in ("3", "system=3", "node=0"):
            with self.assertRaises(argparse.ArgumentTypeError):
                failures._mean_time(text)

    def test_no_checkpoint_is_due_at_the_last_iteration(self):
        for interval_s in (0.06, 1.0, 30.0):
            shape = failures._shape(arguments(interval_s=interval_s))
            self.assertNotEqual(shape.iterations % shape.interval, 0)

    def test_a_launcher_ends_with_all_that_it_has_started(self):
        script = ("import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, "
                  "flush=True); input()'])")
        launcher = subprocess.Popen(["sh", "-c", '"$0" -c "$1"; true', sys.executable, script],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.assertEqual(launcher.stdout.readline(), b"1\n")
            self.assertEqual(len(killing._below(launcher.pid)), 2)
        finally:
            killing.end(launcher)
        self.assertEqual(launcher.returncode, -signal.SIGKILL)
        self.assertEqual(launcher.stdout.read(), b"")  # nobody holds it any more
        launcher.communicate()


class Truth:
    """A simulator that is right."""

    @staticmethod
    def with_failures(costs, _):
        return {"seconds": 10 + 500 * (costs.iteration_s - TRUE.iteration_s), "checkpoints": 8.0,
                "restarts": 2.0}

    @staticmethod
    def at_random(costs):
        return 11.0, 0.1


class StudyTest(unittest.TestCase):
    def study(self, seconds, calibrations=(TRUE, TRUE), kills=(CALIBRATION,) * 3):
        results = {f"calibration-{i + 1}": played(kills[i], one)
                   for i, one in enumerate(calibrations)}
        results |= {f"run-{i + 1}": played(CALIBRATION) | {"seconds": one}
                    for i, one in enumerate(seconds)}
        return failures.Study(arguments(repetitions=len(seconds)), results, Truth())

    def test_what_is_off_is_told_with_what_it_may_be(self):
        exact = self.study([9.9, 9.9, 10.1, 10.1])
        self.assertAlmostEqual(exact.off().mean, 0, 9)
        # There were two calibrations.
        self.assertAlmostEqual(exact.off().half, 1.96 * 0.2 / 2**0.5 / 2**0.5 / 10, 9)
        self.assertIn("0.0 % +- 2.0 %, within 5 %", exact.verdict())
        self.assertIn("+10.0 % +- 2.0 %, not within 5 %",
                      self.study([10.9, 10.9, 11.1, 11.1]).verdict())
        self.assertIn("too few, or the machine too unsteady",
                      self.study([9.0, 9.0, 11.0, 11.0]).verdict())
        self.assertIsNone(self.study([10.0, 10.0], calibrations=(TRUE,)).off().half)

    def test_a_run_is_predicted_from_the_calibrations_beside_it(self):
        slower, slowest = (dataclasses.replace(TRUE, iteration_s=seconds)
                           for seconds in (0.03, 0.04))
        study = self.study([10.0] * 6, calibrations=(TRUE, slower, slowest))
        # With one of them alone it would be 10, 15 or 20 s.
        for number, expected in enumerate((12.5, 12.5, 17.5, 17.5, 20.0, 20.0)):
            self.assertAlmostEqual(study.predicted[number]["seconds"], expected, 9)
        half = dict(CALIBRATION)
        del half[300]
        incomplete = self.study([10.0] * 4, calibrations=(TRUE, TRUE), kills=(CALIBRATION, half))
        self.assertAlmostEqual(incomplete.predicted[3]["seconds"], 10.0, 9)

    def test_tables_and_page_have_every_run(self):
        study = self.study([10.0, 11.0])
        self.assertEqual([row["measured_over_predicted"] for row in study.rows()], [1.0, 1.1])
        self.assertEqual([row["failures_of_nodes"] for row in study.rows()], [1, 1])
        self.assertEqual([row["seconds"] for row in study.cost_rows()],
                         [0.02, 0.1, 1.5, 2.0, 3.0, 0.25])
        text = study.page(study.figures()).decode()
        for expected in ("Among failures", "within 5 %", 'id="runs"'):
            self.assertIn(expected, text)
        self.assertEqual(options.settings(arguments())["interval_s"], 1.0)


if __name__ == "__main__":
    unittest.main()
