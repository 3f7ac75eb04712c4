"""Launched jobs of the study of transparent checkpoints, on one node or several emulated ones."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time

from diapause import records
from diapause.study import options, programs

NAME = programs.NAME
WAIT_S = 300  # for what another process does, on a machine that may be busy
ATTEMPTS = 4
PORT_IN_USE = "Address already in use"


class Job:
    """A launched job in tiers of its own; `nodes`: how many emulated ones, None: this machine."""

    def __init__(self, command, directory, where, nodes):
        self.command = str(command.resolve())
        self.directory = directory
        self.where = where
        self.on = [] if nodes is None else ["--emulated-nodes", str(nodes)]
        config = directory / "diapause.toml"
        config.write_text(where.toml())
        self.settings = {"DIAPAUSE_CONFIG": str(config)}
        if nodes is not None:
            # Open MPI fills one node before the next otherwise. Other launchers do not read this.
            self.settings["OMPI_MCA_rmaps_base_mapping_policy"] = "node"

    def _launch(self, words):
        return [self.command, "launch", "--name", NAME, *self.on, "--", *words]

    def run(self, words):
        """To its end; (seconds, standard output)."""
        return programs.output_of(self._launch(words), self.directory, **self.settings)

    @contextlib.contextmanager
    def _beside(self, words):
        """Runs meanwhile, and is ended behind it."""
        with open(self.directory / "said", "w") as said:
            process = subprocess.Popen(words, cwd=self.directory,
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

    def _wait_until(self, is_there, process, what):
        end_s = time.monotonic() + WAIT_S
        while not is_there():
            if process.poll() is not None or time.monotonic() > end_s:
                said = (self.directory / "said").read_text()[-1000:]
                raise programs.RunError(
                    f"{what} did not come to pass: {records.printable(said.strip())}")
            time.sleep(0.1)

    def checkpoints(self, words, start_s, levels):
        """Launches the program, which ends behind the last checkpoint. For each level (seconds that
        the command took, fields of the ledger's line)."""
        with self._beside(self._launch(words)) as process:
            self._wait_until(self._can_be_asked, process, "the job")
            time.sleep(1.5 * start_s)  # until its ranks have found each other and compute
            took_s = [programs.output_of([self.command, "checkpoint", NAME, "--level", str(level)],
                                         self.directory, **self.settings)[0] for level in levels]
            self._wait_until(lambda: len(self._lines("checkpoint")) == len(levels), process,
                             "the line of the last checkpoint")
            return [(seconds, line.fields)
                    for seconds, line in zip(took_s, self._lines("checkpoint"))]

    def restart(self):
        """Restarts the program, which ends when it has gone on. The fields of the ledger's line."""
        with self._beside([self.command, "restart", *self.on, NAME]) as process:
            self._wait_until(lambda: self._lines("restart"), process, "the restart")
            return self._lines("restart")[0].fields

    def lose_nodes(self):
        """Removes what lies in the memory of the nodes."""
        for job in self.where.global_.iterdir():
            shutil.rmtree(self.where.memory / job.name, ignore_errors=True)

    def _lines(self, what):
        return programs.ledger_of(self.where).events(what)

    def _can_be_asked(self):
        return subprocess.run([self.command, "checkpoint", NAME, "--check"],
                              env=programs.environment(**self.settings),
                              capture_output=True).returncode == 0


@contextlib.contextmanager
def job_of(arguments, directory, nodes=None):
    with programs.places(options.directory(arguments)) as where:
        yield Job(arguments.command, directory, where, nodes)


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
