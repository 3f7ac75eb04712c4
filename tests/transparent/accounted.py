"""Tests of what the ledger says of launched jobs: how long the steps of their checkpoints took."""

import json

from support import Job, Scenario, must

STOPPED = ["freeze", "dump", "connections", "capture"]
# A process that computes for 0.2 s of processor time, and so does one that it starts.
COMPUTES = """
import os, time
child = os.fork()
while time.process_time() < 0.2:
    pass
if child:
    os.waitpid(child, 0)
"""


def lines_of(place, event):
    text = next(place.root.glob("global/*/ledger.jsonl")).read_text()
    return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]


def phases_of(place, version):
    return [phase for line in lines_of(place, "energy") for phase in line["phases"]
            if phase["version"] == version]


def must_add_up(place, version, is_forked):
    phases = phases_of(place, version)
    names = [phase["phase"] for phase in phases]
    levels = ["keep", "publish", "global", "publish"]
    must(names == STOPPED + ["drain"] * is_forked + levels, f"version {version} has {names}")
    beside = {phase["phase"]: phase["beside"] for phase in phases}
    must(all(beside[name] == ("nothing" if name in STOPPED else "program") for name in names),
         f"beside version {version}: {beside}")
    told_s = lines_of(place, "checkpoint")[version - 1]["blocked_s"]
    added_s = sum(phase["seconds"] for phase in phases if phase["phase"] in STOPPED)
    must(abs(told_s - added_s) < 1e-3 * told_s + 1e-5,
         f"the job stood still for {told_s} s, and for {added_s} s in all phases")


def accounted(place, options):
    """A job stands still for as long as its phases take, and a restart has phases, too."""
    scenario = Scenario(place, [place.own_copy(options.programs / "counting")])
    job = scenario.launch()
    job.wait_for_lines(scenario.lines)
    for version, capture in enumerate(("copy", "copy-on-write"), 1):
        place.capture = capture
        if version > 1:
            job.kill()
            job = Job(place, "restart", "job")
        job.checkpoint("--level", "4")
        must_add_up(place, version, capture == "copy-on-write")
    scenario.ends_well(job, job.output, begins_anywhere=True)
    names = {phase["phase"] for phase in phases_of(place, 1)}
    must(names > {"inventory", "verify", "restore"}, f"version 1 has {names}")
    status, printed, errors = place.verb("energy", "job")
    must(status == 0 and all(name in printed for name in STOPPED),
         f"energy says {printed}{errors}")


def processor_time(place, options):
    """All processes that a launched job has started belong to it, also those that have ended."""
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", COMPUTES)
    status, errors = job.wait()
    must(status == 0, f"the job ended with {status}: {errors}")
    used_s = [line["processors"]["job_s"] for line in lines_of(place, "energy")]
    must(sum(used_s) > 0.35, f"the job used {used_s} s")  # the kernel counts in ticks of 10 ms


TESTS = {"accounted": accounted, "processor_time": processor_time}
