"""A job that is started again after each failure, and the failures that end it: drawn beforehand, or when it has come so far."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import time

from diapause import records
from diapause.study import programs

CLASSES = ("process", "node")
POLL_S = 0.02
END_WAIT_S = 60


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
    """The bytes of a file for `diapause simulate --trace`. The job begins to work at `begin_s`; the last line is behind its end."""
    rows = [f"{max(one.time_s - begin_s, 0.0):.6f},{one.kind},{one.node}" for one in failures]
    return "\n".join(["time_s,class,node", *rows, f"{until_s:.6f},process,0", ""]).encode()


# ---- the job -------------------------------------------------------------------------------------


def endure(words, program, directory, where, failures):
    """Starts the job until it is done, and lets it fail meanwhile. What there is to know of the starts and failures."""
    begin_s, begin_unix_s, kills, left = time.monotonic(), time.time(), [], list(failures)
    while True:
        with open(directory / "said", "w+b") as said:
            launcher = _start(words, directory, said)
            try:
                struck = _until_struck(launcher, program, where, left, begin_s)
            finally:
                _kill(_below(launcher.pid, program))
                if launcher.poll() is None:
                    launcher.kill()
                launcher.wait()
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


def _start(words, directory, said):
    try:
        return subprocess.Popen(words, cwd=directory, env=programs.environment(),
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=said)
    except OSError as error:
        raise programs.RunError(
            f"{words[0]}: {error.strerror}; --launch says how ranks are started here") from error


def _until_struck(launcher, program, where, left, begin_s):
    """The failure that ended this start, or None: it ended by itself. What is due while nothing runs strikes the next start."""
    while launcher.poll() is None:
        if left and _is_due(left[0], where, begin_s):
            failure = left.pop(0)
            ranks = _below(launcher.pid, program)
            _kill(ranks)
            if not ranks:  # it has started nothing yet, and is to start nothing any more
                launcher.send_signal(signal.SIGSTOP)
                _kill([*_below(launcher.pid), launcher.pid])
            try:
                launcher.wait(END_WAIT_S)
            except subprocess.TimeoutExpired:
                launcher.kill()
            return failure
        time.sleep(POLL_S)
    return None


def _is_due(failure, where, begin_s):
    if failure.time_s is not None:
        return time.monotonic() - begin_s >= failure.time_s
    found = [records.read_ledger(path) for path in where.global_.glob("*/ledger.jsonl")]
    return any((records.count(line.fields, "version") or 0) >= failure.version for ledger in found
               for line in ledger.events("checkpoint"))


def _below(pid, program=None):
    """The processes of `program`, or all, that this one has started, or its children."""
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
        for child in children.get(open_.pop(), ()):
            open_.append(child)
            if program is None or _is_of(child, program):
                found.append(child)
    return found


def _is_of(pid, program):
    try:
        return pathlib.Path(f"/proc/{pid}/exe").resolve() == program
    except OSError:
        return False


def _kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it was done just now
