#!/usr/bin/env python3
"""Wrong usage is refused, and the message names the word that is wrong."""

import os
import signal
import subprocess

import support
from support import CommandTest, Tiers

COMMAND = ["--", "true"]
LAUNCH = ["launch", "-n", "usage"]
# Every option that takes a number with a point: what is typed before it, and after it.
OPTIONS = [(["plan"], "--slowed", []),
           (["plan"], "--bound", []),
           (["simulate"], "--slowed", []),
           (["power", "--once"], "--interval", []),
           (["power", "record", "trace"], "--seconds", []),
           (["power", "align", "meter.csv", "trace"], "--within", []),
           (["power", "calibrate"], "--seconds", []),
           (["study", "compress"], "--seconds", []),
           (["run"], "--stall", COMMAND),
           (["run"], "--delay", COMMAND),
           (["run"], "--min-uptime", COMMAND),
           (["run"], "--linger", COMMAND),
           (LAUNCH, "--interval", COMMAND),
           (LAUNCH, "--node-timeout", COMMAND),
           (["restart", "usage"], "--interval", [])]


class UsageTest(CommandTest):
    def test_a_number_must_be_one_and_within_its_limits(self):
        for before, option, after in OPTIONS:
            status = 125 if before[0] in ("run", "launch", "restart") else 3
            for text in ("nan", "-nan", "inf", "-1", "1e400", "1x", ""):
                with self.subTest(f"{before} {option} {text}"):
                    _, err = self.diapause(*before, f"{option}={text}", *after, status=status)
                    self.assertIn(option, err)
                    self.assertIn(text, err)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_message_names_the_word_that_is_wrong(self):
        (self.scratch / "file").write_bytes(b"x" * 10)
        for arguments, words in (
                (["--bogus"], "there is no option \"--bogus\" before the verb"),
                (["--json", "list"], "there is no option \"--json\" before the verb"),
                (["plan", "--bytes-per-rank", "10G"], "--bytes-per-rank: '10G' is no size"),
                (["plan", "--node-mtbf", "1Y"], "--node-mtbf: '1Y' is no time"),
                (["simulate", "--work", "-1"], "--work: '-1' is no time"),
                (["simulate", "--seed", "-1"], "--seed: '-1' is not a number"),
                (["predict", "--machine", "theta-xc40", "--app", "heat", "--bytes", "6G"],
                 "--bytes: '6G' is no size"),
                (["predict", "--machine", "foo", "--app", "heat"], "theta-xc40"),
                (["inject", "file", "--force", "--bit", 0, "--offset", "-1"],
                 "--offset: '-1' is not a number"),
                (["inject", "file", "--force", "--truncate", "-1"], "--truncate: '-1'"),
                (["inject", "file", "--force", "--bit", 0, "--offset", 2**64 - 1],
                 f"has 10 bytes, and not 1 at offset {2**64 - 1}")):
            with self.subTest(arguments):
                self.assertIn(words, self.diapause(*arguments, status=3)[1])

    def test_a_full_disk_is_no_success(self):
        job = self.scratch / "tiers/global/heat-0a1b2c3d"
        job.mkdir(parents=True, mode=0o700)
        job.parent.chmod(0o700)
        (job / "ledger.jsonl").write_text('{"schema": 2, "event": "open", "time_unix_s": 1.0, '
                                          '"incarnation": 1, "ranks": 1, "nodes": 1}\n')
        tiers = Tiers(self.scratch / "tiers").settings()
        model = ["--bytes-per-rank", "1GiB", "--node-mtbf", "1y"]
        for arguments in (["--help"], ["--version"], ["list"], ["list", "--json"], ["jobs"],
                          ["history", "heat"], ["prune", "--unfinished", "--dry-run"],
                          ["plan", *model], ["power", "--once", "--json"],
                          ["simulate", *model, "--replicas", 1, "--json"],
                          ["predict", "--machine", "theta-xc40", "--app", "heat"]):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                done = subprocess.run([support.DIAPAUSE, *map(str, arguments)], stdout=full,
                                      stderr=subprocess.PIPE, text=True, cwd=self.scratch,
                                      env=support.environment(**tiers), timeout=support.LIMIT_S)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(done.stderr, "cannot write (standard output|to file)")

    def test_a_reader_that_wants_no_more_is_no_trouble(self):
        for restore in (True, False):  # with and without a signal
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([support.DIAPAUSE, "list"], stdout=writer,
                                  stderr=subprocess.PIPE, cwd=self.scratch,
                                  env=support.environment(**Tiers(self.scratch).settings()),
                                  restore_signals=restore, timeout=support.LIMIT_S)
            os.close(writer)
            self.assertEqual(done.stderr, b"")
            self.assertEqual(done.returncode, -signal.SIGPIPE if restore else 0)


if __name__ == "__main__":
    support.main()
