"""Tests of jobs that are stopped before their end, and go on by the same command."""

import signal

from support import Job, Scenario, first_difference, must, until


class InTime:
    """A job that is stopped before its end, by a line of a batch script that is submitted again."""

    def __init__(self, place, options, settings, on=()):
        self.place = place
        self.on = on
        self.scenario = Scenario(
            place, ["sh", "-c", f"{place.own_copy(options.programs / 'counting')}; test $? = 7"])
        must(self.scenario.status == 0, f"undisturbed, it ended with {self.scenario.status}")
        place.settings = settings
        place.gate.unlink()
        self.printed = ""

    def submit(self, under=()):
        return Job(self.place, "launch", "--name", "job", "--continue", *self.on, "--",
                   *self.scenario.command, under=under)

    def stops(self, job, why):
        status, errors = job.wait()
        must(status == 75 and why in errors, f"ended with {status}: {errors}")
        must(".diapause-" not in errors, f"it tells of a file of `run` as of the job's: {errors}")
        self.printed += job.output()

    def is_completed(self):
        """Nothing is missing of what it prints, and nothing comes twice; the job is finished, and
        another start begins anew."""
        self.place.settings = {}
        for earlier in (self.printed, ""):
            job = self.submit()
            self.place.gate.touch()
            status, errors = job.wait()
            printed = earlier + job.output()
            must(status == 0 and printed == self.scenario.reference
                 and "cannot be reached" not in errors,
                 f"ended with {status}: "
                 f"{first_difference(printed, self.scenario.reference)}{errors}")


def in_time(place, options):
    """A signal that means so stops a job after a last checkpoint, and the same
    command goes on from there."""
    job_in_time = InTime(place, options, {"DIAPAUSE_DEADLINE_SIGNALS": "SIGUSR1,SIGTERM"})
    for number in (signal.SIGUSR1, signal.SIGTERM):
        job = job_in_time.submit()
        if not job_in_time.printed:
            job.wait_for_lines(8)
        job.checkpoint("--check")
        job.process.send_signal(number)
        job_in_time.stops(job, f"stopped in time: {signal.Signals(number).name}: version")
    # `diapause run` sends signals to all processes of its group.
    job = job_in_time.submit(under=[place.command, "run", "--"])
    until(lambda: place.verb("checkpoint", "job", "--check")[0] == 0, "the job does not run")
    job.process.send_signal(signal.SIGUSR1)
    job_in_time.stops(job, "the command stopped in time: SIGUSR1: version 3 at level")
    job_in_time.is_completed()


def allocation(place, options):
    """A job is stopped before the end of its allocation."""
    job_in_time = InTime(place, options,
                         {"DIAPAUSE_DEADLINE_IN_S": "5", "DIAPAUSE_DEADLINE_MARGIN_S": "1"})
    job_in_time.stops(job_in_time.submit(),
                      "stopped in time: the allocation ends: version 1 at level")
    job_in_time.is_completed()


def nodes_in_time(place, options):
    """Does the same on several nodes: all of them stop, and all of them are finished."""
    job_in_time = InTime(place, options, {"DIAPAUSE_DEADLINE_SIGNALS": "SIGUSR1"},
                         on=["--emulated-nodes", "3"])
    job = job_in_time.submit()
    job.wait_for_lines(8)
    job.process.send_signal(signal.SIGUSR1)
    job_in_time.stops(job, "stopped in time: SIGUSR1: version 1")
    job_in_time.is_completed()


def not_in_time(place, options):
    """A job of which no last checkpoint can be taken goes on and gets the signal."""
    place.settings = {"DIAPAUSE_DEADLINE_SIGNALS": "SIGUSR1"}
    refused_program = place.own_copy(options.programs / "refused")
    place.gate.unlink(missing_ok=True)
    hears = f"trap 'echo heard; exit 9' USR1; {refused_program} & while :; do sleep 0.02; done"
    job = Job(place, "launch", "--name", "job", "--", "sh", "-c", hears)
    job.wait_for_lines(4)
    job.process.send_signal(signal.SIGUSR1)
    status, errors = job.wait()
    must(status == 9 and "heard" in job.output() and "the last checkpoint failed" in errors,
         f"ended with {status}: {errors}")


TESTS = {"in_time": in_time, "allocation": allocation, "nodes_in_time": nodes_in_time,
         "not_in_time": not_in_time}
