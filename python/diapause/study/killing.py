"""Starts a job again after each failure, and injects the failures that end it: at times that are
drawn beforehand, or when it has come so far."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from diapause import records
from diapause.study import programs

CLASSES = ("process", "node")
POLL_S = 0.02


@dataclasses.dataclass(frozen=True)
class Failure:
    kind: str  # "process", or "node": what lies in its memory is lost as well
    node: int
    time_s: float | None = None  # since the job was first started
    version: int | None = None  # or as soon as this checkpoint, or a later one, has been taken


def drawn(mean_times, nodes, until_s, seed):
    """Without memory, in the order of their times; the same for the same seed."""
    draws = random.Random(seed)
    found = []
    for kind in CLASSES:
        at_s = draws.expovariate(1 / mean_times[kind])
        while at_s < until_s:
            found.append(Failure(kind, draws.randrange(nodes), time_s=at_s))
            at_s += draws.expovariate(1 / mean_times[kind])
    return sorted(found, key=lambda one: one.time_s)


def trace_of(failures, begin_s, until_s):
    """The bytes of a file for `diapause simulate --trace`. The job begins to work at `begin_s`; the
    last line is behind its end."""
    rows = [f"{max(one.time_s - begin_s, 0.0):.6f},{one.kind},{one.node}" for one in failures]
    return "\n".join(["time_s,class,node", *rows, f"{until_s:.6f},process,0", ""]).encode()


# ---- the job -------------------------------------------------------------------------------------


def endure(words, directory, where, failures):
    """Starts the job until it is done, and lets it fail meanwhile. What there is to know of
    the starts and failures."""
    begin_s, begin_unix_s, kills, left = time.monotonic(), time.time(), [], list(failures)
    while True:
        with open(directory / "said", "w+b") as said:
            with started(words, programs.environment(), cwd=directory, stderr=said) as launcher:
                struck = _until_struck(launcher, where, left, begin_s)
            if launcher.returncode == 0:
                end_s = time.monotonic() - begin_s
                return {"seconds": end_s, "begin_unix_s": begin_unix_s, "kills": kills}
            if struck is None:
                said.seek(0)
                text = records.printable(said.read().decode(errors="replace").strip()[-2000:])
                raise programs.RunError(
                    f"{shlex.join(words)}: ended with status {launcher.returncode}: {text}")
        kills.append([struck.kind, time.time()])
        if struck.kind == "node":
            for job in where.global_.iterdir():
                shutil.rmtree(where.memory / job.name / f"node{struck.node}", ignore_errors=True)


@contextlib.contextmanager
def started(words, environment, **more):
    """The launcher of a job, which ends here at the latest. `more` is for subprocess.Popen.
    What the launcher and the ranks keep in temporary files is removed here, since a launcher
    that is killed leaves them."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="diapause-study-", dir=memory) as scratch:
        kept = {"TMPDIR": scratch, "OMPI_MCA_btl_vader_backing_directory": scratch}
        try:
            launcher = subprocess.Popen(words, env=environment | kept, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, **more)
        except OSError as error:
            raise programs.RunError(f"{words[0]}: {error.strerror}; "
                                    "--launch says how ranks are started here") from error
        try:
            yield launcher
        finally:
            if launcher.poll() is None:
                end(launcher)


def end(launcher):
    """Ends the launcher together with all that it has started. If only the ranks were
    killed, Open MPI's would now and then wait for one or two seconds before it ends, which
    are not a part of the failure."""
    stopped = set()
    while found := {launcher.pid, *_below(launcher.pid)} - stopped:
        _send(signal.SIGSTOP, found)  # they are to start nothing any more
        stopped |= found
    _send(signal.SIGKILL, stopped)
    launcher.wait()


def _until_struck(launcher, where, left, begin_s):
    """The failure that ended this start, or None: it ended by itself. What is due while nothing
    runs strikes the next start."""
    while launcher.poll() is None:
        if left and _is_due(left[0], where, begin_s):
            end(launcher)
            return left.pop(0)
        time.sleep(POLL_S)
    return None


def _is_due(failure, where, begin_s):
    if failure.time_s is not None:
        return time.monotonic() - begin_s >= failure.time_s
    found = [records.read_ledger(path) for path in where.global_.glob("*/ledger.jsonl")]
    return any((records.count(line.fields, "version") or 0) >= failure.version for ledger in found
               for line in ledger.events("checkpoint"))


def _below(pid):
    """The processes that this one has started, and theirs."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it has just ended
        children.setdefault(parent, []).append(int(entry.name))
    found, open_ = [], [pid]
    while open_:
        below = children.get(open_.pop(), ())
        found += below
        open_ += below
    return found


def _send(number, pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has just ended
