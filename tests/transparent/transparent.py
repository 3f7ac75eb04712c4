#!/usr/bin/env python3
"""Runs programs that know nothing of checkpoints undisturbed, checkpointed and going on, killed and
restarted, and restarted twice, as this user and, if that is root, as an ordinary one. Their output
and their end must be the same.

    transparent.py TEST --programs DIRECTORY --diapause COMMAND
"""

import argparse
import ctypes
import fcntl
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import accounted
import disturbed
import dying
import failing
import in_time
import inputs
import kernels
import lacking
import mapped
import named_files
import nodes
import queues
import relocated
import services
import sparse
import told
import unmodified
import whole
from support import (BEFORE_GATE, BIG, LIMIT_S, NOBODY, SKIPPED, Failed, Job, Place, Scenario,
                     Skipped, damage, is_open_mpi, must, one_on_each_node, until)


def program_test(name, lines=8):
    def test(place, options):
        Scenario(place, [place.own_copy(options.programs / name)], lines).all()

    return test


def pages(place, options):
    """48 MiB of memory that is nearly empty: most of it costs nothing."""
    scenario = Scenario(place, [place.own_copy(options.programs / "pages")])
    scenario.all()
    bytes_stored = sum(path.stat().st_size for path in place.root.glob("memory/**/*.img"))
    must(0 < bytes_stored < 24 << 20, f"the image has {bytes_stored} bytes")


def increments(place, options):
    """Checkpoints that hold what has changed since the last ones, in whatever
    way, and what has not."""
    place.capture = "incremental"
    place.settings["DIAPAUSE_CAPTURE_AUDIT_PERCENT"] = "0"  # nothing is found by chance
    scenario = Scenario(place, [place.own_copy(options.programs / "writes")])
    job = scenario.launch()
    for lines in range(2, 14, 2):
        job.wait_for_lines(lines)
        job.checkpoint()
    job.kill()
    job = Job(place, "restart", "job")
    for _ in range(3):
        job.checkpoint()
    job.kill()
    job = Job(place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)


def flags_of_memory(job):
    """The flags of all mappings of its command."""
    command = nodes.children_of(nodes.children_of(job.process.pid)[0])[0]
    return re.findall(r"^VmFlags: (.*)$", pathlib.Path(f"/proc/{command}/smaps").read_text(), re.M)


def parts(place, options):
    """Increments of a job of which a part changes. What need not be copied is not forked by a
    checkpoint, but by the job later."""
    place.capture = "incremental"
    scenario = Scenario(place, [place.own_copy(options.programs / "parts")])
    job = scenario.launch()
    job.wait_for_lines(2)
    job.checkpoint()
    flags = flags_of_memory(job)
    for lines in range(6, 30, 4):
        job.wait_for_lines(lines)
        job.checkpoint()
        must(flags_of_memory(job) == flags, f"{flags} became {flags_of_memory(job)}")
    job.kill()
    job = Job(place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)


def properties(place, options):
    """Properties of memory that change while the checkpoint is about to begin."""
    scenario = Scenario(place, [place.own_copy(options.programs / "properties")], 2)
    scenario.goes_on()
    scenario.is_restarted(4)


def carried(place, options):
    """Memory that has not changed is not copied again, unless that is configured: damage in the
    file that is used again stays in it."""
    del options
    place.capture = "incremental"
    place.gate.unlink(missing_ok=True)
    for percent, is_carried in (("0", True), ("100", False)):
        place.settings["DIAPAUSE_CAPTURE_AUDIT_PERCENT"] = percent
        job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", BIG)
        job.wait_for_lines(1)
        for _ in range(4):
            job.checkpoint()
        images = [path for path in place.root.glob("memory/**/*") if path.is_file()
                  and path.stat().st_size > 192 << 20]
        # The next image goes where the version before the newest is, or to a file that is spare.
        others = sorted(images, key=lambda path: path.stat().st_mtime)[:-1]
        must(others, "there is no file for the next image")
        for path in others:
            with path.open("r+b") as spare:
                spare.seek(100 << 20)
                byte = spare.read(1)
                spare.seek(100 << 20)
                spare.write(bytes([byte[0] ^ 1]))
        job.checkpoint()
        status, output, errors = place.verb("verify", "job")
        must((status != 0) == is_carried,
             f"with an audit of {percent} %, verify says {status}: {output}{errors}")
        job.kill()


def waiting(place, options):
    """Calls of a second: it is checkpointed while they wait, and once only, so that
    they are waiting still."""
    scenario = Scenario(place, [place.own_copy(options.programs / "waiting")], 1)
    for disturb in (scenario.goes_on, lambda: scenario.is_restarted(1)):
        disturb()


def pipeline(place, options):
    del options
    scenario = Scenario(place,
                        ["sh", "-c",
                         "for i in $(seq 30); do echo $i; sleep 0.02; [ $i != 20 ] || while [ ! -e "
                         "$TRANSPARENT_GATE ]; do sleep 0.02; done; done | while read x; do echo "
                         "got $((x * x)); done"],
                        5)
    scenario.all()


def interpreter(place, options):
    del options
    source = """
import os, threading, time, hashlib
total = [0]
lock = threading.Lock()
def work(k):
    for i in range(20):
        value = int(hashlib.sha256(b"%d %d" % (k, i)).hexdigest(), 16) % 1000
        with lock: total[0] += value
        time.sleep(0.01)
for i in range(20):
    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)] if i == 5 else []
    for t in threads: t.start()
    time.sleep(0.02)
    for t in threads: t.join()
    while i == 12 and not os.path.exists(os.environ['TRANSPARENT_GATE']): time.sleep(0.02)
    print(i, total[0], flush=True)
"""
    Scenario(place, ["/usr/bin/python3", "-c", source], 4).all()


def mpi(place, options):
    """Two ranks and their launcher."""
    scenario = Scenario(place,
                        [options.mpirun, "-n", "2", place.own_copy(options.programs / "ring")])
    scenario.goes_on()
    scenario.is_restarted(2)


def fortran(place, options):
    """Two ranks of a Fortran program."""
    scenario = Scenario(place, [options.mpirun, "-n", "2",
                                place.own_copy(options.programs / "neighbours")])
    scenario.all()


def mpi_beside(place, options):
    """A job is restarted although another one was started beside it meanwhile."""
    scenario = Scenario(place,
                        [options.mpirun, "-n", "2", place.own_copy(options.programs / "ring")])
    job = scenario.launch()
    job.wait_for_lines(scenario.lines)
    job.checkpoint()
    job.kill()
    other = Job(place, "launch", "--name", "other", "--", *scenario.command)
    other.wait_for_lines(scenario.lines)
    job = Job(place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)
    scenario.ends_well(other, other.output)


LISTENS = """
import os, socket, time
door = socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
"""


def taken_port(place, options):
    """If a port of a job is another program's, the restart says whose, and is done later."""
    del options
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", LISTENS)
    job.wait_for_lines(1)
    port = int(job.output())
    job.checkpoint()
    job.kill()
    with socket.create_server(("127.0.0.1", port)):
        status, _, errors = place.verb("restart", "job")
        whose = f"process {os.getpid()} (python3)" if os.geteuid() == place.user else "process of"
        must(status == 125 and f"127.0.0.1:{port}" in errors and whose in errors,
             f"ended with {status}: {errors}")
    place.gate.touch()
    status, _, errors = place.verb("restart", "job")
    must(status == 0, f"ended with {status}: {errors}")


LISTENS_OFTEN = """
import os, socket, time
doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(10)]
print("listens", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
print(len({door.getsockname()[1] for door in doors}), flush=True)
"""
FEW_PORTS = "42000 42031"


HIGH_NUMBER = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
os.dup2(1, 300)
print("open", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
os.write(300, b"high\\n")
"""


def linked(place, options):
    """The first agent has a connection to each node, whatever the limit of open files is, and the
    job has the limit that its user has set."""
    del options
    launch = [place.command, "launch", "--name", "job", "--emulated-nodes", 16, "--", "sh", "-c",
              "ulimit -n"]
    status, output, errors = place.run(["prlimit", "--nofile=36:1024", *launch])
    must(status == 0 and output == "36\n", f"{status}: {output}{errors}")
    status, output, errors = place.run(["prlimit", "--nofile=64:64", *launch])
    must(status == 125 and output == "" and "ulimit -Hn" in errors, f"{status}: {output}{errors}")
    # One that has raised its own limit gets back what it had open beyond that of its user.
    on = nodes.OnNodes(place, 2)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        job = on.launch(Job, ["/usr/bin/python3", "-c", HIGH_NUMBER])
        job.wait_for_lines(1)
        job.checkpoint("--level", "2")
        on.kill(job)
        job = on.restart(Job)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    place.gate.touch()
    status, errors = job.wait()
    must(status == 0 and job.output() == "high\n", f"{status}: {job.output()}{errors}")


def crowded(place, options):
    """The agents of a restart leave the job its ports, although the kernel has hardly any others
    to give them."""
    del options
    has_own = os.readlink("/proc/self/ns/net") != os.readlink(f"/proc/{os.getppid()}/ns/net")
    if os.geteuid() != 0 or not has_own:
        raise Skipped("the ports of the machine cannot be limited")
    limit = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
    before = limit.read_text()
    on = nodes.OnNodes(place, 2)
    try:
        limit.write_text(FEW_PORTS)
        job = on.launch(Job, ["/usr/bin/python3", "-c", LISTENS_OFTEN])
        job.wait_for_lines(1)
        for _ in range(4):
            job.checkpoint("--level", "2")
            on.kill(job)
            job = on.restart(Job)
        job.checkpoint()
        place.gate.touch()
        status, errors = job.wait()
        must(status == 0 and job.output() == "10\n", f"{status}: {job.output()}{errors}")
    finally:
        limit.write_text(before)


class ScenarioOnNodes(Scenario):
    """A command that runs on several nodes."""

    def __init__(self, place, command, on, lines=8):
        super().__init__(place, command, lines)
        self.on = on

    def launch(self):
        return self.on.launch(Job, self.command)

    def restarted(self, level, lines):
        """Killed after a checkpoint and restarted; the same once more."""
        job = self.launch()
        job.wait_for_lines(lines)
        for _ in range(2):
            job.checkpoint("--level", level)
            self.on.kill(job)
            killed, job = job, self.on.restart(Job)
            self.wait_for_more(job, killed)
        self.ends_well(job, job.output, begins_anywhere=True)

    def survives(self, level, number):
        """The loss of a node, by what the others have."""
        job = self.launch()
        job.wait_for_lines(self.lines)
        job.checkpoint("--level", level)
        self.on.lose(job, number)
        self.on.end(job)
        job = self.on.restart(Job)
        self.ends_well(job, job.output, begins_anywhere=True)


def across(place, options):
    """Connections between two nodes, in every state."""
    scenario = ScenarioOnNodes(place, [place.own_copy(options.programs / "across")],
                               nodes.OnNodes(place, 2))
    scenario.goes_on()
    for lines in (scenario.lines, BEFORE_GATE):
        scenario.restarted(1, lines)
    scenario.survives(2, 1)


def prompt(place, options):
    """A checkpoint that is asked for while the agents have only just begun."""
    on = nodes.OnNodes(place, 2, ["--node-timeout", "5"])
    scenario = ScenarioOnNodes(place, [place.own_copy(options.programs / "counting")], on, lines=0)
    job = scenario.launch()
    for _ in range(8):
        job.checkpoint("--level", "2")
        on.kill(job)
        job = on.restart(Job)
    scenario.ends_well(job, job.output, begins_anywhere=True)


def silent(place, options):
    """A node that does not answer costs a checkpoint, and not the job."""
    for fan_out in (1, 16):
        silent_in_tree(place, options, fan_out)


def silent_in_tree(place, options, fan_out):
    on = nodes.OnNodes(place, 3, ["--node-timeout", "0.5", "--fan-out", fan_out])
    scenario = ScenarioOnNodes(place, [place.own_copy(options.programs / "across")], on)
    job = scenario.launch()
    job.wait_for_lines(scenario.lines)
    job.checkpoint()
    agent = on.agents(job)[1]
    os.kill(agent, signal.SIGSTOP)
    status, _, errors = place.verb("checkpoint", "job")
    must(status != 0 and "node2 did not answer within" in errors,
         f"the silent node is not named: {errors}")
    os.kill(agent, signal.SIGCONT)
    job.checkpoint("--level", "2")
    scenario.ends_well(job, job.output)


def mpi_nodes(place, options):
    """Four ranks on four nodes, of which one is lost with what it stored."""
    command = [options.mpirun, "-n", "4", *one_on_each_node(options.mpirun),
               place.own_copy(options.programs / "ring")]
    # Undisturbed, all ranks are on this machine.
    scenario = ScenarioOnNodes(place, [options.mpirun, "-n", "4",
                                       place.own_copy(options.programs / "ring")],
                               nodes.OnNodes(place, 4))
    scenario.command = command
    scenario.goes_on()
    scenario.survives(3, 2)
    # Without this, other jobs of this machine get the ports of one that is to be restarted.
    tells = Job(place, "launch", "--name", "tells", *scenario.on.words, "--",
                "sh", "-c", 'echo "$OMPI_MCA_btl_tcp_port_min_v4"')
    tells.wait()
    must(tells.output() == "0\n", "ports are not chosen by the kernel")


HEARS = "trap 'echo heard' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done"


def forwarding(place, options):
    """A signal that `launch` or `restart` gets is the command's."""
    del options
    job = Job(place, "launch", "--name", "job", "--", "sh", "-c", HEARS)
    job.wait_for_lines(1)
    job.process.send_signal(signal.SIGUSR1)
    until(lambda: "heard" in job.output(), "the signal has not come")
    job.checkpoint()
    job.kill()
    job = Job(place, "restart", "job")
    job.checkpoint()
    job.process.send_signal(signal.SIGUSR1)
    until(lambda: "heard" in job.output(), "the signal has not come to the restarted job")
    job.process.send_signal(signal.SIGTERM)
    status, errors = job.wait()
    must(status == 9, f"ended with {status}: {errors}")
    _, history, errors = place.verb("history", "job")
    must("went on from version 1 in " in history,
         f"the restart is not in the history: {history}{errors}")
    must("2 starts, 1 failure, 1 restart" in history,
         f"the killed start did not fail: {history}{errors}")


def interval(place, options):
    """Checkpoints that nobody asks for."""
    scenario = Scenario(place, [place.own_copy(options.programs / "counting")])

    def versions():
        try:
            return {path.parent.name for path in place.root.glob("memory/job-*/*/v*/manifest.a")}
        except FileNotFoundError:  # an old one went meanwhile
            return set()

    place.gate.unlink()
    job = Job(place, "launch", "--name", "job", "--interval", "0.2", "--", *scenario.command)
    seen = set()
    until(lambda: seen.update(versions()) or len(seen) >= 2, "no second checkpoint")
    job.kill()
    job = Job(place, "restart", "--interval", "0.2", "job")
    before = set(seen)
    until(lambda: seen.update(versions()) or len(seen) > len(before),
          "no checkpoint after the restart")
    scenario.ends_well(job, job.output, begins_anywhere=True)


def starters(place, options):
    """A process may be about to start a program (vfork) whenever it is stopped."""
    scenario = Scenario(place, [place.own_copy(options.programs / "starters")], 1)
    job = scenario.launch()
    job.wait_for_lines(1)
    for _ in range(10):
        job.checkpoint("--check")
    scenario.ends_well(job, job.output)


def slow_start(place, options):
    """Processes go on although one of them could not be stopped, and that one does when it can."""
    scenario = Scenario(place, [place.own_copy(options.programs / "slowstart")], 1)
    job = scenario.launch()
    job.wait_for_lines(1)
    time.sleep(0.3)
    status, _, errors = place.verb("checkpoint", "job")
    must(status == 3 and "cannot be stopped now" in errors, f"ended with {status}: {errors}")
    scenario.ends_well(job, job.output)


MARK = b"known by these words"


class Software:
    """A file as of a library, in a directory of which checkpoints hold no files, and a job of two
    processes that map it."""

    def __init__(self, place, options):
        self.place = place
        self.file = place.root.resolve() / "software" / "library"
        self.file.parent.mkdir()
        # Somewhere else than at the pages that the processes write to.
        self.bytes = bytes(range(251)) * 400
        self.bytes = self.bytes[:50_000] + MARK + self.bytes[50_000:]
        self.file.write_bytes(self.bytes)
        self.scenario = Scenario(place, [place.own_copy(options.programs / "mapped"), self.file])
        place.settings["DIAPAUSE_CAPTURE_REFERENCED_FILES"] = str(self.file.parent)

    def launch(self):
        job = self.scenario.launch()
        job.wait_for_lines(4)
        return job

    def replace(self, content):
        other = self.file.with_suffix(".new")
        other.write_bytes(content)
        other.rename(self.file)

    def copies_in_checkpoint(self, job, level):
        """Returns how often each image of a new version holds the marked page."""
        text = job.checkpoint("--level", str(level))
        version = re.search(r"version (\d+)", text).group(1)
        images = list(self.place.root.glob(f"*/job-*/**/v{version}-*/*.img"))
        must(images, f"no images: {text}")
        return {image.read_bytes().count(MARK) for image in images}

    def must_refuse(self, words, why):
        status, output, errors = self.place.verb("restart", "job", *words)
        must(status == 125 and output == "" and str(self.file) in errors and why in errors,
             f"{status} {output}{errors}")

    def ends_well(self, job):
        self.scenario.ends_well(job, job.output, begins_anywhere=True)


def libraries(place, options):
    """A file of the machine is not in checkpoints below level 4: if it is another one at the
    restart, nothing is begun."""
    software = Software(place, options)
    job = software.launch()
    for version in ("1", "2"):
        must(software.copies_in_checkpoint(job, 1) == {0}, "the image holds what the file holds")
        job.kill()
        software.replace(software.bytes.replace(MARK, MARK.upper()))
        software.must_refuse([], "its bytes from")
        software.replace(software.bytes[:40_000])
        software.must_refuse([version], "it has 40000 bytes")
        software.file.unlink()
        software.must_refuse([], "No such file")
        software.replace(software.bytes)
        job = Job(place, "restart", "job")
    must(software.copies_in_checkpoint(job, 1) == {0}, "the image holds what the file holds")
    # The mapped file is gone, and what stands in its place is not what was mapped.
    software.replace(software.bytes.upper())
    must(software.copies_in_checkpoint(job, 1) == {1},
         "the image relies on a file that was not mapped")
    job.kill()
    software.ends_well(Job(place, "restart", "job"))


def moved(place, options):
    """A checkpoint of level 4 needs no file, and holds a page once, however many
    processes have it mapped."""
    software = Software(place, options)
    job = software.launch()
    must(software.copies_in_checkpoint(job, 4) == {1}, "the page is not in the image once")
    job.kill()
    job = Job(place, "restart", "job")
    must(software.copies_in_checkpoint(job, 1) == {0}, "the file was not mapped again")
    must(software.copies_in_checkpoint(job, 4) == {1}, "the page is not in the image once")
    job.kill()
    software.file.unlink()
    for level in (1, 4):
        job = Job(place, "restart", "job")
        must(software.copies_in_checkpoint(job, level) == {1},
             "after the move, the page is not in the image once")
        job.kill()
    # Without directories of the machine's files, all levels hold all pages.
    software.replace(software.bytes)
    place.settings["DIAPAUSE_CAPTURE_REFERENCED_FILES"] = ""
    job = software.launch()
    must(software.copies_in_checkpoint(job, 1) == {1}, "the setting changes nothing")
    job.kill()
    software.file.unlink()
    software.ends_well(Job(place, "restart", "job"))


NO_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""


def forbidden(place, options):
    """Where users may have no namespaces, it is said what to do, and nothing is begun."""
    del options
    if place.user == 0 and os.geteuid() == 0:
        return  # root needs none
    mark = place.work / "begun"
    # The limit is that of a namespace around it.
    for words in (["launch", "--name", "job", "--", "touch", mark], ["restart", "job"]):
        status, _, errors = place.run(["unshare", "--user", "--map-current-user", "--keep-caps",
                                       "sh", "-c", NO_NAMESPACES, "sh", place.command, *words])
        must(status == 125 and "sysctl -w user.max_user_namespaces=" in errors,
             f"{words[0]} ended with {status}: {errors}")
    left = [str(path) for path in (mark, place.root / "memory", place.root / "global",
                                   place.root / "memory-agents") if path.exists()]
    must(not left, f"something was begun: {left}")


def refuses(place, command, *what):
    """`what`: how each thing that cannot be restored is named, as a pattern."""
    scenario = Scenario(place, command)
    job = scenario.launch()
    job.wait_for_lines(4)
    for words in (["checkpoint", "job", "--check"], ["checkpoint", "job"]):
        status, _, errors = place.verb(*words)
        must(status == 3, f"ended with {status}: {errors}")
        for one in what:
            must(re.search(r"process \d+ \(refused\) " + one, errors),
                 f"does not say {one!r}: {errors}")
    scenario.ends_well(job, job.output)
    status, _, errors = place.verb("restart", "job")
    must(status == 125 and "no checkpoints" in errors, errors)
    status, _, errors = place.verb("checkpoint", "job")
    must(status == 3 and "no job 'job'" in errors, errors)


def refused(place, options):
    """A state that cannot be restored is named, and the job runs on."""
    program = place.own_copy(options.programs / "refused")
    refuses(place, [program], r"has descriptor \d+ \(socket:.*a socket of family 16")
    refuses(place, [program, "segment"],
            r"has memory at 0x[0-9a-f]+ of a System V segment, of which other parts")
    refuses(place, [program, "many"], "shares its memory.* with process",
            "is in the directory .*lost",
            r"has descriptor \d+ \(anon_inode:\[eventpoll\]\), which watches")
    refuses(place, [program, "data"], r"has descriptor \d+ .*urgent data",
            r"has descriptor \d+ .*reset", r"has descriptor \d+ .*MSG_MORE")
    status, output, errors = place.run([program, "memory"])
    has_key, is_sealed = output.splitlines()[0].split()
    refuses(place, [program, "memory"], r"has memory at .*io_setup",
            *([r"has memory at .*protection key"] if has_key == "1" else []),
            *(["has memory at .*sealed"] if is_sealed == "1" else []))
    if os.geteuid() == 0 and not place.user:
        refuses(place, [program, "user"], "runs as another user")
    if place.user:
        pathlib.Path(program).chmod(0o111)
        refuses(place, [program], "runs a program that this user may run but not read")


def empty_message(place, options):
    """A message without bytes is in the way as often as it is looked at, until it is read."""
    program = place.own_copy(options.programs / "refused")
    refuses(place, [program, "empty"], r"has descriptor \d+ .*an empty message")


def orphaned(place, options):
    """The agent may be killed while it copies the job's memory: the job runs on."""
    del options
    scenario = Scenario(place, ["/usr/bin/python3", "-c", BIG])
    place.capture = "copy"
    job = scenario.launch()
    job.wait_for_lines(1)
    asked = place.start([place.command, "checkpoint", "job"], subprocess.DEVNULL)
    until(lambda: place.image_bytes() > 1 << 20, "no image is begun")
    job.process.kill()
    job.process.wait()
    asked.communicate(timeout=LIMIT_S)
    place.gate.touch()
    until(lambda: job.output() == scenario.reference, f"the job does not go on: {job.output()}")


def killed(place, options):
    """A job whose command is killed while its memory is copied ends, and whoever asked for
    the checkpoint is told."""
    del options
    for capture in ("copy", "copy-on-write"):
        scenario = Scenario(place, ["/usr/bin/python3", "-c", BIG])
        place.capture = capture
        job = scenario.launch()
        job.wait_for_lines(1)
        command = nodes.children_of(nodes.children_of(job.process.pid)[0])[0]
        before = place.image_bytes()
        asked = place.start([place.command, "checkpoint", "job"], subprocess.DEVNULL)
        until(lambda: place.image_bytes() > before + (1 << 20), "no image is begun")
        os.kill(command, signal.SIGKILL)
        status, errors = job.wait()
        must(status == 137, f"ended with {status}: {errors}")
        _, errors = asked.communicate(timeout=LIMIT_S)
        must("No such process" not in errors, errors)


BOUND = """
import os, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.nice(3)
print("bound", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
print(sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0), flush=True)
"""


def elsewhere(place, options):
    """Where there are no processors that a thread was bound to, or its user may not raise its
    priority, it goes on without."""
    del options
    processors = os.sched_getaffinity(0)
    if (len(processors) < 2 or shutil.which("taskset") is None
        or os.getpriority(os.PRIO_PROCESS, 0) != 0):
        raise Skipped(
            "the machine has one processor, or no taskset, or this test does not run as others do")
    place.gate.unlink(missing_ok=True)
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", BOUND)
    job.wait_for_lines(1)
    job.checkpoint()
    job.kill()
    place.gate.touch()
    first = min(processors)
    job = Job(place, "restart", "job", under=("taskset", "-c", str(first), "nice", "-n", "10"))
    status, errors = job.wait()
    printed = job.output().splitlines()[-1]
    expected = {f"[{first}] 3", f"[{first}] 10"} if place.user == 0 else {f"[{first}] 10"}
    must(status == 0 and printed in expected, f"ended with {status}: {job.output()}{errors}")
    must("the binding to processors: it names none" in errors,
         f"the lost binding is not told: {errors}")
    must(printed.endswith(" 3") or "the niceness: Permission denied" in errors,
         f"the lost niceness is not told: {errors}")
    job = Job(place, "restart", "job")
    status, errors = job.wait()
    expected = f"[{max(processors)}] 3"
    must(status == 0 and job.output().splitlines()[-1] == expected,
         f"ended with {status}: {job.output()}{errors}")


HASTY = """
import os, threading, time
for i in range(100): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
gate = os.environ["TRANSPARENT_GATE"]
print("ready", flush=True)
while not os.path.exists(gate): pass
os._exit(7)
"""


def hasty(place, options):
    """A process may end while the restart still lets its other threads go."""
    del options
    place.gate.unlink(missing_ok=True)
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", HASTY)
    job.wait_for_lines(1)
    job.checkpoint()
    job.kill()
    place.gate.touch()
    status, errors = Job(place, "restart", "job").wait()
    must(status == 7, f"ended with {status}: {errors}")


KNOCKS = """
import os, socket, time
listener = socket.create_server(("127.0.0.1", 0))
caller = socket.create_connection(listener.getsockname())
print("knocks", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
listener.accept()
print("is let in", flush=True)
while True: time.sleep(1)
"""


ASKS = """
import os, socket, time
question = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
print("asks", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
question.close()
time.sleep(600)
"""


def momentary(place, options):
    """A state that is in the way only for a moment is waited for: a connection that nobody has
    accepted yet, and a question to the kernel."""
    del options
    for program in (KNOCKS, ASKS):
        place.gate.unlink(missing_ok=True)
        job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", program)
        job.wait_for_lines(1)
        asked = place.start([place.command, "checkpoint", "job"], subprocess.DEVNULL)
        time.sleep(0.2)
        place.gate.touch()
        _, errors = asked.communicate(timeout=LIMIT_S)
        must(asked.returncode == 0, f"no checkpoint: {errors}")
        job.kill()


RESTS = """
import select, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("waits", flush=True)
assert select.epoll().poll(1) == []
print("has waited for descriptors", flush=True)
assert signal.sigtimedwait([signal.SIGUSR1], 1) is None
print("has waited for a signal", flush=True)
"""


def rests(place, options):
    """A call that a checkpoint has disturbed waits for the rest of its time: else it would
    never end under so many."""
    del options
    if not os.path.exists("/proc/self/sched"):
        raise Skipped("this kernel does not tell since when a thread waits")
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", RESTS)
    job.wait_for_lines(1)
    end = time.monotonic() + LIMIT_S
    while job.process.poll() is None:
        must(time.monotonic() < end, f"it still waits: {job.output()}")
        place.verb("checkpoint", "job")
    status, errors = job.wait()
    must(status == 0 and job.output().count("\n") == 3,
         f"ended with {status}: {job.output()}{errors}")


def checked(place, options):
    """`launch --check` names what stands in the way, once, and takes no checkpoint."""
    scenario = Scenario(place, [place.own_copy(options.programs / "refused")])
    place.gate.unlink()
    job = Job(place, "launch", "--name", "job", "--check", "--interval", "0.1", "--",
              *scenario.command)
    text = ""
    while "a socket of family 16" not in text:
        line = job.process.stderr.readline()
        must(line, f"nothing is named: {text}")
        text += line
    scenario.ends_well(job, job.output)
    must(not list(place.root.glob("memory/**/*.img")), "it has taken a checkpoint")


def hostile(place, options):
    """A job is not started beside itself, a damaged image restarts nothing, and if the agent
    dies the job does not."""
    scenario = Scenario(place, [place.own_copy(options.programs / "counting")])
    job = scenario.launch()
    job.wait_for_lines(4)
    job.checkpoint()
    status, _, errors = place.verb("restart", "job")
    must(status == 125, f"restarted beside itself: {errors}")
    job.kill()
    images = list(place.root.glob("memory/**/*.img"))
    must(len(images) == 1, f"{images}")
    with open(images[0], "r+b") as image:
        image.seek(3 * 4096 + 17)
        byte = image.read(1)
        image.seek(3 * 4096 + 17)
        image.write(bytes([byte[0] ^ 4]))
    status, output, errors = place.verb("restart", "job")
    must(status == 125 and output == "" and "block" in errors, f"{status} {output} {errors}")
    job = scenario.launch()
    job.wait_for_lines(4)
    os.kill(job.process.pid, signal.SIGKILL)
    place.gate.touch()
    end = time.monotonic() + LIMIT_S
    while job.output() != scenario.reference and time.monotonic() < end:
        time.sleep(0.05)
    must(job.output() == scenario.reference, "the job ended with its agent")


SHORTENS = """
import os, time
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.01)
memory = bytearray(os.urandom(1 << 20) * 64)
file = open("state", "wb", buffering=0)
file.write(b"x" * 100)
print("long", flush=True)
wait_for("shorten")
file.truncate(10)
print("short", flush=True)
wait_for("lengthen")
file.truncate(100)
print("long again", flush=True)
wait_for(os.environ["TRANSPARENT_GATE"])
print(os.path.getsize("state"), sum(memory[::4096]) == 64 * sum(memory[:1 << 20:4096]), flush=True)
"""


def damaged(place, options):
    """Damage that is met while memory is restored: another copy is taken, or the version before,
    for which all is as it was."""
    del options
    place.gate.unlink(missing_ok=True)
    job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", SHORTENS)
    job.wait_for_lines(1)
    job.checkpoint("--level", "4")
    (place.work / "shorten").touch()
    job.wait_for_lines(2)
    before = set(place.root.glob("memory/**/*.img"))
    job.checkpoint()
    newest = set(place.root.glob("memory/**/*.img")) - before
    must(len(newest) == 1, f"the second checkpoint has the images {newest}")
    (place.work / "lengthen").touch()
    job.wait_for_lines(3)
    job.kill()
    damage(newest.pop())
    place.gate.touch()
    status, output, errors = place.verb("restart", "job")
    must(status == 0 and output.splitlines() == ["short", "long again", "100 True"],
         f"{status} {output} {errors}")
    must("version 2: " in errors and "is damaged" in errors, f"the damage is not told: {errors}")
    for image in before:
        if image.exists():
            damage(image)
    (place.work / "state").write_bytes(b"x" * 100)
    status, output, errors = place.verb("restart", "job", "1")
    must(status == 0 and output.splitlines()[-1] == "100 True",
         f"from another copy: {status} {output} {errors}")


# Programs that print the same whatever is done to them.
TESTS = {name: program_test(name) for name in """
    counting threads signals memory files locks tree endings holes events sockets internet
    terminal segments semaphores typed objects timers clocks notices stopped queued rights torn
    families views schedule openmp workshop datagrams nameless
    """.split()}
TESTS |= {
    "pages": pages, "starters": starters, "slow_start": slow_start, "mpi": mpi,
    "mpi_beside": mpi_beside, "mpi_nodes": mpi_nodes, "taken_port": taken_port,
    "crowded": crowded, "linked": linked, "across": across, "silent": silent, "prompt": prompt,
    "forwarding": forwarding, "interval": interval, "libraries": libraries, "moved": moved,
    "increments": increments, "parts": parts, "properties": properties, "carried": carried,
    "checked": checked, "waiting": waiting, "pipeline": pipeline, "interpreter": interpreter,
    "refused": refused, "rests": rests, "momentary": momentary, "forbidden": forbidden,
    "hostile": hostile, "elsewhere": elsewhere, "hasty": hasty, "neighbours": fortran,
    "empty_message": empty_message, "orphaned": orphaned, "killed": killed, "damaged": damaged,
}


def unmodified_test(name):
    def test(place, options):
        command = unmodified.COMMANDS[name](place, options)
        if command is None:
            raise Skipped("the machine has no such program")
        Scenario(place, command).all()

    return test


TESTS |= {name: unmodified_test(name) for name in unmodified.COMMANDS}
TESTS |= mapped.TESTS | in_time.TESTS | accounted.TESTS | disturbed.TESTS | dying.TESTS
TESTS |= failing.TESTS | relocated.TESTS | whole.TESTS | services.TESTS | lacking.TESTS
TESTS |= named_files.TESTS | kernels.TESTS | inputs.TESTS | told.TESTS | sparse.TESTS
TESTS |= queues.TESTS


def leave_network():
    """Ports of programs beside this one must not be in the way of those that the jobs had."""
    new_network = 0x40000000
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(new_network) != 0:
        return
    request = struct.pack("16sh14x", b"lo", 1)  # struct ifreq: IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def users():
    return [0, NOBODY] if os.geteuid() == 0 else [0]


def may_make_namespaces(place):
    status, _, _ = place.run(["unshare", "--user", "--map-current-user", "--pid", "--fork", "true"])
    return status == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("test", choices=sorted(TESTS))
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--diapause", type=pathlib.Path, required=True)
    parser.add_argument("--mpirun")
    parser.add_argument("--heat", nargs="?", help="apps/heat without checkpoints of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="diapause-transparent-") as fetched:
        os.chmod(fetched, 0o755)
        options.fetched = pathlib.Path(fetched) / "python"
        if options.test == "ranks" and options.mpirun and not is_open_mpi(options.mpirun):
            unmodified.make_python_with_mpich(options.fetched)
        try:
            if options.test == "older_kernel":
                kernels.make_machine(options)
        except Skipped as why:
            print(f"{options.test}: {why}")
            return SKIPPED
        leave_network()  # from where nothing can be fetched
        return run_as_all_users(options)


def run_as_all_users(options):
    was_run = False
    for user in users():
        place = Place(options.diapause, user)
        try:
            if not may_make_namespaces(place):
                print(f"user {user} may make no namespaces")
                continue
            TESTS[options.test](place, options)
            was_run = True
        except Skipped as why:
            print(f"{options.test}: {why}")
            return SKIPPED
        except Failed as failure:
            print(f"{options.test} as user {user or os.geteuid()}: {failure}")
            return 1
        finally:
            place.remove()
    return 0 if was_run else SKIPPED


sys.exit(main())
