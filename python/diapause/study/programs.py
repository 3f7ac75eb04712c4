"""Starts the programs of studies, with and without checkpoints, and says what a run took:
seconds, power, checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import time

from diapause import amounts, records
from diapause.files import Trouble

# Of the caller's settings, those with this prefix hold for the runs as well. The others would get
# into the way of the study's own.
KEPT_SETTINGS = "DIAPAUSE_ENERGY_"
NAME = "study"  # the name of every job
METER_WAIT_S = 60
# A source of which nothing else is known has drawn at most so many times its mean (energy.md).
MOST_OVER_MEAN = 2.5


class RunError(Trouble):
    """A program that failed; the text has its command and what it said."""


@dataclasses.dataclass(frozen=True)
class Launcher:
    command: pathlib.Path  # `diapause`
    launch: str  # how ranks are started; "{ranks}" stands for their number
    ranks: int
    ranks_per_node: int | None

    def program(self, name):
        """Returns the path of a program in the build, or beside the installed command."""
        top = self.command.parent.parent
        for path in (top / "apps" / name.removesuffix("_plain") / name,
                     top / "libexec" / "diapause" / name):
            if path.exists():
                return path
        raise Trouble(f"there is no program {name} below {top}: build all of Diapause, with MPI")

    def words(self, name, *arguments):
        try:
            launch = shlex.split(self.launch.format(ranks=self.ranks))
        except (KeyError, IndexError, ValueError) as error:
            raise Trouble(
                f"--launch '{self.launch}': only {{ranks}} may stand in braces") from error
        return [*launch, str(self.program(name)), *map(str, arguments)]

    def configuration(self, directory, text, places, of_global=""):
        """A file with these settings, those of the ranks, and the directories; `of_global`: more of
        the section [global]."""
        path = directory / "diapause.toml"
        node = f"[node]\nranks_per_node = {self.ranks_per_node}\n" if self.ranks_per_node else ""
        path.write_text(f"{text}\n{places.toml(of_global)}{node}")
        return path


def environment(**settings):
    return {key: value for key, value in os.environ.items()
            if not key.startswith("DIAPAUSE_") or key.startswith(KEPT_SETTINGS)} | settings


def output_of(words, directory, **settings):
    """(seconds, standard output); RunError if it fails. `settings` are
    variables of the environment."""
    begin_s = time.monotonic()
    try:
        done = subprocess.run(words, cwd=directory, env=environment(**settings),
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise RunError(
            f"{words[0]}: {error.strerror}; --launch says how ranks are started here") from error
    seconds = time.monotonic() - begin_s
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise RunError(
            f"{shlex.join(words)}: ended with status {done.returncode}: {records.printable(said)}")
    return seconds, done.stdout


# ---- power ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def recording(command, path):
    """`diapause power record` meanwhile, of this node. Without any meter nothing is recorded."""
    recorder = subprocess.Popen([command, "power", "record", path], env=environment(),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end_s = time.monotonic() + METER_WAIT_S
        while recorder.poll() is None and time.monotonic() < end_s and _rows_in(path) < 2:
            time.sleep(0.02)
        yield
    finally:
        recorder.terminate()
        recorder.wait()


def _rows_in(path):
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


@dataclasses.dataclass
class Power:
    """The power of the node that the study is started on, during a run."""

    watts: dict  # mean, by domain and "total"; empty: there is no meter
    total: str  # which domains make the total
    kind: str  # "measured" or "modelled"; empty: nobody knows
    curve: list  # [seconds since the beginning of the run, watts of the total] between two samples
    parts: dict = dataclasses.field(default_factory=dict)  # the same by domain
    # By domain and "total", how far the mean power may be off: the three parts of amounts.sum_of(),
    # each over the mean power; None: nobody knows.
    off: dict = dataclasses.field(default_factory=dict)


def power_between(path, begin_unix_s, end_unix_s):
    try:
        trace = records.read_trace(path)
    except records.RecordError:
        return Power({}, "", "", [])
    inside = [i for i, t in enumerate(trace.seconds) if begin_unix_s <= trace.started_unix_s
              + t <= end_unix_s]
    if len(inside) < 2:
        return Power({}, trace.total, "", [])
    first, last = inside[0], inside[-1]

    def watts(indexes, since, until):
        joules = sum(trace.joules[until][i] - trace.joules[since][i] for i in indexes)
        covered_s = min(trace.covered_s[until][i] - trace.covered_s[since][i] for i in indexes)
        return joules / covered_s if covered_s > 0 else None

    columns = {"total": trace.total_domains} if trace.total_domains else {}
    for index, source in enumerate(trace.domains):
        columns.setdefault(source.domain, []).append(index)
    def off(indexes, mean_w):
        """Of the seconds that no row covers anything between nothing and the highest power may be
        true."""
        ends = (trace.off_j[first], trace.off_j[last])
        if None in ends or not mean_w:
            return None
        covered_s = min(trace.covered_s[last][i] - trace.covered_s[first][i] for i in indexes)
        highest_w = max((one or 0.0 for one in (watts(indexes, before, i)
                                                for before, i in zip(inside, inside[1:]))),
                        default=0.0)
        away_w = max(MOST_OVER_MEAN * mean_w, highest_w) - mean_w
        seconds = end_unix_s - begin_unix_s
        sampling_j = (sum(end[i] for end in ends for i in indexes)
                      + max(0.0, seconds - covered_s) * max(away_w, mean_w))
        accuracy = [trace.accuracy[i] for i in indexes]
        whole_j = sum(trace.joules[last][i] - trace.joules[first][i] for i in indexes)
        sensor = None if None in accuracy or not whole_j > 0 else sum(
            share * (trace.joules[last][i] - trace.joules[first][i]) / whole_j
            for share, i in zip(accuracy, indexes))
        return {"sampling_j": sampling_j / (mean_w * seconds), "sensor_j": sensor,
                "attribution_j": 0.0}

    means = {name: watts(indexes, first, last) for name, indexes in columns.items()}
    def curve(indexes):
        points = [[trace.started_unix_s + trace.seconds[i] - begin_unix_s,
                   watts(indexes, before, i)]
                  for before, i in zip(inside, inside[1:])]
        return [point for point in points if point[1] is not None]

    return Power({name: value for name, value in means.items() if value is not None}, trace.total,
                 trace.total_kind, curve(trace.total_domains) if trace.total_domains else [],
                 {name: curve(indexes) for name, indexes in columns.items()
                  if indexes != trace.total_domains},
                 {name: off(indexes, means[name]) for name, indexes in columns.items()})


def joules_of(found, domain="total"):
    """The energy of a metered run, all of which is charged to it; None where no meter tells."""
    watts = found["watts"].get(domain)
    if watts is None:
        return None
    parts = found.get("off", {}).get(domain)
    joules = watts * found["seconds"]
    return amounts.sum_of(joules, parts and {
        name: None if share is None else share * joules for name, share in parts.items()})


# ---- runs ----------------------------------------------------------------------------------------


def metered(launcher, words, directory):
    """Runs the command with the meters on: seconds, power, and what it printed."""
    trace = directory / "power.trace"
    with recording(launcher.command, trace):
        begin_unix_s = time.time()
        seconds, printed = output_of(words, directory)
        end_unix_s = time.time()
        time.sleep(0.15)  # for the sample behind the end
    power = power_between(trace, begin_unix_s, end_unix_s)
    return {"seconds": seconds, "begin_unix_s": begin_unix_s, "printed": printed,
            **dataclasses.asdict(power)}


@dataclasses.dataclass(frozen=True)
class Places:
    """Says where the checkpoints of a run lie."""

    memory: pathlib.Path
    global_: pathlib.Path

    def toml(self, of_global=""):
        """The settings of both; `of_global`: more of the section [global]."""
        return (f"[global]\npath = {json.dumps(str(self.global_))}\n{of_global}\n"
                f"[memory]\npath = {json.dumps(str(self.memory))}\n")


def _memory():
    return pathlib.Path(os.environ.get("DIAPAUSE_MEMORY_PATH",
                                       f"/dev/shm/diapause-{os.getuid()}")).resolve()


@contextlib.contextmanager
def places(parent, memory=None):
    """Provides an empty global tier. Files that a failed job has left in the memory tier of this
    node are removed with it."""
    parent.mkdir(parents=True, exist_ok=True)
    made = Places(memory or _memory(), parent / f"study-{os.getpid()}-{time.monotonic_ns()}")
    made.global_.mkdir(mode=0o700)
    try:
        yield made
    finally:
        for job in made.global_.iterdir():
            shutil.rmtree(made.memory / job.name, ignore_errors=True)
        shutil.rmtree(made.global_, ignore_errors=True)


def ledger_of(where):
    """Returns the ledger of the only job that a run has left."""
    found = list(where.global_.glob("*/ledger.jsonl"))
    if len(found) != 1:
        raise RunError(f"{where.global_}: {len(found)} ledgers after a run, not 1")
    return records.read_ledger(found[0])


def checkpoints_of(ledger, begin_unix_s):
    """[seconds since the beginning of the run, level] of each."""
    return [[line.unix_s - begin_unix_s, records.count(line.fields, "level_reached") or 0]
            for line in ledger.events("checkpoint")]
