#!/usr/bin/env python3
"""run: starts a command, and starts it again when it fails."""

import os
import pathlib
import signal
import subprocess
import time

import support
from support import CommandTest


def state_of(pid):
    """The letter that /proc has for a process; None if it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return None


def listen():
    """Signals that a test itself was started to ignore must not reach the command."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


def wait_until(condition, what):
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s, f"waited in vain for: {what}"
        time.sleep(0.01)


class Runs(CommandTest):
    def log(self):
        path = self.scratch / "log"
        return path.read_text().split() if path.exists() else []

    def start(self, *arguments, before=listen, environment=None):
        process = subprocess.Popen([support.DIAPAUSE, "run", *map(str, arguments)],
                                   cwd=self.scratch,
                                   env=environment or support.environment(), stderr=subprocess.PIPE,
                                   text=True, preexec_fn=before)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def start_shell(self, script, *options, **more):
        return self.start(*options, "--", "sh", "-c", script, **more)


class RunTest(Runs):
    # ---- a shortage ----

    def test_a_start_that_failed_for_want_of_something_is_repeated_and_counts_for_nothing(self):
        _, err = self.diapause("run", "--restarts", 0, "--min-uptime", 1000, "--", "sh", "-c",
                               "echo $DIAPAUSE_RUN_ATTEMPT >> log; test $DIAPAUSE_RUN_ATTEMPT = 1 "
                               "&& exit;echo no room >> $DIAPAUSE_RUN_AGAIN_FILE; exit 7")
        self.assertEqual(self.log(), ["0", "1"])
        self.assertIn("no room; that may be over soon: starting again in 1 s", err)
        self.assertEqual([path.name for path in self.scratch.iterdir()], ["log"])

    # ---- starting again ----

    def test_a_command_that_fails_twice_is_started_three_times(self):
        out, err = self.diapause(
            "run", "--", "sh", "-c",
            "echo $DIAPAUSE_RUN_ATTEMPT >> log; test $DIAPAUSE_RUN_ATTEMPT = 2")
        self.assertEqual(self.log(), ["0", "1", "2"])
        self.assertEqual(out, "")
        self.assertEqual(len(err.splitlines()), 2)

    def test_the_limit_ends_it_with_the_status_of_the_command(self):
        _, err = self.diapause("run", "--restarts", 1, "--", "sh", "-c", "echo x >> log; exit 7",
                               status=7)
        self.assertEqual(self.log(), ["x", "x"])
        self.assertIn("giving up", err)

    def test_success_is_not_repeated(self):
        self.diapause("run", "--", "sh", "-c", "echo x >> log")
        self.assertEqual(self.log(), ["x"])

    def test_success_finishes_the_jobs_of_the_command_if_told(self):
        tiers = support.Tiers(self.scratch)
        # The program stops half-way without closing, which is a success.
        half = ["--", "sh", "-c", f"{support.MINIMAL}; test $? = 3"]
        for keep in ("nothing", "last"):
            settings = tiers.settings() | {"DIAPAUSE_FINISH_KEEP": keep}
            self.diapause("run", *half, **settings)
            self.assertTrue(tiers.files("*/*/**/*.img"), "without --finish")
            _, err = self.diapause("run", "--finish", "--", "sh", "-c",
                                   f"{support.MINIMAL} > said; true", **settings)
            self.assertIn("continuing", (self.scratch / "said").read_text())
            if keep == "last":
                # The program has only level 1, so nothing can be kept, and nothing is lost.
                self.assertIn("no version of level 4", err)
                continue
            self.assertFalse(tiers.files("*/*/**/*.img"))
            _, err = self.diapause("run", "--finish", *half, **settings)
            self.assertIn("finished minimal-", err)
            self.assertFalse(tiers.files("*/*/**/*.img"))
            self.assertFalse(list(self.scratch.glob(".diapause-stop*")))

    def test_death_by_a_signal_is_a_failure_with_128_more(self):
        _, err = self.diapause("run", "--restarts", 1, "--", "sh", "-c",
                               "echo x >> log; kill -9 $$", status=128 + 9)
        self.assertEqual(self.log(), ["x", "x"])
        self.assertIn("SIGKILL", err)

    def test_a_command_that_fails_at_once_is_not_repeated_with_a_minimal_uptime(self):
        self.diapause("run", "--min-uptime", 60, "--", "sh", "-c", "echo x >> log; exit 1",
                      status=1)
        self.assertEqual(self.log(), ["x"])

    def test_a_delay_lies_between_two_starts(self):
        start_s = time.monotonic()
        self.diapause("run", "--restarts", 1, "--delay", 0.5, "--", "false", status=1)
        self.assertGreaterEqual(time.monotonic() - start_s, 0.5)

    def test_standard_output_and_arguments_are_those_of_the_command(self):
        out, err = self.diapause("run", "--", "printf", "%s|", "a b", "--", "--help")
        self.assertEqual((out, err), ("a b|--|--help|", ""))

    def test_its_own_failures_end_with_125(self):
        for arguments in (["--", "/no/such/program"], ["--"], [], ["true"],
                          ["--restarts", "many", "--", "true"],
                          ["--", "/etc/passwd"]):
            with self.subTest(arguments):
                self.diapause("run", *arguments, status=125)

    def test_a_working_directory_that_was_removed_is_an_error(self):
        for arguments, status in ((["run", "--", "true"], 125), (["list"], 3),
                                  (["launch", "-n", "gone", "--", "true"], 125)):
            with self.subTest(arguments):
                done = subprocess.run(["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && "$@"',
                                       "sh", support.DIAPAUSE, *arguments], cwd=self.scratch,
                                      env=support.environment(), capture_output=True, text=True,
                                      timeout=support.LIMIT_S)
                self.assertEqual(done.returncode, status, done.stderr)
                if arguments[0] != "launch":  # which some machines refuse anyway
                    self.assertIn("the working directory has been removed", done.stderr)
                self.assertFalse(pathlib.Path("/diapause").exists())

    def test_a_configuration_that_cannot_be_read_is_refused_before_the_start(self):
        absent, broken = self.scratch / "absent.toml", self.scratch / "broken.toml"
        broken.write_text("[memory\n")
        for file in (absent, broken):
            for more in ([], ["--stall", 1]):
                _, err = self.diapause("run", "--config", file, *more, "--", "sh", "-c",
                                       "echo x >> log", status=125)
                self.assertIn(str(file), err)
        _, err = self.diapause("run", "--stall", 1, "--", "sh", "-c", "echo x >> log", status=125,
                               DIAPAUSE_CONFIG=absent)
        self.assertIn(str(absent), err)
        self.assertEqual(self.log(), [])

    def test_a_configuration_that_vanishes_meanwhile_is_no_stall(self):
        config = self.scratch / "config.toml"
        config.write_text("")
        self.diapause("run", "--restarts", 0, "--config", config, "--stall", 0.5, "--", "sh", "-c",
                      "rm config.toml; sleep 2")

    # ---- signals ----

    def test_signals_to_end_are_passed_on_and_end_the_restarts(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                (self.scratch / "log").unlink(missing_ok=True)
                name = number.name.removeprefix("SIG")
                run = self.start_shell(f"trap 'echo got >> log; exit 5' {name}; echo up >> log; "
                                       "while :; do sleep 0.02; done")
                wait_until(lambda: self.log() == ["up"], "the command to start")
                run.send_signal(number)
                self.assertEqual(run.wait(support.LIMIT_S), 5)
                self.assertEqual(self.log(), ["up", "got"])

    def test_the_whole_group_gets_the_signal(self):
        run = self.start_shell("trap 'wait; exit 3' TERM; (trap 'echo inner >> log; exit' TERM; "
                               "echo up >> log; while :; do sleep 0.02; done) & wait")
        wait_until(lambda: self.log() == ["up"], "the command to start")
        run.terminate()
        self.assertEqual(run.wait(support.LIMIT_S), 3)
        self.assertEqual(self.log(), ["up", "inner"])

    def test_user_signals_are_passed_on_and_end_nothing(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(number):
                (self.scratch / "log").unlink(missing_ok=True)
                name = number.name.removeprefix("SIG")
                run = self.start_shell(f"trap 'echo got >> log' {name}; echo up >> log; "
                                       "while ! grep -q got log; do sleep 0.02; done; exit 0")
                wait_until(lambda: self.log() == ["up"], "the command to start")
                run.send_signal(number)
                self.assertEqual(run.wait(support.LIMIT_S), 0)

    def test_a_stop_stops_both_and_a_continue_lets_both_go_on(self):
        # It starts nothing: a shell whose child is stopped before it runs waits for that, and is
        # not seen to stop.
        os.mkfifo(self.scratch / "end")
        run = self.start_shell("echo $$ >> log; read line < end")
        wait_until(lambda: len(self.log()) == 1, "the command to start")
        command = self.log()[0]
        run.send_signal(signal.SIGTSTP)
        wait_until(lambda: state_of(command) == "T" and state_of(run.pid) == "T", "both to stop")
        run.send_signal(signal.SIGCONT)
        wait_until(lambda: state_of(command) != "T" and state_of(run.pid) != "T", "both to go on")
        (self.scratch / "end").write_text("\n")
        self.assertEqual(run.wait(support.LIMIT_S), 0)

    def test_a_signal_during_the_delay_ends_it(self):
        run = self.start_shell("echo x >> log; exit 4", "--delay", 1000)
        wait_until(lambda: "starting again" in run.stderr.readline(), "the delay to begin")
        run.terminate()
        self.assertEqual(run.wait(support.LIMIT_S), 4)
        self.assertEqual(self.log(), ["x"])

    def test_what_was_ignored_stays_ignored(self):
        run = self.start_shell("echo up >> log; while ! test -e end; do sleep 0.02; done",
                               before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: self.log() == ["up"], "the command to start")
        run.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertIsNone(run.poll())
        (self.scratch / "end").touch()
        self.assertEqual(run.wait(support.LIMIT_S), 0)

    def test_the_command_has_no_signals_blocked(self):
        out, _ = self.diapause("run", "--", "grep", "SigBlk", "/proc/self/status")
        self.assertEqual(int(out.split()[1], 16), 0)

    # ---- leftovers ----

    def test_leftovers_are_ended_before_the_next_start(self):
        script = (
            "if test $DIAPAUSE_RUN_ATTEMPT = 0; then sleep 1000 & echo $! >> log; exit 1; fi; "
            "kill -0 $(cat log) 2> /dev/null && exit 9; exit 0")
        _, err = self.diapause("run", "--", "sh", "-c", script)
        self.assertIn("left behind", err)
        self.assertIn(state_of(self.log()[0]), (None, "Z"))

    def test_leftovers_that_do_not_listen_are_killed(self):
        deaf = "trap '' TERM; echo $$ >> log; while :; do sleep 0.1; done"
        start_s = time.monotonic()
        self.diapause("run", "--restarts", 0, "--", "sh", "-c",
                      'sh -c "$0" & while ! test -s log; do sleep 0.02; done; exit 6', deaf,
                      status=6)
        self.assertGreaterEqual(time.monotonic() - start_s, 5)
        self.assertIn(state_of(self.log()[0]), (None, "Z"))

    def test_the_command_does_not_outlive_a_supervisor_that_was_killed(self):
        run = self.start("--", "sleep", 1000)
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
        wait_until(lambda: children.read_text().split(), "the command to start")
        (command,) = children.read_text().split()
        wait_until(lambda: pathlib.Path(f"/proc/{command}/comm").read_text() == "sleep\n",
                   "the command to run")
        run.kill()
        wait_until(lambda: state_of(command) in (None, "Z"), "the command to end")

    # ---- commands that get nowhere ----

    def launcher(self, *lines):
        """A program of the name of a launcher."""
        path = self.scratch / "mpirun"
        path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        path.chmod(0o755)
        os.mkfifo(self.scratch / "never")
        return path

    def test_a_launcher_whose_processes_are_all_gone_is_ended_and_started_again(self):
        for deaf in (":", "trap '' TERM"):
            with self.subTest(deaf):
                (self.scratch / "log").unlink(missing_ok=True)
                (self.scratch / "never").unlink(missing_ok=True)
                launcher = self.launcher("echo $DIAPAUSE_RUN_ATTEMPT >> log", deaf,
                                         "sleep 0.5 & wait",
                                         "test $DIAPAUSE_RUN_ATTEMPT = 1 || read word < never")
                _, err = self.diapause("run", "--linger", 1, "--", launcher)
                self.assertEqual(self.log(), ["0", "1"])
                self.assertIn("mpirun (process ", err)

    def test_a_launcher_inside_a_script_is_ended_and_the_script_goes_on(self):
        launcher = self.launcher("sleep 0.5 & wait", "read word < never")
        self.diapause("run", "--linger", 1, "--restarts", 0, "--", "sh", "-c",
                      f"{launcher}; echo after $? >> log; exit 3", status=3)
        self.assertEqual(self.log(), ["after", str(128 + signal.SIGTERM)])

    def test_a_command_that_is_no_launcher_may_work_alone(self):
        self.diapause("run", "--linger", 0.2, "--", "sh", "-c",
                      "sleep 0.3 & wait; sleep 1; echo done >> log")
        self.assertEqual(self.log(), ["done"])

    def test_without_progress_the_command_is_ended_and_started_again(self):
        ledger = self.scratch / "tiers/job-0a1b2c3d/ledger.jsonl"
        ledger.parent.mkdir(parents=True, mode=0o700)
        ledger.parent.parent.chmod(0o700)
        script = ("echo $DIAPAUSE_RUN_ATTEMPT >> log; test $DIAPAUSE_RUN_ATTEMPT = 1 && exit; for "
                  f"i in 1 2 3 4 5 6; do echo x >> {ledger}; sleep 0.5; done; echo silent >> log; "
                  "sleep 1000")
        _, err = self.diapause("run", "--stall", 2, "--global", self.scratch / "tiers", "--memory",
                               "", "--", "sh", "-c", script)
        self.assertEqual(self.log(), ["0", "silent", "1"])
        self.assertIn("no new line in a ledger and no new version for 2 s; ending the command", err)

    def test_waiting_takes_no_processor_time(self):
        run = self.start_shell("echo up >> log; while ! test -e end; do sleep 0.05; done")
        wait_until(lambda: self.log() == ["up"], "the command to start")
        time.sleep(1)
        fields = pathlib.Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        (self.scratch / "end").touch()
        run.wait(support.LIMIT_S)
        self.assertLess(ticks / os.sysconf("SC_CLK_TCK"), 0.2)


# A program notes this if it had to stop, or if it then asked and was told.
SAVED = "echo 'SIGUSR1 on rank 2: version 7 at level 4' > $DIAPAUSE_RUN_STOP_FILE"
TOLD = SAVED + "; echo told >> $DIAPAUSE_RUN_STOP_FILE"


class StopTest(Runs):
    def fake(self, name, script):
        """A command of Slurm's that is found before the real one, if there is one."""
        path = self.scratch / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def slurm(self, **more):
        self.fake("scontrol", f"echo scontrol \"$@\" >> {self.scratch}/log")
        self.fake("squeue",
                  f"echo squeue >> {self.scratch}/log; test \"$SLURM_TIME_FORMAT\" = %s && echo "
                  "1900000000")
        return ({"PATH": f"{self.scratch / 'bin'}:{os.environ['PATH']}",
                 "SLURM_JOB_ID": "4711"} | more)

    def run_script(self, script, status, **settings):
        return self.diapause("run", "--", "sh", "-c", f"echo x >> log; {script}", status=status,
                             **settings)[1]

    def test_a_program_that_was_told_to_stop_is_not_started_again(self):
        for end in ("exit 0", "exit 1"):
            with self.subTest(end):
                (self.scratch / "log").unlink(missing_ok=True)
                err = self.run_script(f"{TOLD}; {end}", 75)
                self.assertEqual(self.log(), ["x"])
                self.assertIn("stopped in time: SIGUSR1 on rank 2: version 7 at level 4", err)

    def test_a_program_that_was_saved_and_then_killed_has_stopped_too(self):
        self.run_script(f"{SAVED}; kill -9 $$", 75)
        self.assertEqual(self.log(), ["x"])

    def test_a_program_that_did_not_ask_and_came_to_its_end_is_done(self):
        self.run_script(f"{SAVED}; exit 0", 0)

    def test_a_program_may_say_by_its_status_that_it_stopped(self):
        self.run_script("exit 75", 75)
        self.assertEqual(self.log(), ["x"])

    def test_nothing_is_left_of_the_note(self):
        for script, status in ((TOLD, 75), (SAVED, 0)):
            self.run_script(script, status)
            self.assertEqual([path.name for path in self.scratch.iterdir()], ["log"])

    def test_the_note_of_one_start_is_not_taken_for_that_of_the_next(self):
        self.run_script(f"test $DIAPAUSE_RUN_ATTEMPT = 1 && test ! -e $DIAPAUSE_RUN_STOP_FILE", 0)
        self.assertEqual(self.log(), ["x", "x"])

    def test_slurm_is_asked_to_queue_the_job_again(self):
        self.run_script(TOLD, 75, **self.slurm(SLURM_JOB_END_TIME=1))
        self.assertEqual(self.log(), ["x", "scontrol", "requeue", "4711"])

    def test_a_job_that_slurm_does_not_take_back_is_told_of(self):
        environment = self.slurm(SLURM_JOB_END_TIME=1)
        self.fake("scontrol", "exit 1")
        self.assertIn("submit the job again", self.run_script(TOLD, 75, **environment))

    def test_a_job_that_ends_otherwise_is_not_queued_again(self):
        for script, status in (("exit 0", 0), (f"{SAVED}; exit 0", 0), ("exit 3", 3)):
            self.run_script(script, status, **self.slurm(SLURM_JOB_END_TIME=1))
        self.assertNotIn("scontrol", self.log())

    def test_a_job_that_was_cancelled_is_not_queued_again(self):
        script = (f"trap '{TOLD.replace(chr(39), '')}; exit 0' TERM; echo up >> log; while :; do "
                  "sleep 0.02; done")
        run = self.start_shell(script,
                               environment=support.environment(**self.slurm(SLURM_JOB_END_TIME=1)))
        wait_until(lambda: self.log() == ["up"], "the command to start")
        run.terminate()
        self.assertEqual(run.wait(support.LIMIT_S), 75)
        self.assertEqual(self.log(), ["up"])

    def test_the_command_learns_from_slurm_when_the_allocation_ends(self):
        self.run_script("echo $SLURM_JOB_END_TIME >> log", 0, **self.slurm())
        self.assertEqual(self.log(), ["squeue", "x", "1900000000"])

    def test_slurm_is_not_asked_what_it_has_said(self):
        self.run_script("echo $SLURM_JOB_END_TIME >> log", 0, **self.slurm(SLURM_JOB_END_TIME=1))
        self.assertEqual(self.log(), ["x", "1"])

    def test_without_an_answer_of_slurm_the_command_runs_all_the_same(self):
        environment = self.slurm()
        for answer in ("exit 1", "echo NONE", "exec sleep 0", "echo"):
            (self.scratch / "log").unlink(missing_ok=True)
            self.fake("squeue", answer)
            self.run_script("echo end:$SLURM_JOB_END_TIME >> log", 0, **environment)
            self.assertEqual(self.log(), ["x", "end:"])


if __name__ == "__main__":
    support.main()
