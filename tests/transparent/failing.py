"""Tests of checkpoints in which one call of the kernel fails."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import nodes
from support import Job, Scenario, Skipped, must, until

# What strace lets fail, and how.
ERRORS = {
    "ptrace": "EPERM", "kcmp": "EPERM", "openat": "EMFILE", "pidfd_open": "EMFILE",
    "pidfd_getfd": "EMFILE", "mmap": "ENOMEM", "process_vm_readv": "EFAULT", "read": "EIO",
    "pread64": "EIO", "getdents64": "EIO", "readlink": "EIO", "ioctl": "EIO", "ftruncate": "ENOSPC",
    "fallocate": "ENOSPC", "write": "ENOSPC", "pwrite64": "ENOSPC", "fsync": "EIO",
    "fdatasync": "EIO", "renameat": "EIO", "mkdirat": "ENOSPC", "unlinkat": "EIO",
}
# These never fail in a kernel: they put a process back as it was, or concern what the agent has
# open by itself.
LEFT_OUT = re.compile(r"ptrace\(PTRACE_(CONT|DETACH|SETREGSET|SETSIGMASK|SYSCALL)|"
                      r"p?(read|write)N?\(N<(socket:|pipe:|anon_inode|UNIX)")
STEPS = {
    "attach": r"ptrace\(PTRACE_SEIZE", "stop": r"ptrace\(PTRACE_INTERRUPT",
    "registers": r"ptrace\(PTRACE_GETREGSET", "mappings": r"openat\(.*/proc/N/smaps",
    "written pages": r"openat\(.*/proc/N/pagemap", "descriptors": r"openat\(.*/proc/N/fdinfo",
    "memory": r"process_vm_readv\(", "room": r"fallocate\(N<",
    "image": r"pwriteN\(N<.*/local/.*/spare/", "sync": r"fsync\(N<.*/local",
    "name": r"renameat\(N<.*/local/.*\.img", "commit": r"renameat\(N<.*/local/.*manifest",
    "sync of the flush": r"fsync\(N<.*/global/",
    "commit of the flush": r"renameat\(N<.*/global/.*manifest",
}
RESTARTED_AFTER = 10  # failed calls
LASTING = re.compile(r'"(/proc/[^"]+)"|\(\d+<(/[^>]+/job-\w+(?:/vm)?)>\)')
# Calls beside the one that is to fail: in the next checkpoint some may be more or less.
NEAR = (0, -1, 1, -2, 2, -3, 3)


def kind_of(line):
    """What a call does, without the numbers that differ from checkpoint to checkpoint."""
    call = re.sub(r"^\d+ +", "", line).rpartition(" = ")[0]
    return re.sub(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", "N", call).partition("{")[0].strip()


class Agent:
    """The agent of a job, of which strace watches one checkpoint."""

    def __init__(self, place, job):
        self.place = place
        self.process = job.process.pid
        self.trace = place.root / "trace"

    def checkpoint(self, options):
        self.trace.unlink(missing_ok=True)
        strace = subprocess.Popen(["strace", "-f", "-qq", "-y", "-s", "0", "-o", self.trace,
                                   *options, "-p", str(self.process)],
                                  stderr=subprocess.PIPE, text=True)
        status = pathlib.Path(f"/proc/{self.process}/status")
        try:
            until(lambda: strace.poll() is not None
                  or f"TracerPid:\t{strace.pid}\n" in status.read_text(), "strace does not attach")
            done = self.place.verb("checkpoint", "job", "--level", "4")
        finally:
            if strace.poll() is None:
                strace.send_signal(signal.SIGINT)
            _, errors = strace.communicate()
        must(self.trace.exists(), f"strace: {errors}")
        return done, self.trace.read_text().splitlines()

    def calls(self):
        """For each kind of call in a checkpoint, the name of the first, which one of that name
        in its thread it is, and what it is about if that is there in each checkpoint."""
        (status, _, errors), lines = self.checkpoint(["-e", "trace=" + ",".join(ERRORS)])
        must(status == 0, errors)
        first, count = {}, {}
        for line in lines:
            thread, _, call = line.partition(" ")
            name = call.strip().partition("(")[0]
            if name not in ERRORS:
                continue
            count[thread, name] = count.get((thread, name), 0) + 1
            if not LEFT_OUT.match(kind_of(line)):
                path = LASTING.search(call)
                first.setdefault(kind_of(line), (name, count[thread, name],
                                                 path and (path[1] or path[2])))
        return first

    def fail(self, name, number, path):
        """Lets that call fail in a checkpoint; returns the kinds that did."""
        of_file = ["-P", path] if path else []
        first = 1 if path else max(number, 1)  # of all, or of those about the file
        _, lines = self.checkpoint([*of_file, "-e", f"trace={name}", "-e",
                                    f"inject={name}:error={ERRORS[name]}:when={first}"])
        return {kind_of(line) for line in lines if "(INJECTED)" in line}


def must_run(job, what):
    must(job.process.poll() is None, f"when {what} failed, the job ended: {job.process.poll()}")
    for process in nodes.children_of(nodes.children_of(job.process.pid)[0]):
        status = pathlib.Path(f"/proc/{process}/status")
        until(lambda: "TracerPid:\t0\n" in status.read_text()
              and not re.search(r"State:\t[tT]", status.read_text()),
              f"when {what} failed, process {process} was left behind")


class Failing(Scenario):
    """A job in whose checkpoints calls fail. Whatever fails, it runs on, and a restart takes the
    last version that is whole."""

    def __init__(self, place, options):
        place.settings = {"DIAPAUSE_LEVEL1_TIER": "local",
                          "DIAPAUSE_LOCAL_PATH": str(place.root / "local")}
        place.capture = "copy"
        super().__init__(place, [place.own_copy(options.programs / "memory")])
        self.failed = set()
        self.job = self.launch()
        self.job.wait_for_lines(self.lines)
        self.job.checkpoint("--level", "4")

    def fail(self, name, number, path):
        failed = Agent(self.place, self.job).fail(name, number, path)
        must_run(self.job, failed)
        self.failed |= failed

    def has_failed(self, step):
        return any(re.match(STEPS[step], one) for one in self.failed)

    def restart(self):
        """While the job runs, a manifest with one copy counts as one that is being written."""
        self.job.kill()
        status, output, errors = self.place.verb("verify", "job")
        must(status == 0 or "the newest version can be restored" in output,
             f"a version is damaged: {output}{errors}")
        self.job = Job(self.place, "restart", "job")

    def end(self):
        self.ends_well(self.job, self.job.output, begins_anywhere=True)
        for step in STEPS:
            must(self.has_failed(step), f"nothing failed of: {step}")


def needs_strace(place):
    if shutil.which("strace") is None:
        raise Skipped("strace is not installed, which lets calls fail")
    return place.user == 0 and os.geteuid() == 0  # others may not be allowed to trace the agent


def steps(place, options):
    """The first call of each step."""
    if not needs_strace(place):
        return
    failing = Failing(place, options)
    calls = Agent(place, failing.job).calls()
    for step, pattern in STEPS.items():
        call = next((call for kind, call in calls.items() if re.match(pattern, kind)), None)
        must(call, f"no call of a checkpoint is of: {step}")
        for near in NEAR:
            if not failing.has_failed(step):
                failing.fail(call[0], call[1] + near, call[2])
    failing.restart()
    failing.end()


def all_steps(place, options):
    """The first call of each kind, with restarts in between."""
    if not needs_strace(place):
        return
    failing = Failing(place, options)
    done = set()
    while True:
        calls = Agent(place, failing.job).calls()
        left = [kind for kind in calls if kind not in done][:RESTARTED_AFTER]
        if not left:
            break
        for kind in left:
            failing.fail(*calls[kind])
        done.update(left)
        failing.restart()
        failing.job.checkpoint("--level", "4")
    failing.end()


TESTS = {"steps": steps, "all_steps": all_steps}
