#!/usr/bin/env python3
"""history and jobs over ledgers and directories made by hand."""

import fcntl
import json
import subprocess

import support
from support import CommandTest, Tiers


def event(kind, at, **more):
    return json.dumps({"schema": 1, "event": kind, "time_unix_s": at} | more) + "\n"


def checkpoint(version, level, at, blocked_s=0.5, error=None):
    return event("checkpoint", at, incarnation=1, version=version, level_asked=max(level, 1),
                 level_reached=level, bytes_total=1 << 20, blocked_s=blocked_s, error=error)


FIRST = [event("open", 1000.0, incarnation=1, ranks=8, nodes=4),
         *(checkpoint(v, 1, 1000.0 + v) for v in (10, 20, 30)), checkpoint(40, 3, 1040.0),
         checkpoint(50, 0, 1050.0, error="disk full\x1b[2J")]
SECOND = [event("open", 1060.0, incarnation=2, ranks=8, nodes=4),
          event("restart", 1061.0, incarnation=2, version=40, seconds=0.25, stepped_back=False,
                sources=["own node"] * 6 + ["parity"] * 2), checkpoint(60, 4, 1090.0),
          event("close", 1110.0)]


class HistoryTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.tiers = Tiers(self.scratch / "tiers")
        job = self.tiers.global_ / "heat-0a1b2c3d"
        job.mkdir(parents=True, mode=0o700)
        self.tiers.global_.chmod(0o700)
        self.ledger = job / "ledger.jsonl"

    def test_a_choice_of_intervals_stands_with_its_reason(self):
        choice = event("schedule", 1001.0, incarnation=1, number=1, every_s=320.0,
                       reason="level 1 blocks: 2 s, before 1",
                       levels=[{"level": 1, "one_in": 1}, {"level": 3, "one_in": 4}, "x",
                               {"level": 4, "one_in": 40}])
        self.ledger.write_text(
            "".join([FIRST[0], choice, *FIRST[1:], event("schedule", 1055.0, levels=None)]))
        text, _ = self.diapause("history", "heat", tiers=self.tiers)
        self.assert_in_order(["start 1",
                              "schedule: every 320.00 s, of which 1 in 4 at level 3, 1 in 40 at "
                              "level 4: level 1 blocks",
                              "10 ... 30"],
                             text)

    def test_checkpoints_restarts_and_failures_stand_in_their_order(self):
        self.ledger.write_text("".join([*FIRST, '{"event": "chec\n', "[]\n", *SECOND]))
        text, _ = self.diapause("history", "heat", tiers=self.tiers)
        self.assert_in_order(
            ["VERSION", "start 1", "8 ranks on 4 nodes", "10 ... 30  L1 own node x 3", "1.0 MiB",
             "500.00 ms", "2.0 MiB/s", "40  L3 parity", "50  FAILED", "disk full?[2J",
             "start 1 FAILED", "start 2",
             "went on from version 40 in 250.00 ms: ranks 0-5 from own node; ranks 6-7 from parity",
             "60  L4 global"],
            text)
        self.assertIn("6 checkpoints held the program up for 3.00 s of 100.00 s (3 %); 1 of them "
                      "FAILED; 2 starts, 1 failure, 1 restart\n",
                      text)
        self.assertIn(f"{self.ledger} damaged: 2 of its lines left out\n", text)

    def test_a_file_that_is_no_ledger_of_this_version_is_refused(self):
        for content, words in (("root:x:0:0\n" * 3, "no sound line, and 1 damaged"),
                               ("x\ny\n", "is no ledger: it has no sound line, and 2 damaged"),
                               (FIRST[0] + FIRST[1].replace('"schema": 1', '"schema": 9'),
                                "has schema 9, and this version reads 1 and 2")):
            self.ledger.write_text(content)
            for more in ([], ["--follow"]):
                with self.subTest(words, more=more):
                    _, err = self.diapause("history", self.ledger, *more, status=3)
                    self.assertIn(str(self.ledger), err)
                    self.assertIn(words, err)

    def test_what_happens_is_shown_as_it_happens_until_the_job_closes(self):
        self.ledger.write_text("".join(FIRST))
        command = [support.DIAPAUSE, "history", "heat", "--follow"]
        follower = subprocess.Popen(command, env=support.environment(**self.tiers.settings()),
                                    cwd=self.scratch, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: follower.poll() is None and follower.kill())
        seen = ""
        while "FAILED" not in seen:
            seen += follower.stdout.readline()
        with self.ledger.open("a") as ledger:
            ledger.write("".join(SECOND))
        rest, _ = follower.communicate(timeout=support.LIMIT_S)
        self.assertEqual(follower.returncode, 0)
        self.assert_in_order(["went on from version 40", "L4 global", "2 starts, 1 failure"], rest)

    def test_a_ledger_that_is_not_there_is_named(self):
        self.assertIn("no job 'cold'",
                      self.diapause("history", "cold", tiers=self.tiers, status=3)[1])
        self.assertIn("gone.jsonl",
                      self.diapause("history", "gone.jsonl", tiers=self.tiers, status=3)[1])


class JobsTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.tiers = Tiers(self.scratch / "tiers")
        (self.tiers.global_ / "heat-0a1b2c3d").mkdir(parents=True, mode=0o700)
        self.tiers.global_.chmod(0o700)

    def jobs(self):
        return {one["job"]: one for one in self.report("jobs", tiers=self.tiers)["jobs"]}

    def leave_in_memory(self, job):
        node = self.tiers.memory / job / "node0"
        node.mkdir(parents=True, mode=0o700)
        self.tiers.memory.chmod(0o700)
        (node / "spare").mkdir(mode=0o700)
        (node / "spare/o0-1").write_bytes(b"x" * 5000)
        return node

    def test_jobs_that_are_gone_are_told_from_those_that_do_not_run(self):
        self.leave_in_memory("heat-0a1b2c3d")
        self.leave_in_memory("heat-99999999")
        node = self.leave_in_memory("runs-12345678")
        with open(node / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.jobs()
        self.assertEqual({job: one["state"] for job, one in found.items()},
                         {"heat-0a1b2c3d": "not running", "heat-99999999": "gone",
                          "runs-12345678": "running"})
        self.assertEqual(found["heat-99999999"]["memory_bytes"], 5000)
        text, _ = self.diapause("jobs", tiers=self.tiers)
        self.assertIn("jobs that do not run occupy 14.6 KiB of memory", text)

    def test_a_job_that_may_be_where_nobody_can_look_is_not_said_to_be_absent(self):
        self.tiers.global_.rename(self.scratch / "other")
        self.tiers.global_.write_text("no directory")  # which root, too, cannot read as one
        for verb in (["list"], ["jobs"], ["show"], ["verify"], ["prune", "--all"], ["history"],
                     ["export", "--to", "arrays"], ["energy"], ["report", "-o", "page.html"]):
            _, err = self.diapause(verb[0], "heat", *verb[1:], tiers=self.tiers, status=3)
            self.assertIn("there is no job 'heat'", err)
            self.assertIn(f"{self.tiers.global_} is not a directory", err)

    def test_no_jobs_is_no_error(self):
        self.assertIn("no jobs in: ", self.diapause("jobs", tiers=Tiers(self.scratch / "empty"))[0])


if __name__ == "__main__":
    support.main()
