"""The runs of a study: a plan that can be shown before, is done bit by bit, and goes on
where it was interrupted."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import pathlib
import platform
import shutil
import signal
import sys
import tempfile
import time
from typing import Callable

from diapause import look
from diapause.files import Trouble, written


@dataclasses.dataclass(frozen=True)
class Run:
    key: str  # names the file of its result
    what: str  # for people
    seconds: float  # about how long it takes
    do: Callable[[pathlib.Path], dict]  # in an empty directory that is removed afterwards


class Plan:
    """What is done stays in `runs/KEY.json` below the output; `settings` are those that
    the results depend on."""

    def __init__(self, output, settings, runs):
        self.output = pathlib.Path(output)
        self.settings = json.loads(json.dumps(settings))
        self.runs = runs

    def show(self, stream=sys.stdout):
        for run in self.runs:
            print(f"{'done' if self._file(run).exists() else look.time_text(run.seconds):>8}  "
                  f"{run.what}",
                  file=stream)
        left = [run for run in self.runs if not self._file(run).exists()]
        print(f"{len(left)} of {len(self.runs)} runs to do, about "
              f"{look.time_text(sum(run.seconds for run in left))}",
              file=stream)

    def carry_out(self):
        """Does what is not done yet, and returns the results of all runs by key."""
        # A run is cleaned up when the study is terminated.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        self._keep_settings()
        bar = _Bar(self.runs, sum(self._file(run).exists() for run in self.runs))
        for run in self.runs:
            if self._file(run).exists():
                bar.skip(run)
                continue
            bar.show(run)
            begin_s = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="run-", dir=self.output) as scratch:
                result = run.do(pathlib.Path(scratch).resolve())
            written(self._file(run), json.dumps(result).encode())
            bar.done(run, time.monotonic() - begin_s)
        bar.end()
        return {run.key: self.result(run.key) for run in self.runs}

    def result(self, key):
        path = self.output / "runs" / f"{key}.json"
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            raise Trouble(f"{path}: damaged; remove it, and the run is done again") from error

    def _file(self, run):
        return self.output / "runs" / f"{run.key}.json"

    def _keep_settings(self):
        """Results of other settings must not be mixed with those of these."""
        (self.output / "runs").mkdir(parents=True, exist_ok=True)
        path = self.output / "runs" / "settings"
        if not path.exists():
            written(path, json.dumps(self.settings, indent=1).encode())
            return
        before = json.loads(path.read_text())
        for name in sorted({*before, *self.settings}):
            if before.get(name) != self.settings.get(name):
                raise Trouble(f"{self.output} holds a study with other settings: {name} was "
                              f"{before.get(name)} and is {self.settings.get(name)}; take another "
                              "directory, or remove this one")


class _Bar:
    """On standard error: a bar in place where that is a terminal, else a line for each run."""

    WIDTH = 24

    def __init__(self, runs, done):
        self.runs, self.count = runs, done
        self.left_s = sum(run.seconds for run in runs)
        self.expected_s = self.took_s = 0.0
        self.is_terminal = sys.stderr.isatty()

    def skip(self, run):
        self.left_s -= run.seconds

    def show(self, run):
        slower = self.took_s / self.expected_s if self.expected_s else 1.0
        full = self.WIDTH * self.count // len(self.runs)
        text = (f"[{'#' * full}{'.' * (self.WIDTH - full)}] {self.count}/{len(self.runs)}, "
                f"{look.time_text(self.left_s * slower)} left: {run.what}")
        if self.is_terminal:
            columns = shutil.get_terminal_size().columns
            print(f"\r\033[K{text[:columns - 1]}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def done(self, run, seconds):
        self.count += 1
        self.left_s -= run.seconds
        self.expected_s += run.seconds
        self.took_s += seconds

    def end(self):
        if self.is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def carry_out(arguments, plan, study_of):
    """Does what every study of runs does: it shows the plan, or carries it out and leaves what
    `study_of(arguments, results)` makes of it."""
    if arguments.dry_run:
        plan.show()
        return
    study = study_of(arguments, plan.carry_out())
    figures = study.figures()
    leave(arguments.output, study.files(), study.page(figures), figures)


# ---- tables --------------------------------------------------------------------------------------


def _first_line(path, name):
    try:
        with open(path) as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith(name)),
                        "")
    except OSError:
        return ""


def machine():
    """Returns what every row of a table says about the place where it was measured."""
    memory_kb = _first_line("/proc/meminfo", "MemTotal").partition(" ")[0]
    return {"host": platform.node(), "processor": _first_line("/proc/cpuinfo", "model name")
            or platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_gb": round(int(memory_kb or 0) * 1024 / 1e9, 1),
            "kernel": f"{platform.system()} {platform.release()}"}


def csv_of(rows):
    """The bytes of a CSV file of dictionaries; the columns are those of all, and what
    is None is left empty."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()}
                     for row in rows)
    return file.getvalue().encode()


def leave(output, tables, page, figures):
    """Writes everything under its name and prints the names."""
    here = machine()
    for name, rows in tables.items():
        print(written(output / f"{name}.csv", csv_of([{**row, **here} for row in rows])))
    for name, figure in figures.items():
        print(written(output / f"{name}.png", look.saved(figure, "png")))
    print(written(output / "study.html", page))
