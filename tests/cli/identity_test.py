#!/usr/bin/env python3
"""A job goes on wherever its directory is found, and list and verify name the version
that it goes on from."""

import pathlib
import shutil
import subprocess

import support
from support import CommandTest


class IdentityTest(CommandTest):
    """The program `minimal` in a directory of its own: its global tier is the default, its
    versions lie in memory."""

    def setUp(self):
        super().setUp()
        self.memory = self.scratch / "memory"
        self.work = self.scratch / "work"
        self.work.mkdir(mode=0o700)
        self.run_minimal(self.work, status=3)

    def settings(self, **more):
        return support.environment(DIAPAUSE_ASYNC_MODE="off", DIAPAUSE_LEVEL1_KEEP=2,
                                   DIAPAUSE_MEMORY_PATH=self.memory, **more)

    def run_minimal(self, directory, status=0, **more):
        done = subprocess.run([support.MINIMAL], env=self.settings(**more), cwd=directory,
                              capture_output=True, text=True, timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def command(self, directory, *arguments, status=0):
        done = subprocess.run([support.DIAPAUSE, *arguments], env=self.settings(), cwd=directory,
                              capture_output=True, text=True, timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def expect_goes_on(self, directory, **more):
        self.assertIn("50", self.command(directory, "list")[0])
        self.assertIn("version 50", self.command(directory, "verify", "minimal")[0])
        self.assertIn("continuing after step 50", self.run_minimal(directory, **more)[0])

    def test_after_mv(self):
        moved = self.scratch / "moved"
        self.work.rename(moved)
        self.expect_goes_on(moved)

    def test_through_a_link_on_the_way(self):
        link = self.scratch / "link"
        link.symlink_to(self.work)
        self.expect_goes_on(self.work, DIAPAUSE_GLOBAL_PATH=link / "diapause")

    def test_by_any_spelling(self):
        for spelling in ("diapause/", "./diapause", f"/{self.work}//diapause"):
            self.assertIn("continuing after step 50",
                          self.run_minimal(self.work, DIAPAUSE_GLOBAL_PATH=spelling)[0])
            shutil.rmtree(self.work)
            shutil.rmtree(self.memory)
            self.work.mkdir(mode=0o700)
            self.run_minimal(self.work, status=3)

    def test_in_a_copy_whose_original_is_gone(self):
        copy = self.scratch / "copy"
        shutil.copytree(self.work, copy)
        shutil.rmtree(self.work)
        self.expect_goes_on(copy)

    def test_in_a_copy_beside_its_original_from_what_the_copy_holds(self):
        copy = self.scratch / "copy"
        shutil.copytree(self.work, copy)
        out, err = self.command(copy, "list")
        self.assertIn("is a copy of the job in", err)
        self.assertNotIn("50", out)
        self.assertIn("is a copy of the job in", self.run_minimal(copy, status=3)[1])
        self.expect_goes_on(self.work)
        self.expect_goes_on(copy)

    def test_from_what_was_captured_and_not_published(self):
        for manifest in self.memory.glob("minimal-*/*/v50-*/manifest.*"):
            manifest.unlink()
        self.assertIn("captured", self.command(self.work, "list")[0])
        self.expect_goes_on(self.work)

    def test_but_not_from_a_capture_that_is_damaged(self):
        (version,) = self.memory.glob("minimal-*/*/v50-*")
        for manifest in version.glob("manifest.*"):
            manifest.unlink()
        image = bytearray((version / "r0.img").read_bytes())
        image[4096] ^= 1
        (version / "r0.img").write_bytes(image)
        self.assertIn("block 0 of region 'sum' is damaged",
                      self.command(self.work, "verify", status=2)[0])
        self.assertIn("continuing after step 40", self.run_minimal(self.work)[0])

    def test_list_judges_by_sizes_and_tells_of_a_link(self):
        (image,) = self.memory.glob("minimal-*/*/v50-*/r0.img")
        image.write_bytes(image.read_bytes()[:4096])
        lines = self.command(self.work, "list")[0].splitlines()
        self.assertIn("partial", lines[1])
        (job,) = (self.work / "diapause").glob("minimal-*")
        job.rename(self.scratch / "elsewhere")
        job.symlink_to(self.scratch / "elsewhere")
        self.assertIn("symbolic link", self.command(self.work, "list", status=3)[1])

    def test_prune_refuses_a_name_that_jobs_of_two_directories_have(self):
        other, empty = self.scratch / "other", self.scratch / "empty"
        other.mkdir(mode=0o700)
        empty.mkdir()
        self.run_minimal(other, status=3)
        (mine,), (its,) = [[path.name for path in (directory / "diapause").glob("minimal-*")]
                           for directory in (self.work, other)]
        for directory in (self.work, other, empty):
            for what in (["--all"], ["--keep", "1"], ["--unfinished"], ["--all", "--dry-run"]):
                out, err = self.command(directory, "prune", "minimal", *what, status=3)
                self.assertEqual(out, "")
                for key in (mine, its):
                    self.assertIn(key, err)
            for verb in (["show", "minimal"], ["export", "minimal", "--to", "arrays"]):
                self.assertIn(", ".join(sorted((mine, its))),
                              self.command(directory, *verb, status=3)[1])
        told = self.command(self.work, "jobs")[0]
        for key in (mine, its):
            self.assertIn(f"diapause prune {key} --all", told)
        self.command(self.work, "prune", mine, "--all")
        self.assertIn("continuing after step 50", self.run_minimal(other)[0])

    def test_the_advice_to_prune_names_this_directory_s_job(self):
        for image in self.memory.glob("minimal-*/*/v*/r0.img"):
            image.write_bytes(image.read_bytes()[:4096])
        (key,) = [path.name for path in (self.work / "diapause").glob("minimal-*")]
        self.assertIn(f"'diapause prune {key} --all'", self.run_minimal(self.work, status=2)[1])

    def test_but_not_from_a_directory_that_was_removed(self):
        script = 'cd work && rm -r ../work && exec "$@"'
        for more, words in (({}, "the working directory has been removed"),
                            ({"DIAPAUSE_GLOBAL_PATH": self.scratch / "elsewhere"}, "")):
            done = subprocess.run(["sh", "-c", script, "sh", support.MINIMAL],
                                  env=self.settings(**more), cwd=self.scratch,
                                  capture_output=True, text=True, timeout=support.LIMIT_S)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr == "", words == "")
            self.assertFalse(pathlib.Path("/diapause").exists())
            self.work.mkdir()

    def test_under_another_name_of_the_machine(self):
        node = next(path for path in self.memory.glob("minimal-*/*") if path.is_dir())
        node.rename(node.with_name("yesterday"))
        self.expect_goes_on(self.work)


support.main()
