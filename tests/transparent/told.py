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


TESTS = {"agentless": agentless}
