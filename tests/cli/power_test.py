#!/usr/bin/env python3
"""power restore: puts back what dead jobs left changed."""

import pathlib

import support
from support import CommandTest

BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class PowerRestoreTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.scratch / "state"
        self.state.mkdir(mode=0o700)
        self.control = self.scratch / "scaling_max_freq"
        self.control.write_text("1700000\n")

    def leave(self, boot=BOOT, process=4194304, start=1):
        """Leaves what a job leaves that dies together with its watchdog; by default it is a job
        that no living process can be."""
        lines = ["diapause-power 1", f"boot {boot}", f"control {self.control}", "original 2000000",
                 "ours 1700000", f"request {process} {start} 1 1700000"]
        journal = self.state / "journal"
        journal.write_text("".join(line + "\n" for line in lines))
        journal.chmod(0o600)

    def restore(self, status=0):
        return self.diapause("power", "restore", "--state", self.state, status=status)

    def value(self):
        return self.control.read_text().splitlines()[0]

    def test_a_value_of_a_dead_job_is_put_back_once(self):
        self.leave()
        self.assertEqual(self.restore()[0], "1 put back, 0 left alone\n")
        self.assertEqual(self.value(), "2000000")
        self.assertEqual(self.restore()[0], "0 put back, 0 left alone\n")

    def test_the_directory_comes_from_the_configuration(self):
        self.leave()
        self.diapause("power", "restore", DIAPAUSE_GOVERNOR_STATE_PATH=self.state)
        self.assertEqual(self.value(), "2000000")

    def test_a_directory_that_is_not_there_is_not_made(self):
        absent = self.scratch / "absent"
        _, err = self.diapause("power", "restore", "--state", absent, status=3)
        self.assertIn(f"there is no directory {absent}", err)
        # A node on which no governor has run: the epilogue has nothing to do.
        self.assertEqual(self.diapause("power", "restore", DIAPAUSE_GOVERNOR_STATE_PATH=absent)[0],
                         "0 put back, 0 left alone\n")
        self.assertFalse(absent.exists())

    def test_a_value_that_somebody_else_has_set_since_stays(self):
        self.leave()
        self.control.write_text("1500000\n")
        self.assertEqual(self.restore()[0], "0 put back, 1 left alone\n")
        self.assertEqual(self.value(), "1500000")

    def test_a_value_that_a_living_job_wants_stays(self):
        start = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        self.leave(process=pathlib.Path("/proc/self").resolve().name, start=start)
        self.restore()
        self.assertEqual(self.value(), "1700000")

    def test_nothing_of_another_boot_is_touched(self):
        self.leave(boot="yesterday")
        self.restore()
        self.assertEqual(self.value(), "1700000")

    def test_a_journal_that_makes_no_sense_is_named(self):
        (self.state / "journal").write_text("diapause-power 1\nrm -rf\n")
        (self.state / "journal").chmod(0o600)
        self.assertIn(f"{self.state}/journal:2", self.restore(status=3)[1])

    def test_a_directory_that_others_can_write_to_is_not_believed(self):
        self.leave()
        self.state.chmod(0o777)
        self.restore(status=3)
        self.assertEqual(self.value(), "1700000")


if __name__ == "__main__":
    support.main()
