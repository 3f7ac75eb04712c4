"""Launched jobs of the study of transparent checkpoints: one, or several side by
side as emulated nodes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import shutil
import subprocess
import time

from diapause import records
from diapause.study import options, programs

WAIT_S = 300  # for what another process does, on a machine that may be busy
ATTEMPTS = 4
PORT_IN_USE = "Address already in use"


class Job:
    """A launched job in tiers of its own."""

    def __init__(self, command, directory, where, name):
        self.name = name
        self.command = str(command.resolve())
        self.directory = directory
        self.where = where
        config = directory / "diapause.toml"
        config.write_text(where.toml())
        self.settings = {"DIAPAUSE_CONFIG": str(config)}

    def run(self, words):
        """To its end; (seconds, standard output)."""
        return programs.output_of([self.command, "launch", "--name", self.name, "--", *words],
                                  self.directory, **self.settings)

    @contextlib.contextmanager
    def beside(self, *words):
        """Runs meanwhile, and is ended behind it."""
        with open(self.directory / "said", "w") as said:
            process = subprocess.Popen([self.command, *words], cwd=self.directory,
                                       env=programs.environment(**self.settings),
                                       stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(WAIT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def wait_until(self, is_there, process, what):
        end_s = time.monotonic() + WAIT_S
        while not is_there():
            if process.poll() is not None or time.monotonic() > end_s:
                said = (self.directory / "said").read_text()[-1000:]
                raise programs.RunError(
                    f"{what} did not come to pass: {records.printable(said.strip())}")
            time.sleep(0.1)

    def checkpoint(self, level):
        """(seconds, what it printed)."""
        return programs.output_of([self.command, "checkpoint", self.name, "--level", str(level)],
                                  self.directory, **self.settings)

    def events(self, what):
        """The lines of the ledger."""
        return programs.ledger_of(self.where).events(what)

    def lose_nodes(self):
        """Removes what lies in the memory of the nodes."""
        for job in self.where.global_.iterdir():
            shutil.rmtree(self.where.memory / job.name, ignore_errors=True)

    def asks(self, *words):
        """The status of a command about this job."""
        return subprocess.run([self.command, *words], env=programs.environment(**self.settings),
                              capture_output=True).returncode


@contextlib.contextmanager
def job_of(arguments, directory, name=programs.NAME):
    with programs.places(options.directory(arguments)) as where:
        yield Job(arguments.command, directory, where, name)


def checkpoint_and_restart(job, words, start_s):
    name = programs.NAME
    with job.beside("launch", "--name", name, "--", *words) as process:
        job.wait_until(lambda: job.asks("checkpoint", name, "--check") == 0, process, "the job")
        time.sleep(1.5 * start_s)  # until its ranks have found each other and compute
        took_s, _ = programs.output_of([job.command, "checkpoint", name, "--level", "4"],
                                       job.directory, **job.settings)
        job.wait_until(lambda: programs.ledger_of(job.where).events("checkpoint"), process,
                       "the line of the checkpoint")
        (taken,) = programs.ledger_of(job.where).events("checkpoint")
    with job.beside("restart", name) as process:
        job.wait_until(lambda: programs.ledger_of(job.where).events("restart"), process,
                       "the restart")
        (restart,) = programs.ledger_of(job.where).events("restart")
    return {"checkpoint_s": took_s, "stood_still_s": taken.fields["blocked_s"],
            "image_bytes": taken.fields["bytes_total"], "restart_s": restart.fields["seconds"]}


def together(calls):
    """Seconds until all of these, begun at once, are done."""
    begin_s = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(call) for call in calls]:
            future.result()
    return time.monotonic() - begin_s


@contextlib.contextmanager
def jobs_of(arguments, nodes, directory):
    with contextlib.ExitStack() as stack:
        made = []
        for node in range(nodes):
            own = directory / f"node-{node}"
            own.mkdir(exist_ok=True)
            made.append(stack.enter_context(job_of(arguments, own, f"{programs.NAME}-{node}")))
        yield made


def checkpoints_at_once(jobs, words, start_s):
    """The first checkpoint does not count: it asks for the memory of its slot."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(job.beside("launch", "--name", job.name, "--", *words))
                   for job in jobs]
        for job, process in zip(jobs, running):
            job.wait_until(lambda job=job: job.asks("checkpoint", job.name, "--check") == 0,
                           process, "the job")
        time.sleep(1.5 * start_s)  # until the ranks have found each other and compute
        seconds = [together([lambda job=job: job.checkpoint(level) for job in jobs])
                   for level in (1, 1, 4)]
        for job, process in zip(jobs, running):
            job.wait_until(lambda job=job: len(job.events("checkpoint")) == 3, process,
                           "the line of the checkpoint")
        taken = [job.events("checkpoint") for job in jobs]
    return {"image_bytes": sum(lines[2].fields["bytes_total"] for lines in taken),
            "stop_s": max(lines[1].fields["blocked_s"] for lines in taken), "local_s": seconds[1],
            "global_s": seconds[2]}


def restarts_at_once(jobs):
    with contextlib.ExitStack() as stack:
        for job in jobs:
            job.lose_nodes()
        running = [stack.enter_context(job.beside("restart", job.name)) for job in jobs]
        for job, process in zip(jobs, running):
            job.wait_until(lambda job=job: job.events("restart"), process, "the restart")
        lines = [job.events("restart")[0].fields for job in jobs]
    return {"restart_s": max(line["seconds"] for line in lines),
            "restart_level": min(line["level"] for line in lines)}


def again(measure, *arguments):
    """Returns what `measure` measures. It starts from the beginning if another program of this
    machine has taken a port of the job before its restart."""
    for _ in range(ATTEMPTS - 1):
        try:
            return measure(*arguments)
        except programs.RunError as error:
            if PORT_IN_USE not in str(error):
                raise
    return measure(*arguments)
