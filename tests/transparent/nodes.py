"""Jobs on several nodes, all of them this machine: each node has an agent, namespaces and a place
in the tiers of its own."""

import contextlib
import os
import pathlib
import shutil
import signal
import time

LIMIT_S = 120


def children_of(process):
    try:
        return [int(word) for task in pathlib.Path(f"/proc/{process}/task").iterdir()
                for word in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return []


def is_agent(process):
    """Whether the process looks after one of the other nodes."""
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return False
    return words[1:2] == [b"node"]


def agents_of(process):
    """The agents of the other nodes, in their order, of a job whose first agent is `process`."""
    return sorted(child for child in children_of(process) if is_agent(child))


def kill_node(agent):
    """Kills the agent of a node and the job's processes there: with the first process of its PID
    namespace the kernel ends all the others."""
    for victim in [*children_of(agent), agent]:
        with contextlib.suppress(ProcessLookupError):  # it has ended because of those before it
            os.kill(victim, signal.SIGKILL)


class OnNodes:
    """Says how a job on `count` nodes is started, killed, and started again."""

    def __init__(self, place, count, options=()):
        self.place = place
        self.words = ["--emulated-nodes", count, *options]

    def launch(self, make_job, command):
        self.place.gate.unlink(missing_ok=True)
        return make_job(self.place, "launch", "--name", "job", *self.words, "--", *command)

    def restart(self, make_job):
        return make_job(self.place, "restart", "job", *self.words)

    def agents(self, job):
        """Returns the agents of the other nodes, in their order."""
        return agents_of(job.process.pid)

    def kill(self, job):
        """The processes of the first node, which ends the job on all of them."""
        for child in set(children_of(job.process.pid)) - set(self.agents(job)):
            os.kill(child, signal.SIGKILL)
        job.wait()

    def lose(self, job, number):
        """A node with its agent, its processes, and all that its tiers held."""
        kill_node(self.agents(job)[number - 1])
        for directory in self.place.root.glob(f"memory/*/node{number}"):
            shutil.rmtree(directory)

    def end(self, job):
        """Waits until a job that has lost a node has ended by itself, or ends it."""
        end_s = time.monotonic() + LIMIT_S / 10
        while job.process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.05)
        if job.process.poll() is None:
            self.kill(job)
        job.wait()
