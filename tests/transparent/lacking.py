"""Tests of restarts for which something of the machine does not suffice."""

import os
import shutil
import socket

import nodes
from support import Job, Place, Scenario, must

ALONE = 64731  # a user of whom nobody else has processes
COUNTS = """
import ctypes, decimal, hashlib, json, os, socket, sqlite3, ssl, time
child = os.fork()
for line in range(8): print("parent" if child else "child", line, flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
if not child: os._exit(0)
os.waitpid(child, 0)
print(json.dumps(list(range(5))))
"""


def must_refuse(place, under, what):
    status, output, errors = place.run([*under, place.command, "restart", "job"])
    must(status == 125 and not output, f"with {under} it ended with {status}: {output}")
    must(what in errors and "version" not in errors, f"says nothing of {what}: {errors}")


def must_go_on_from_newest(scenario, under, what):
    job = scenario.launch()
    job.wait_for_lines(16)
    job.checkpoint("--level", "4")
    job.checkpoint()
    job.kill()
    must_refuse(scenario.place, under, what)
    job = Job(scenario.place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)
    _, history, _ = scenario.place.verb("history", "job")
    must("went on from version 2" in history, f"an older version was taken: {history}")


def lacking(place, options):
    """A restart that may not open as many files, or make as many processes, as it must says so. It
    takes no older version instead, and can be made once more."""
    command = ["/usr/bin/python3", "-c", COUNTS]
    must_go_on_from_newest(Scenario(place, command), ["prlimit", "--nofile=20:20"], "ulimit -n")
    if os.geteuid() != 0 or place.user == 0:
        return  # root may make as many as it likes
    alone = Place(options.diapause, ALONE)
    try:
        # `restart` itself, process 1, and one of two.
        must_go_on_from_newest(Scenario(alone, command), ["prlimit", "--nproc=3"], "ulimit -u")
    finally:
        alone.remove()


def emptied(place, options):
    """The directories of tiers are removed while a job runs. The next checkpoint makes them again,
    on one node and on two."""
    on_nodes = nodes.OnNodes(place, 2)
    command = [place.own_copy(options.programs / "counting")]
    for on in (None, on_nodes):
        scenario = Scenario(place, command)
        job = scenario.launch() if on is None else on.launch(Job, command)
        job.wait_for_lines(scenario.lines)
        job.checkpoint("--level", "4")
        for tiers in (["global"], ["memory"], ["memory", "global"]):
            for tier in tiers:
                shutil.rmtree(place.root / tier)
            job.checkpoint("--level", "4")
        for job_directory in (place.root / "global").iterdir():
            shutil.rmtree(job_directory)
        job.checkpoint("--level", "4")
        shutil.rmtree(place.root / "memory")
        job.kill() if on is None else on.kill(job)
        job = Job(place, "restart", "job") if on is None else on.restart(Job)
        scenario.ends_well(job, job.output, begins_anywhere=True)
        for tier in ("memory", "global"):  # a job of another number of nodes has the name next
            shutil.rmtree(place.root / tier)


WRITES = """
import os, socket, time
results, gone = open("results", "w+"), open("gone", "w")
for file in (results, gone): print("from the job", file=file, flush=True)
door = socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
results.seek(0)
print(results.read(), end="")
"""


def untouched(place, options):
    """A restart that is refused leaves the files of the job as they are."""
    del options
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", WRITES)
    job.wait_for_lines(1)
    port = int(job.output())
    job.checkpoint()
    job.kill()
    results, gone = place.work / "results", place.work / "gone"
    results.write_text("changed since")
    gone.unlink()
    with socket.create_server(("127.0.0.1", port)):
        status, _, errors = place.verb("restart", "job")
        must(status == 125 and f"127.0.0.1:{port}" in errors, f"ended with {status}: {errors}")
    must(results.read_text() == "changed since", f"it was written: {results.read_text()}")
    must(not gone.exists(), "a file that was gone is there again")
    place.gate.touch()
    status, output, errors = place.verb("restart", "job")
    must(status == 0 and output == "from the job\n", f"ended with {status}: {output}{errors}")
    must(results.read_text() == gone.read_text() == "from the job\n", "files are not restored")


TESTS = {"lacking": lacking, "emptied": emptied, "untouched": untouched}
