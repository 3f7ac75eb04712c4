#!/usr/bin/env python3
"""prune and inject over what the program `minimal` left: versions 40 and 50,
after a crash at step 57."""

import fcntl
import os
import shutil
import subprocess

import support
from support import CommandTest, Tiers


class MinimalTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.tiers = Tiers(self.scratch / "tiers")
        self.tiers.root.mkdir(mode=0o700)
        self.run_minimal(status=3)

    def run_minimal(self, status, **settings):
        environment = support.environment(DIAPAUSE_ASYNC_MODE="off", DIAPAUSE_LEVEL1_KEEP=2,
                                          **self.tiers.settings(), **settings)
        done = subprocess.run([support.MINIMAL], env=environment, cwd=self.scratch,
                              capture_output=True, text=True, timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def numbers(self, **which):
        (job,) = self.report("list", "minimal", tiers=self.tiers)["jobs"]
        return [version["version"] for version in job["versions"]]

    def states(self):
        (job,) = self.report("list", "minimal", tiers=self.tiers)["jobs"]
        return {version["version"]: version["state"] for version in job["versions"]}

    def directory(self, number):
        return self.tiers.file(f"memory/*/*/v{number}-*")


class PruneTest(MinimalTest):
    def test_keep_removes_older_versions_and_the_program_goes_on_from_the_newest(self):
        size = sum(file.stat().st_size for file in self.directory(40).iterdir())
        text, _ = self.diapause("prune", "minimal", "--keep", 1, tiers=self.tiers)
        self.assertIn("version 40", text)
        self.assertIn(f"freed {size / 1024:.1f} KiB", text)
        self.assertEqual(self.numbers(), [50])
        self.assertIn("continuing after step 50", self.run_minimal(status=0))

    def test_dry_run_only_tells(self):
        text, _ = self.diapause("prune", "minimal", "--all", "--dry-run", tiers=self.tiers)
        self.assert_in_order(["would remove", "version 50", "version 40", "would free"], text)
        self.assertEqual(self.numbers(), [50, 40])

    def test_a_version_can_be_named(self):
        self.diapause("prune", "minimal", "--version", 50, tiers=self.tiers)
        self.assertEqual(self.numbers(), [40])
        self.assertIn("continuing after step 40", self.run_minimal(status=0))

    def test_a_version_that_is_not_there_is_an_error(self):
        self.assertIn("no version 41", self.diapause("prune", "minimal", "--version", 41,
                                                     tiers=self.tiers, status=3)[1])

    def test_all_removes_every_version_of_the_job_that_is_named(self):
        _, errors = self.diapause("prune", "--all", tiers=self.tiers, status=3)
        self.assertIn("name it, as in diapause prune JOB --all", errors)
        self.assertEqual(self.numbers(), [50, 40])
        self.diapause("prune", "minimal", "--all", tiers=self.tiers)
        self.assertEqual(self.numbers(), [])
        self.assertEqual(self.tiers.files("memory/*/*/v*"), [])

    def test_nothing_is_removed_while_the_job_holds_its_lock(self):
        for lock in self.tiers.files("*/*/lock") + self.tiers.files("*/*/*/lock"):
            with self.subTest(lock=lock), open(lock, "w") as held:
                held.write("process 42 on somewhere\n")
                held.flush()
                fcntl.flock(held, fcntl.LOCK_EX)
                _, errors = self.diapause("prune", "minimal", "--all", tiers=self.tiers, status=3)
                self.assertIn("locked by: process 42 on somewhere", errors)
                self.assertEqual(self.numbers(), [50, 40])

    def test_what_cannot_be_restored_from_here_does_not_count_as_kept(self):
        (self.directory(50) / "r0.img").unlink()
        self.diapause("prune", "minimal", "--keep", 1, tiers=self.tiers)
        self.assertEqual(self.numbers(), [50, 40])

    def test_what_is_kept_is_read_before_anything_older_goes(self):
        image = self.directory(50) / "r0.img"
        for damage in (lambda: os.truncate(image, 0), lambda: support.flip(image, 4096)):
            image_before = image.read_bytes()
            damage()
            for options in (["--dry-run"], []):
                text, errors = self.diapause("prune", "minimal", "--keep", 1, *options,
                                             tiers=self.tiers)
                self.assertNotIn("version 40", text)
                self.assertIn(
                    f"version 50 of {self.directory(50).parents[1].name} cannot be restored",
                    errors)
            self.assertEqual(self.numbers(), [50, 40])
            image.write_bytes(image_before)
        self.assertIn("continuing after step 50", self.run_minimal(status=0))

    def test_unfinished_checkpoints_go_and_versions_stay(self):
        unfinished = self.directory(50).parent / f"v60-i1-{'ab' * 16}"
        unfinished.mkdir(mode=0o700)
        (unfinished / "r0.img").write_bytes(b"x" * 100)
        self.assertIn("freed 100 B", self.diapause("prune", "--unfinished", tiers=self.tiers)[0])
        self.assertEqual(self.numbers(), [50, 40])

    def test_what_to_remove_must_be_said_and_only_once(self):
        for arguments in (["minimal"], ["--all"], ["minimal", "--all", "--keep", 1],
                          ["--version", 40], ["--keep", "many"],
                          ["--keep", 0], ["minimal", "--keep", 0]):
            with self.subTest(arguments):
                self.diapause("prune", *arguments, tiers=self.tiers, status=3)
        self.assertEqual(self.numbers(), [50, 40])


class CapturedTest(MinimalTest):
    """Captured data that is not published is left to the next start."""

    def setUp(self):
        super().setUp()
        for manifest in self.directory(50).glob("manifest.*"):
            manifest.unlink()
        self.assertEqual(self.states(), {50: "captured", 40: "complete"})

    def test_a_capture_outlives_a_prune_of_versions(self):
        for arguments in (["--keep", 1], ["--version", 40]):
            self.diapause("prune", "minimal", *arguments, tiers=self.tiers)
            self.assertEqual(self.states()[50], "captured")
        self.assertIn("continuing after step 50", self.run_minimal(status=0))

    def test_a_capture_in_a_slot_outlives_a_prune_of_versions(self):
        place = self.directory(50).parent
        slot = place / "spare" / "o0-7"
        slot.parent.mkdir(mode=0o700, exist_ok=True)
        (self.directory(50) / "r0.img").rename(slot)
        self.diapause("prune", "minimal", "--keep", 1, tiers=self.tiers)
        self.assertEqual(self.states()[50], "captured")
        self.diapause("prune", "minimal", "--all", tiers=self.tiers)
        self.assertFalse(slot.exists())

    def test_a_capture_is_not_removed_alone(self):
        _, errors = self.diapause("prune", "minimal", "--version", 50, tiers=self.tiers, status=3)
        self.assertIn("version 50 of 'minimal' was captured and is not published yet", errors)


class FinishedTest(MinimalTest):
    def setUp(self):
        super().setUp()
        aside = self.scratch / "aside"
        shutil.copytree(self.tiers.memory, aside)
        self.run_minimal(status=0, DIAPAUSE_FINISH_KEEP="nothing")
        self.assertEqual(self.numbers(), [])
        self.assertEqual(self.job_state(), "finished")
        shutil.rmtree(self.tiers.memory)
        shutil.copytree(aside, self.tiers.memory)  # like a node that could not be reached then

    def job_state(self):
        (job,) = self.report("jobs", "minimal", tiers=self.tiers)["jobs"]
        return job["state"]

    def test_what_is_left_of_it_is_told_as_leftovers(self):
        self.assertEqual(self.states(), {50: "finished", 40: "finished"})
        self.assertEqual(self.job_state(), "finished")
        text, _ = self.diapause("verify", "minimal", tiers=self.tiers)
        self.assertIn("the next start begins anew and removes this version", text)
        text, _ = self.diapause("show", "minimal", "50", tiers=self.tiers)
        self.assertIn("state        finished", text)

    def test_leftovers_that_are_damaged_stop_nobody(self):
        os.truncate(self.directory(50) / "r0.img", 0)
        self.diapause("verify", "minimal", tiers=self.tiers, status=1)

    def test_the_next_start_begins_anew(self):
        self.assertNotIn("continuing", self.run_minimal(status=3))
        self.assertEqual(self.states(), {50: "complete", 40: "complete"})
        self.assertEqual(self.job_state(), "not running")


class InjectTest(MinimalTest):
    def setUp(self):
        super().setUp()
        self.image = self.directory(50) / "r0.img"
        self.before = self.image.read_bytes()

    def test_a_flipped_bit_is_found_and_the_program_takes_the_older_version(self):
        text, _ = self.diapause("inject", self.image, "--offset", 4096, "--bit", 3,
                                tiers=self.tiers)
        self.assertIn(f"{self.before[4096]:#04x} is now {self.before[4096] ^ 8:#04x}", text)
        after = self.image.read_bytes()
        self.assertEqual([i for i in range(len(after)) if after[i] != self.before[i]], [4096])
        self.assertEqual(after[4096], self.before[4096] ^ 8)
        self.diapause("verify", tiers=self.tiers, status=2)
        self.assertIn("continuing after step 40", self.run_minimal(status=0))

    def test_bytes_are_overwritten(self):
        self.diapause("inject", self.image, "--offset", 4097, "--overwrite", "00fF10",
                      tiers=self.tiers)
        self.assertEqual(self.image.read_bytes(),
                         self.before[:4097] + b"\x00\xff\x10" + self.before[4100:])

    def test_a_file_is_cut(self):
        self.diapause("inject", self.image, "--truncate", 100, tiers=self.tiers)
        self.assertEqual(self.image.read_bytes(), self.before[:100])

    def test_a_file_is_not_made_longer(self):
        size = len(self.before)
        for how in (["--offset", size, "--bit", 0], ["--offset", size - 1, "--overwrite", "0000"],
                    ["--truncate", size + 1]):
            with self.subTest(how):
                self.diapause("inject", self.image, *how, tiers=self.tiers, status=3)
        self.assertEqual(self.image.read_bytes(), self.before)

    def test_other_files_need_force(self):
        outside = self.scratch / "outside"
        outside.write_bytes(b"\x00\x00")
        link = self.directory(50) / "link"
        link.symlink_to(outside)
        for path in (outside, link):
            _, errors = self.diapause("inject", path, "--offset", 1, "--bit", 0, tiers=self.tiers,
                                      status=3)
            self.assertIn("--force", errors)
        self.assertEqual(outside.read_bytes(), b"\x00\x00")
        self.diapause("inject", outside, "--offset", 1, "--bit", 0, "--force", tiers=self.tiers)
        self.assertEqual(outside.read_bytes(), b"\x00\x01")

    def test_only_regular_files_are_taken(self):
        pipe = self.directory(50) / "pipe"
        os.mkfifo(pipe)
        for path in (pipe, self.directory(50), self.scratch / "absent"):
            with self.subTest(path):
                self.diapause("inject", path, "--offset", 0, "--bit", 0, "--force",
                              tiers=self.tiers, status=3)

    def test_unclear_orders_are_refused(self):
        for how in ([], ["--bit", 1], ["--offset", 0], ["--offset", 0, "--bit", 8],
                    ["--overwrite", "0"],
                    ["--overwrite", "0g"], ["--truncate", 1, "--overwrite", "00"]):
            with self.subTest(how):
                self.diapause("inject", self.image, *how, tiers=self.tiers, status=3)
        self.assertEqual(self.image.read_bytes(), self.before)


if __name__ == "__main__":
    support.main()
