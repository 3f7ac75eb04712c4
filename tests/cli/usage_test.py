#!/usr/bin/env python3
"""Wrong usage is refused, and the message names the word that is wrong."""

import support
from support import CommandTest

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


if __name__ == "__main__":
    support.main()
