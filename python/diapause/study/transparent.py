"""`diapause study transparent`: checkpoints of programs that know nothing of them, and the checkpoint-fill-time law."""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
import statistics
import subprocess
import time

import matplotlib
import numpy as np

from diapause import look, page, records
from diapause.study import levels, options, programs, runs
from diapause.study.published import FOLDER

WAIT_S = 300  # for what another process does, on a machine that may be busy
ENDLESS = 10**12  # iterations
RATE_MB = 256  # written at once to find the rate of the storage
TB, MB = 1e12, 1e6
PUBLISHED = {"launch": "cao2016_table4_launch_time", "overhead": "cao2016_table5_runtime_overhead_lu_e",
             "HPCG": "cao2016_table2_hpcg", "NAMD": "cao2016_table3_namd", "LU.E": "cao2016_table6_lu_e",
             "MPI implementations, LU.E": "cao2016_table7_mpi_implementations_lu_e_500", "NAS": "cao2016_table8_nas"}


def add_options(parser):
    options.add_common(parser, ranks=(1, 2, 4), repetitions=3)
    parser.add_argument("--size", type=options.positives, default=(64.0, 256.0))
    parser.add_argument("--seconds", type=options.positive, default=20.0)


def published(name):
    with open(FOLDER / f"{PUBLISHED[name]}.csv", newline="") as file:
        return list(csv.DictReader(file))


# ---- runs ------------------------------------------------------------------------------------------------------------


def _application(arguments, ranks, size_mb):
    """STREAM without Diapause, with so many MB of a rank."""
    return levels.Application("stream", options.launcher(arguments, ranks), size_mb / levels.STREAM_OVER_HEAT, arguments.seconds, 0.0)


def _possible(arguments, directory):
    """Whether this machine lets jobs be launched at all; if not, why."""
    with _job(arguments, directory) as job:
        try:
            job.run(["true"])
        except programs.RunError as error:
            return {"refused": str(error)}
    return {"refused": ""}


class _Job:
    """A launched job in tiers of its own."""

    def __init__(self, command, directory, where):
        self.command = str(command.resolve())
        self.directory = directory
        self.where = where
        config = directory / "diapause.toml"
        config.write_text(where.toml())
        self.settings = {"DIAPAUSE_CONFIG": str(config)}

    def run(self, words):
        """To its end; (seconds, standard output)."""
        return programs.output_of([self.command, "launch", "--name", programs.NAME, "--", *words], self.directory, **self.settings)

    @contextlib.contextmanager
    def beside(self, *words):
        """Runs meanwhile, and is ended behind it."""
        with open(self.directory / "said", "w") as said:
            process = subprocess.Popen([self.command, *words], cwd=self.directory, env=programs.environment(**self.settings),
                                       stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(WAIT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def wait_until(self, is_there, process, what):
        end_s = time.monotonic() + WAIT_S
        while not is_there():
            if process.poll() is not None or time.monotonic() > end_s:
                said = (self.directory / "said").read_text()[-1000:]
                raise programs.RunError(f"{what} did not come to pass: {records.printable(said.strip())}")
            time.sleep(0.1)

    def asks(self, *words):
        """The status of a command about this job."""
        return subprocess.run([self.command, *words], env=programs.environment(**self.settings), capture_output=True).returncode


@contextlib.contextmanager
def _job(arguments, directory):
    with programs.places(options.directory(arguments)) as where:
        yield _Job(arguments.command, directory, where)


def _measure(arguments, case, iterations, directory):
    """Launched and not, and a checkpoint and a restart while it runs."""
    application = _application(arguments, *case)
    once, many = (application.words(True, count) for count in (1, iterations))
    found = {"native_once_s": programs.output_of(once, directory)[0], "native_s": programs.output_of(many, directory)[0]}
    with _job(arguments, directory) as job:
        found["launched_once_s"] = job.run(once)[0]
    with _job(arguments, directory) as job:
        found["launched_s"] = job.run(many)[0]
    with _job(arguments, directory) as job:
        return found | _checkpoint_and_restart(job, application.words(True, ENDLESS), found["launched_once_s"])


def _checkpoint_and_restart(job, words, start_s):
    name = programs.NAME
    with job.beside("launch", "--name", name, "--", *words) as process:
        job.wait_until(lambda: job.asks("checkpoint", name, "--check") == 0, process, "the job")
        time.sleep(1.5 * start_s)  # until its ranks have found each other and compute
        took_s, _ = programs.output_of([job.command, "checkpoint", name, "--level", "4"], job.directory, **job.settings)
        job.wait_until(lambda: programs.ledger_of(job.where).events("checkpoint"), process, "the line of the checkpoint")
        (taken,) = programs.ledger_of(job.where).events("checkpoint")
    with job.beside("restart", name) as process:
        job.wait_until(lambda: programs.ledger_of(job.where).events("restart"), process, "the restart")
        (restart,) = programs.ledger_of(job.where).events("restart")
    return {"checkpoint_s": took_s, "stood_still_s": taken.fields["blocked_s"], "image_bytes": taken.fields["bytes_total"],
            "restart_s": restart.fields["seconds"]}


def _rate(arguments, directory):
    """Of durable writes to the global directory, in bytes a second."""
    field = directory / "field.raw"
    count = int(RATE_MB * MB / 8)
    np.random.default_rng(1).standard_normal(count).tofile(field)
    parent = options.directory(arguments)
    parent.mkdir(parents=True, exist_ok=True)
    where = parent / "rate"
    try:
        _, printed = programs.output_of(
            [str(arguments.command.resolve()), "study", "encode", str(field), "--type", "float64", "--dims", str(count), "--codecs", "raw",
             "--bounds", "0", "--clocks", "1", "--actuator", "none", "--directory", str(where), "--seconds", "1"], directory)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    (line,) = [line for line in map(json.loads, printed.splitlines()) if line["step"] == "write"]
    return {"bytes_per_s": line["raw_bytes"] / line["seconds"]}


def plan_of(arguments):
    made = [runs.Run("possible", "whether jobs can be launched here", 1.0, lambda directory: _possible(arguments, directory)),
            runs.Run("rate", "the rate of the storage", 6.0, lambda directory: _rate(arguments, directory))]
    plan = runs.Plan(arguments.output, options.settings(arguments), made)
    for case in _cases(arguments):
        made.append(runs.Run(_key(case, "calibration"), f"{_title(case)}: how many iterations fit", arguments.seconds,
                             _application(arguments, *case).calibrate))
    for repetition in range(arguments.repetitions):
        for case in _cases(arguments):
            def do(directory, case=case):
                if plan.result("possible")["refused"]:
                    return {}
                return _measure(arguments, case, plan.result(_key(case, "calibration"))["iterations"], directory)

            made.append(runs.Run(_key(case, repetition + 1), f"{_title(case)}, {repetition + 1}", 2 * arguments.seconds + 10, do))
    return plan


def _cases(arguments):
    return [(ranks, size_mb) for ranks in arguments.ranks for size_mb in arguments.size]


def _key(case, what):
    return f"{case[0]}-{case[1]:g}-{what}"


def _title(case):
    return f"{case[0]} ranks, {case[1]:g} MB of each"


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments), Study)


# ---- results ---------------------------------------------------------------------------------------------------------


def fill_time_s(memory_bytes, storage_bytes, device_bytes, device_bytes_per_s):
    """The checkpoint-fill-time law: memory over storage, times the time to fill one device."""
    return memory_bytes / storage_bytes * device_bytes / device_bytes_per_s


def _number(text):
    return float(text) if text else None


class Study:
    def __init__(self, arguments, results):
        self.arguments = arguments
        self.results = results

    @property
    def refused(self):
        return self.results["possible"]["refused"]

    def median(self, case, name):
        """Over the repetitions; None where nothing could be launched."""
        if self.refused:
            return None
        return statistics.median(self.results[_key(case, i + 1)][name] for i in range(self.arguments.repetitions))

    def overhead(self, case):
        """Of the run time, in percent: of the fastest runs."""
        if self.refused:
            return None
        found = [self.results[_key(case, i + 1)] for i in range(self.arguments.repetitions)]
        return 100 * (min(one["launched_s"] for one in found) / min(one["native_s"] for one in found) - 1)

    def least_s(self, case):
        """What the law says of the image: all of it through the one storage whose rate was measured."""
        image = self.median(case, "image_bytes")
        return None if image is None else image / self.results["rate"]["bytes_per_s"]

    def rows(self):
        rows = []
        for case in _cases(self.arguments) if not self.refused else []:
            for i in range(self.arguments.repetitions):
                rows.append({"ranks": case[0], "mb_of_rank": case[1], "repetition": i + 1, **self.results[_key(case, i + 1)],
                             "storage_bytes_per_s": self.results["rate"]["bytes_per_s"]})
        return rows

    def law_rows(self):
        """The published table of the law, with what the law gives for its own inputs."""
        with open(FOLDER / "cao2016_table1_fill_time_law.csv", newline="") as file:
            table = list(csv.DictReader(file))
        rows = []
        for row in table:
            memory, storage, device, rate = (_number(row[name]) for name in (
                "storage_ram_tb", "storage_disk_or_ssd_tb", "assumed_disk_size_tb", "assumed_single_disk_bandwidth_mb_s"))
            ratio = memory / storage if memory and storage else _number(row["ratio"])
            computed = fill_time_s(ratio, 1.0, device * TB, rate * MB) / 60
            rows.append({"system": row["system"], "published_ideal_min": _number(row["ideal_ckpt_time_min"]), "law_min": computed,
                         "uncertain_in_paper": row["columns_marked_uncertain_in_paper"]})
        return rows

    # ---- pictures and page -------------------------------------------------------------------------------------------

    def files(self):
        """The rows of each CSV file."""
        return {"measurements": self.rows(), "law": self.law_rows()}

    def figures(self):
        return {"times": self._draw()}

    def _draw(self):
        """Checkpoint and restart over the size of all images: of here, and as published."""
        height = 4.2
        made = look.figure(height, "Checkpoint and restart over the size of all images", "marks with a black edge: measured here")
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(1, 2, gridspec_kw={"left": 0.07, "right": 0.985, "top": 1 - 0.65 / height,
                                                     "bottom": 0.5 / height, "wspace": 0.16})
            for axes, what in zip(panes, ("checkpoint", "restart")):
                for name, colour, marker in zip(("HPCG", "NAMD", "LU.E"), look.LINES, look.MARKERS):
                    points = [(_bytes_of(row), float(row[f"{what}_time_s"])) for row in published(name)]
                    axes.plot(*zip(*points), marker + "-", color=colour, markersize=4.5, linewidth=1, label=f"{name}, published")
                if not self.refused:
                    points = [(self.median(case, "image_bytes"), self.median(case, f"{what}_s")) for case in _cases(self.arguments)]
                    axes.plot(*zip(*points), "P", color=look.ORANGE, markeredgecolor="black", markersize=7, label="STREAM, here")
                axes.set_xscale("log")
                axes.set_yscale("log")
                for axis, unit in ((axes.xaxis, "B"), (axes.yaxis, "s")):
                    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _, unit=unit: look.scaled(value, unit)))
                    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
                axes.set_title(what, loc="left")
                axes.set_xlabel("all images")
                axes.grid()
            panes[0].legend(fontsize=8)
        return made

    def page(self, figures):
        parts = [page.heading_of_page("Transparent checkpoints"), page.notes(self._notes()),
                 page.picture(look.saved(figures["times"], "svg"), "Checkpoint and restart over size")]
        if not self.refused:
            parts += [page.heading("Here"), self._table()]
        parts += [page.heading("The checkpoint-fill-time law"), page.paragraph(
            "The least time of a dump of all memory is memory over capacity of the storage, times the time to fill one of its "
            "devices. Where a published cell is printed as uncertain, that is said. The row of the node with an SSD prints a disk "
            "of 4 TB, the fill time of one of 128 GB, and that time as the one of a checkpoint; by its fill time it is 0.54 min."),
                  self._law_table()]
        for name in PUBLISHED:
            parts += [page.heading(f"As published: {name}"), _table_of(name)]
        return page.document("Transparent checkpoints", parts)

    def _notes(self):
        here = runs.machine()
        texts = []
        if self.refused:
            texts.append(f"Not measured: this machine lets no job be launched. {self.refused}")
        texts += [f"Here: {here['processor']}, {here['cores']} cores, {here['kernel']}; STREAM and its launcher on one node, started by "
                  f"diapause launch. Storage: {self.results['rate']['bytes_per_s'] / MB:.0f} MB/s of one process that writes and syncs.",
                  "Published: DMTCP on up to 32,752 ranks over InfiniBand, to Lustre. Launch times there are of the ranks over the "
                  "network; here of processes on one node.",
                  "The law is a lower bound: the published dumps took ten and eight times as long (16K and 32,752 cores).",
                  "An image here holds the whole job with its launcher and the libraries of all processes. A restart counts from "
                  "the beginning of the restart until the job goes on."]
        return texts

    def _table(self):
        rows = []
        for case in _cases(self.arguments):
            image, checkpoint, least = self.median(case, "image_bytes"), self.median(case, "checkpoint_s"), self.least_s(case)
            launch = self.median(case, "launched_once_s") - self.median(case, "native_once_s")
            rows.append([str(case[0]), _cell(case[1], "{:g}"), _cell(image / MB, "{:.0f}"), _cell(launch), _cell(self.overhead(case), "{:+.2f}"),
                         _cell(self.median(case, "stood_still_s")), _cell(checkpoint), _cell(least), _cell(checkpoint / least, "{:.1f}"),
                         _cell(self.median(case, "restart_s"))])
        return page.table("here", ["ranks", "MB of a rank", "image MB", "launch s", "overhead %", "stood still s", "checkpoint s",
                                   "law s", "over the law", "restart s"], rows)

    def _law_table(self):
        rows = [[row["system"], _cell(row["published_ideal_min"], "{:.1f}"), _cell(row["law_min"], "{:.2f}"),
                 row["uncertain_in_paper"].replace(";", ", ") or "-"] for row in self.law_rows()]
        return page.table("law", ["<system", "published, min", "by the law, min", "<uncertain in the paper"], rows)


def _bytes_of(row):
    """Of all images of a published row."""
    if row.get("total_ckpt_size_tb"):
        return float(row["total_ckpt_size_tb"]) * TB
    return float(row["ckpt_size_per_process_mb"]) * MB * float(row["processes"])


def _table_of(name):
    rows = published(name)
    return page.table(f"published-{name.split()[0].replace('.', '-').lower()}", [f"<{column.replace('_', ' ')}" for column in rows[0]],
                      [[value or "-" for value in row.values()] for row in rows])


def _cell(value, text="{:.3f}"):
    return page.Number("-") if value is None else page.Number(text.format(value), float(value))
