"""Tests of jobs that are killed or stopped, or whose agents are killed, at any moment."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time

import nodes
from support import LIMIT_S, Job, Scenario, first_difference, must, until

KILLS = 200
# None of them removes a directory before its end: an earlier version could not go on without it.
KILLED = ("counting", "threads", "memory", "tree", "internet")
LONGEST_S = 0.8  # until a kill; a job that nobody disturbs takes about as long


def has_ended(process):
    try:
        return "State:\tZ" in pathlib.Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill_something(job, draw):
    """Kills the agent and then the job, which runs on without it, or the job's first process,
    or its command."""
    first = nodes.children_of(job.process.pid)
    command = [process for one in first for process in nodes.children_of(one)][:1]
    victims = draw.choice([[job.process.pid, *first], first, command])
    for victim in victims:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(victim, signal.SIGKILL)
    job.wait()
    until(lambda: all(map(has_ended, first)), "a job that was killed does not end")


def must_be_done(scenario, job):
    """A job that was not killed has come to its end as the undisturbed one did."""
    status, errors = job.wait()
    must(status == scenario.status and scenario.reference.endswith(job.output()),
         f"ended with {status}: {first_difference(job.output(), scenario.reference)}{errors}")


def kills(place, options):
    """Killed at random moments, and gone on with each time, a job ends with the same result."""
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")
    draw = random.Random(seed)
    wanted = KILLS // 2 if os.geteuid() == 0 else KILLS  # as root, this is done for two users
    killed = number = 0
    while killed < wanted:
        number += 1
        scenario = Scenario(place, [place.own_copy(options.programs / draw.choice(KILLED))])
        for _ in range(draw.randrange(1, 8)):
            job = Job(place, *go_on(number), *scenario.command)
            time.sleep(draw.random() * LONGEST_S)
            if job.process.poll() is not None:
                break
            kill_something(job, draw)
            killed += 1
        else:
            job = Job(place, *go_on(number), *scenario.command)
        must_be_done(scenario, job)


def go_on(number):
    return ["launch", "--name", f"job{number}", "--continue", "--interval", "0.05", "--"]


HALTS = 50


def halted(place, options):
    """A process that gets SIGSTOP in a checkpoint stands still after it, and goes on later."""
    scenario = Scenario(place, [place.own_copy(options.programs / "counting")])
    job = scenario.launch()
    job.wait_for_lines(scenario.lines)
    command = nodes.children_of(nodes.children_of(job.process.pid)[0])[0]
    status = pathlib.Path(f"/proc/{command}/status")
    for _ in range(HALTS):
        asked = place.start([place.command, "checkpoint", "job", "--check"], subprocess.DEVNULL)
        time.sleep(random.random() * 0.02)
        os.kill(command, signal.SIGSTOP)
        _, errors = asked.communicate(timeout=LIMIT_S)
        must(asked.returncode == 0, errors)
        until(lambda: "State:\tT" in status.read_text(), "SIGSTOP is lost")
        os.kill(command, signal.SIGCONT)
    scenario.ends_well(job, job.output)


CHECKS = 15


def leaders(place, options):
    """The first thread of a process may end just when it is about to be stopped."""
    scenario = Scenario(place, [place.own_copy(options.programs / "leaders")], 1)
    job = scenario.launch()
    job.wait_for_lines(1)
    for _ in range(CHECKS):
        status, _, errors = place.verb("checkpoint", "job", "--check")
        # One that has ended may be there at each of the attempts.
        must(status == 0 or "than its first, which has ended" in errors,
             f"ended with {status}: {errors}")
    scenario.ends_well(job, job.output)


def successors(place, options):
    """A thread that starts a program ends the others of its process, just when they are about to be
    stopped."""
    scenario = Scenario(place, [place.own_copy(options.programs / "successors")], 1)
    job = scenario.launch()
    job.wait_for_lines(1)
    for _ in range(CHECKS):
        job.checkpoint("--check")
    scenario.ends_well(job, job.output)


CUT_SHORT = 5  # times


def is_traced(process):
    try:
        return "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False



def cut_short(place, options):
    """A restart ends if process 1 of the job is killed while it makes the others."""
    scenario = Scenario(place, [place.own_copy(options.programs / "tree")])
    job = scenario.launch()
    job.wait_for_lines(scenario.lines)
    job.checkpoint()
    job.kill()
    place.gate.touch()  # one that is killed too late ends by itself
    for _ in range(CUT_SHORT):
        job = Job(place, "restart", "job")
        first = []
        while not (first and is_traced(first[0])) and job.process.poll() is None:
            time.sleep(0.0003)
            first = nodes.children_of(job.process.pid)
        time.sleep(random.random() * 0.003)
        with contextlib.suppress(IndexError, ProcessLookupError):
            os.kill(first[0], signal.SIGKILL)
        status, errors = job.wait()
        must(status in (scenario.status, 125, 128 + signal.SIGKILL), f"{status}: {errors}")


ABANDONED = 6  # times
# Two processes that beat, and that ignore the signal by which calls for the agent end.
BEATS = """
import os, signal, time
signal.signal(signal.SIGTRAP, signal.SIG_IGN)
memory = bytearray(os.urandom(1 << 20) * 32)
who = "parent" if os.fork() else "child"
print(who, flush=True)
while True:
    with open(who, "w") as file: file.write(str(time.monotonic()))
    time.sleep(0.01)
"""


def beats(place, who):
    path = place.work / who
    text = path.read_text() if path.exists() else ""
    return float(text) if text else 0.0


def must_have_ended_or_run(place, first, what):
    """All of a job whose agent was killed goes on, or none of it."""
    since = time.monotonic()
    until(lambda: has_ended(first) or min(beats(place, who) for who in ("parent", "child")) > since,
          f"{what}, and neither ended nor ran on with its agent gone: {nodes.children_of(first)}")


def abandoned(place, options):
    """If the agent is killed while processes do calls for it, or while they are made again, the
    job ends or runs on as a whole."""
    del options
    command = ["launch", "--name", "job", "--", "/usr/bin/python3", "-c", BEATS]
    for number in range(ABANDONED):
        is_restart = number % 2 == 1  # of the version that the round before has made
        job = Job(place, *(["restart", "job"] if is_restart else command))
        if is_restart:
            until(lambda agent=job.process.pid: [one for first in nodes.children_of(agent)
                                                 for one in nodes.children_of(first)],
                  "no process is restored")
            time.sleep(random.random() * 0.1)
        else:
            job.wait_for_lines(2)
            job.checkpoint()
            place.start([place.command, "checkpoint", "job", "--check"], subprocess.DEVNULL)
            time.sleep(random.random() * 0.03)
        children = nodes.children_of(job.process.pid)
        must(children, f"the agent has no job: {job.process.poll()}")
        first = children[0]
        os.kill(job.process.pid, signal.SIGKILL)
        try:
            must_have_ended_or_run(place, first, "restored" if is_restart else "checkpointed")
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended with the agent
                os.kill(first, signal.SIGKILL)
        job.wait()
        until(lambda first=first: has_ended(first), "a job that was killed does not end")


def must_end(agent, first, what):
    until(lambda: has_ended(first), f"{what} is left behind by agent {agent}, which was killed")


def widowed(place, options):
    """The agent of one node is killed alone. A checkpoint fails at once and names the node, the job
    runs on, and nothing is left of the node when the job has been killed on the first one."""
    on = nodes.OnNodes(place, 3, ["--node-timeout", str(LIMIT_S * 10)])
    scenario = Scenario(place, [place.own_copy(options.programs / "counting")])
    job = on.launch(Job, scenario.command)
    job.wait_for_lines(scenario.lines)
    for round_number in range(2):
        job.checkpoint("--level", "3")
        agent = on.agents(job)[round_number]
        first = nodes.children_of(agent)[0]
        os.kill(agent, signal.SIGKILL)
        status, _, errors = place.verb("checkpoint", "job", "--level", "3")
        must(status != 0 and f"node{round_number + 1} cannot be reached" in errors,
             f"the lost node is not named: {errors}")
        must(job.process.poll() is None, f"the job has ended: {job.process.poll()}")
        on.kill(job)
        must_end(agent, first, "process 1 of a node")
        killed, job = job, on.restart(Job)
        scenario.wait_for_more(job, killed)
    scenario.ends_well(job, job.output, begins_anywhere=True)


TESTS = {"widowed": widowed, "kills": kills, "halted": halted, "leaders": leaders,
         "abandoned": abandoned, "successors": successors, "cut_short": cut_short}
