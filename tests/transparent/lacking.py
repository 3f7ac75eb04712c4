"""Tests of restarts for which something of the machine does not suffice."""

import contextlib
import os
import pathlib
import shutil
import socket

import nodes
from support import Job, Place, Scenario, Skipped, must

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


HOLDS = """
import hashlib, os, random, time
held = random.Random(7).randbytes(24 << 20)
for line in range(8): print(line, flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
print(hashlib.sha256(held).hexdigest())
"""


def cramped(place, options):
    """The memory of the node is too small for an image. It lies in the global tier if it is of
    level 4, or on the disk of the node if there is one, and is refused otherwise."""
    del options
    if os.geteuid() != 0:
        raise Skipped("needs to mount a file system")
    if place.user != 0:
        return
    scenario = Scenario(place, ["/usr/bin/python3", "-c", HOLDS])
    small = ["unshare", "--mount", "sh", "-c",
             f"mount -t tmpfs -o size=8m,mode=700 tmpfs '{place.root / 'memory'}' && exec \"$@\"",
             "sh"]
    disk = str(place.root / "disk")
    for local, level, where in (("", "4", "global"), (disk, "1", "local"), (disk, "4", "global")):
        place.settings = {"DIAPAUSE_LOCAL_PATH": local}
        (place.root / "memory").mkdir(mode=0o700, exist_ok=True)
        place.gate.unlink(missing_ok=True)
        job = Job(place, "launch", "--name", "job", "--", *scenario.command, under=small)
        job.wait_for_lines(scenario.lines)
        if not local:
            status, _, errors = place.verb("checkpoint", "job")
            must(status == 3 and "memory tier" in errors and "is full" in errors,
                 f"ended with {status}: {errors}")
        for _ in range(3):
            job.checkpoint("--level", level)
        errors = job.kill()
        must(errors.count(f"captures are written to the {where} tier") == 1,
             f"nothing is said of the {where} tier: {errors}")
        job = Job(place, "restart", "job")
        scenario.ends_well(job, job.output, begins_anywhere=True)


@contextlib.contextmanager
def reserve(pages):
    """The machine keeps so many more huge pages in reserve."""
    pool = pathlib.Path("/proc/sys/vm/nr_hugepages")
    before = int(pool.read_text())
    if os.geteuid() != 0 or not os.access(pool, os.W_OK):
        raise Skipped("needs to reserve huge pages")
    try:
        pool.write_text(str(before + pages))
        if int(pool.read_text()) != before + pages:
            raise Skipped("the machine has no huge pages")
        yield
    finally:
        pool.write_text(str(before))


def reserved(place, options):
    """Memory of huge pages that the machine keeps in reserve, and has no more at a restart."""
    program = place.own_copy(options.programs / "reserved")
    with reserve(8):
        scenario = Scenario(place, [program])
        scenario.goes_on()
        job = scenario.launch()
        job.wait_for_lines(scenario.lines)
        job.checkpoint()
        job.kill()
    killed, job = job, Job(place, "restart", "job")
    scenario.wait_for_more(job, killed)
    job.checkpoint()
    job.kill()
    job = Job(place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)


TESTS = {"lacking": lacking, "reserved": reserved, "emptied": emptied, "untouched": untouched,
         "cramped": cramped}
