"""Tests of what users are told whose job cannot be checkpointed."""

import os
import signal

import nodes
from support import Job, must, until

WAITS = 'echo ready; while [ ! -e "$TRANSPARENT_GATE" ]; do sleep 0.01; done'


def agentless(place, options):
    """The agent of a job was killed: who asks for a checkpoint is told so at once."""
    del options
    for words in (["launch", "--name", "job", "--", "sh", "-c", WAITS], ["restart", "job"]):
        job = Job(place, *words)
        if words[0] == "launch":
            job.wait_for_lines(1)
        job.checkpoint()
        first = nodes.children_of(job.process.pid)[0]
        job.process.kill()
        job.process.wait()
        status, output, errors = place.verb("checkpoint", "job")
        must(status != 0 and "the agent was killed" in errors,
             f"ended with {status}: {output}{errors}")
        os.kill(first, signal.SIGKILL)
        until(lambda process=first: not nodes.children_of(process), "the job does not end")


def from_inside(place, options):
    """A job that asks for a checkpoint of itself is told to let others do so."""
    del options
    script = f"'{place.command}' checkpoint job 2>&1; echo status $?"
    status, output, errors = place.verb("launch", "--name", "job", "--", "sh", "-c", script)
    must(status == 0 and "from outside of the job" in output and "status 0" not in output,
         f"ended with {status}: {output}{errors}")


TESTS = {"agentless": agentless, "from_inside": from_inside}
