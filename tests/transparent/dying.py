"""Tests of checkpoints of a job that is failing already: one of its processes was killed, and its
launcher has not ended the rest yet."""

import os
import pathlib
import signal

import nodes
from support import Job, Scenario, must

# A launcher that takes its time when one of its two workers dies, and then fails.
LAUNCHER = """
import os, sys, time
gate = os.environ["TRANSPARENT_GATE"]
ready, is_ready = os.pipe()
def work(rank):
    for line in range(4): print("rank", rank, "line", line, flush=True)
    os.write(is_ready, b".")
    while not os.path.exists(gate): time.sleep(0.01)
    os._exit(0)
for rank in range(2):
    os.fork() or work(rank)
    os.read(ready, 1)
for rank in range(2):
    if os.wait()[1] == 0: continue
    print("a rank has died", flush=True)
    while not os.path.exists(gate + "-fails"): time.sleep(0.01)
    sys.exit(3)
print("done", flush=True)
"""


def second_rank(job):
    """As seen from here."""
    command = nodes.children_of(nodes.children_of(job.process.pid)[0])[0]
    return sorted(nodes.children_of(command))[1]


def launch_and_kill_a_rank(scenario):
    """A job with a version from before, and one from after a rank has died."""
    job = scenario.launch()
    job.wait_for_lines(8)
    job.checkpoint("--level", "4")
    os.kill(second_rank(job), signal.SIGKILL)
    job.wait_for_lines(9)
    job.checkpoint("--level", "4")
    scenario.fails.touch()
    status, errors = job.wait()
    must(status == 3, f"it failed with {status}: {errors}")
    must("after version 2, which may hold a job that was failing already" in errors, errors)


def dying(place, options):
    scenario = Scenario(place, ["/usr/bin/python3", "-c", LAUNCHER])
    scenario.fails = pathlib.Path(f"{place.gate}-fails")
    launch_and_kill_a_rank(scenario)
    job = Job(place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)
    _, history, _ = place.verb("history", "job")
    must("went on from version 1" in history and
         "could not be had: version 2: the job failed soon after it" in history, history)
    must("?" not in history, f"a reason has what cannot be printed in a line: {history}")


TESTS = {"dying": dying}
