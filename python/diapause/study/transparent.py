"""`diapause study transparent`: checkpoints of programs that know nothing of them, and the
checkpoint-fill-time law."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import shlex
import shutil
import statistics
import subprocess

import matplotlib
import numpy as np

from diapause import look, page
from diapause.study import claims, launched, levels, options, petascale, programs, runs
from diapause.study.petascale import MB

ENDLESS = 10**12  # iterations
RATE_MB = 256  # written at once to find the rate of the storage
PUBLISHED = {"launch": "cao2016_table4_launch_time",
             "overhead": "cao2016_table5_runtime_overhead_lu_e",
             "HPCG": petascale.TABLES["HPCG"], "NAMD": petascale.TABLES["NAMD"],
             "LU.E": petascale.TABLES["LU.E"],
             "MPI implementations, LU.E": "cao2016_table7_mpi_implementations_lu_e_500",
             "NAS": petascale.TABLES["NAS"]}


def add_options(parser):
    options.add_common(parser, ranks=(1, 2, 4), repetitions=3)
    parser.add_argument("--size", type=options.positives, default=(64.0, 256.0))
    parser.add_argument("--nodes", type=options.whole_numbers, default=(1, 2, 4))
    parser.add_argument("--seconds", type=options.positive, default=20.0)
    parser.add_argument("--program", type=_program, action="append")


def _program(text):
    """(name, command), such as ("LU.A", "mpirun -n {ranks} ./lu.A.x")."""
    name, _, command = text.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9.]+", name) or not command.strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=COMMAND")
    return name, command


def published(name):
    return petascale.rows_of(PUBLISHED[name])


# ---- runs ----------------------------------------------------------------------------------------


def _application(arguments, ranks, size_mb):
    """STREAM without Diapause, with so many MB of a rank."""
    return levels.Application("stream", options.launcher(arguments, ranks),
                              size_mb / levels.STREAM_OVER_HEAT, arguments.seconds, 0.0)


def _possible(arguments, directory):
    """Returns whether this machine lets jobs be launched at all, and if not, why."""
    with launched.job_of(arguments, directory) as job:
        try:
            job.run(["true"])
        except programs.RunError as error:
            return {"refused": str(error)}
    return {"refused": ""}


def _measure(arguments, case, iterations, directory):
    """Launched and not, and a checkpoint and a restart while it runs."""
    application = _application(arguments, *case)
    once, many = (application.words(True, count) for count in (1, iterations))
    found = {"native_once_s": programs.output_of(once, directory)[0],
             "native_s": programs.output_of(many, directory)[0]}
    with launched.job_of(arguments, directory) as job:
        found["launched_once_s"] = job.run(once)[0]
    with launched.job_of(arguments, directory) as job:
        found["launched_s"] = job.run(many)[0]
    return found | _checkpoint_and_restart(arguments, application.words(True, ENDLESS),
                                           found["launched_once_s"], directory)


def _checkpoint_and_restart(arguments, words, start_s, directory):
    with launched.job_of(arguments, directory) as job:
        ((took_s, line),) = job.checkpoints(words, start_s, [4])
        return {"checkpoint_s": took_s, "stood_still_s": line["blocked_s"],
                "image_bytes": line["bytes_total"], "restart_s": job.restart()["seconds"]}


def _measure_program(arguments, command, directory):
    """A program of the user, from its beginning to its end and, stopped halfway, a
    checkpoint and a restart."""
    ranks = max(arguments.ranks)
    try:
        words = shlex.split(command.format(ranks=ranks))
    except (KeyError, IndexError, ValueError) as error:
        raise programs.Trouble(
            f"--program '{command}': only {{ranks}} may stand in braces") from error
    native_s = programs.output_of(words, directory)[0]
    with launched.job_of(arguments, directory) as job:
        launched_s = job.run(words)[0]
    # The checkpoint comes after about half of the time.
    found = _checkpoint_and_restart(arguments, words, native_s / 3, directory)
    return {"processes": ranks, "mpi": _mpi_of(words[0]), "native_s": native_s,
            "launched_s": launched_s, **found}


def _mpi_of(launcher):
    """"Open MPI", or what else the launcher calls itself; empty if it does not say."""
    try:
        said = subprocess.run([launcher, "--version"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=launched.WAIT_S).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((name for name in ("Open MPI", "Intel MPI")
                 if name.replace(" ", "") in said.replace("(R)", "").replace(" ", "")), "")


def _weak(arguments, case, directory):
    """A job on emulated nodes, checkpointed, and restarted as if all of them were lost."""
    nodes, ranks, size_mb = case
    application = _application(arguments, nodes * ranks, size_mb)
    once = application.words(True, 1)
    native_s = programs.output_of(once, directory)[0]
    with launched.job_of(arguments, directory, nodes) as job:
        launched_s = job.run(once)[0]
    with launched.job_of(arguments, directory, nodes) as job:
        # The first two do not count: they ask for the memory of the slots that all later ones use.
        *_, near, far = job.checkpoints(application.words(True, ENDLESS), launched_s, [1, 1, 1, 4])
        job.lose_nodes()
        restart = job.restart()
    return {"native_once_s": native_s, "launched_once_s": launched_s,
            "image_bytes": far[1]["bytes_total"], "stop_s": near[1]["blocked_s"],
            "local_s": near[0], "global_s": far[0], "restart_s": restart["seconds"],
            "restart_level": restart["level"]}


def _rate(arguments, directory):
    """Returns the rate of durable writes to the global directory, in bytes a second."""
    field = directory / "field.raw"
    count = int(RATE_MB * MB / 8)
    np.random.default_rng(1).standard_normal(count).tofile(field)
    parent = options.directory(arguments)
    parent.mkdir(parents=True, exist_ok=True)
    where = parent / "rate"
    try:
        _, printed = programs.output_of(
            [str(arguments.command.resolve()), "study", "encode", str(field), "--type", "float64",
             "--dims", str(count), "--codecs", "raw", "--bounds", "0", "--clocks", "1",
             "--actuator", "none", "--directory", str(where), "--seconds", "1"], directory)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    (line,) = [line for line in map(json.loads, printed.splitlines()) if line["step"] == "write"]
    return {"bytes_per_s": line["raw_bytes"] / line["seconds"]}


def plan_of(arguments):
    made = [runs.Run("possible", "whether jobs can be launched here", 1.0,
                     lambda directory: _possible(arguments, directory)),
            runs.Run("rate", "the rate of the storage", 6.0,
                     lambda directory: _rate(arguments, directory))]
    plan = runs.Plan(arguments.output, options.settings(arguments), made)
    for case in _cases(arguments):
        made.append(runs.Run(_key(case, "calibration"), f"{_title(case)}: how many iterations fit",
                             arguments.seconds, _application(arguments, *case).calibrate))
    for repetition in range(arguments.repetitions):
        for case in _cases(arguments):
            def do(directory, case=case):
                if plan.result("possible")["refused"]:
                    return {}
                iterations = plan.result(_key(case, "calibration"))["iterations"]
                return launched.again(_measure, arguments, case, iterations, directory)

            made.append(runs.Run(_key(case, repetition + 1), f"{_title(case)}, {repetition + 1}",
                                 2 * arguments.seconds + 10, do))
        for case in _weak_cases(arguments):
            def do_weak(directory, case=case):
                return {} if plan.result("possible")["refused"] else launched.again(
                    _weak, arguments, case, directory)

            made.append(runs.Run(_weak_key(case, repetition + 1),
                                 f"weak scaling, {case[0]} emulated nodes of {case[1]} ranks, "
                                 f"{case[2]:g} MB of each, {repetition + 1}", 10.0 + 2 * case[0],
                                 do_weak))
        for name, command in arguments.program or ():
            def do_program(directory, command=command):
                return {} if plan.result("possible")["refused"] else launched.again(
                    _measure_program, arguments, command, directory)

            made.append(runs.Run(_program_key(name, repetition + 1), f"{name}, {repetition + 1}",
                                 3 * arguments.seconds, do_program))
    return plan


def _program_key(name, what):
    return f"program-{name}-{what}"


def _weak_cases(arguments):
    """(nodes, ranks of each, MB of a rank)"""
    return [(nodes, *case) for nodes in arguments.nodes for case in _cases(arguments)]


def _weak_key(case, what):
    return f"weak-{case[0]}x{case[1]}-{case[2]:g}-{what}"


def _cases(arguments):
    return [(ranks, size_mb) for ranks in arguments.ranks for size_mb in arguments.size]


def _key(case, what):
    return f"{case[0]}-{case[1]:g}-{what}"


def _title(case):
    return f"{case[0]} ranks, {case[1]:g} MB of each"


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments), Study)


# ---- results -------------------------------------------------------------------------------------


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
        return statistics.median(self.results[_key(case, i + 1)][name]
                                 for i in range(self.arguments.repetitions))

    def overhead(self, case):
        """Returns the overhead in percent of the run time, from the fastest runs."""
        if self.refused:
            return None
        found = [self.results[_key(case, i + 1)] for i in range(self.arguments.repetitions)]
        return 100 * (min(one["launched_s"]
                          for one in found) / min(one["native_s"] for one in found) - 1)

    def least_s(self, case):
        """Returns what the law says about the image: all of it goes through the one storage
        whose rate was measured."""
        image = self.median(case, "image_bytes")
        return None if image is None else image / self.results["rate"]["bytes_per_s"]

    def rows(self):
        rows = []
        for case in _cases(self.arguments) if not self.refused else []:
            for i in range(self.arguments.repetitions):
                rows.append({"ranks": case[0], "mb_of_rank": case[1], "repetition": i + 1,
                             **self.results[_key(case, i + 1)],
                             "storage_bytes_per_s": self.results["rate"]["bytes_per_s"]})
        return rows

    def law_rows(self):
        """The published table of the law, with what the law gives for its own inputs."""
        return petascale.law_rows()

    # ---- weak scaling ----------------------------------------------------------------------------

    def weak(self):
        """The medians of each case, as petascale.Weak."""
        found = []
        for nodes, ranks, size_mb in _weak_cases(self.arguments) if not self.refused else []:
            runs_of_case = [self.results[_weak_key((nodes, ranks, size_mb), i + 1)]
                            for i in range(self.arguments.repetitions)]
            median = {name: statistics.median(one[name] for one in runs_of_case)
                      for name in runs_of_case[0]}
            found.append(petascale.Weak(nodes, ranks, size_mb, median["image_bytes"],
                                        median["launched_once_s"] - median["native_once_s"],
                                        median["stop_s"], median["local_s"], median["global_s"],
                                        median["restart_s"]))
        return found

    def extrapolated(self):
        """Rows of petascale.extrapolated(); none where too little was measured."""
        found = self.weak()
        return (petascale.extrapolated(petascale.own_costs(found)) if self._can_extrapolate(found)
                else [])

    def programs_of_user(self):
        """{name: medians over the repetitions, with the overhead of the fastest runs}."""
        found = {}
        for name, _ in (self.arguments.program or ()) if not self.refused else ():
            each = [self.results[_program_key(name, i + 1)]
                    for i in range(self.arguments.repetitions)]
            found[name] = {"processes": each[0]["processes"], "mpi": each[0]["mpi"],
                           "overhead_pct": 100 * (min(one["launched_s"]
                                                      for one in each) / min(
                                                          one["native_s"] for one in each) - 1),
                           **{key: statistics.median(one[key] for one in each)
                              for key in ("checkpoint_s", "restart_s", "image_bytes")}}
        return found

    def claim_rows(self):
        return claims.rows(self.programs_of_user())

    @staticmethod
    def _can_extrapolate(found):
        """The costs of a rank, of a byte and of the shared storage can be told apart only
        where all three vary."""
        return all(len({getattr(row, name) for row in found}) > 1
                   for name in ("nodes", "ranks", "rank_mb"))

    # ---- pictures and page -----------------------------------------------------------------------

    def files(self):
        """The rows of each CSV file."""
        weak = [dataclasses.asdict(row) | {"processes": row.nodes * row.ranks}
                for row in self.weak()]
        return {"measurements": self.rows(), "law": self.law_rows(),
                "beyond-law": petascale.beyond_law(), "model": petascale.tested(), "weak": weak,
                "extrapolated": self.extrapolated(), "claims": self.claim_rows()}

    def figures(self):
        return {"times": self._draw()}

    def _draw(self):
        """Checkpoint and restart over the size of all images: of here, and as published."""
        height = 4.2
        made = look.figure(height, "Checkpoint and restart over the size of all images",
                           "marks with a black edge: measured here")
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(1, 2, gridspec_kw={"left": 0.07, "right": 0.985,
                                                     "top": 1 - 0.65 / height,
                                                     "bottom": 0.5 / height, "wspace": 0.16})
            for axes, what in zip(panes, ("checkpoint", "restart")):
                for name, colour, marker in zip(("HPCG", "NAMD", "LU.E"), look.LINES, look.MARKERS):
                    points = [(petascale.size_bytes(row), float(row[f"{what}_time_s"]))
                              for row in published(name)]
                    axes.plot(*zip(*points), marker + "-", color=colour, markersize=4.5,
                              linewidth=1, label=f"{name}, published")
                if not self.refused:
                    points = [(self.median(case, "image_bytes"), self.median(case, f"{what}_s"))
                              for case in _cases(self.arguments)]
                    axes.plot(*zip(*points), "P", color=look.ORANGE, markeredgecolor="black",
                              markersize=7, label="STREAM, here")
                axes.set_xscale("log")
                axes.set_yscale("log")
                for axis, unit in ((axes.xaxis, "B"), (axes.yaxis, "s")):
                    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(
                        lambda value, _, unit=unit: look.scaled(value, unit)))
                    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
                axes.set_title(what, loc="left")
                axes.set_xlabel("all images")
                axes.grid()
            panes[0].legend(fontsize=8)
        return made

    def page(self, figures):
        parts = [page.heading_of_page("Transparent checkpoints"), page.notes(self._notes()),
                 page.picture(look.saved(figures["times"], "svg"),
                              "Checkpoint and restart over size")]
        if not self.refused:
            parts += [page.heading("Here"), self._table()]
        parts += self._law_parts() + self._model_parts() + self._weak_parts() + self._claim_parts()
        for name in PUBLISHED:
            parts += [page.heading(f"As published: {name}"), _table_of(name)]
        return page.document("Transparent checkpoints", parts)

    def _law_parts(self):
        beyond = [[row["program"], str(row["processes"]),
                   _cell(row["published_checkpoint_s"], "{:.1f}"), _cell(row["law_s"], "{:.1f}"),
                   _cell(row["times_the_law"], "{:.1f}")] for row in petascale.beyond_law()]
        return [page.heading("The checkpoint-fill-time law"),
                page.paragraph("The least time of a dump of all memory is memory over capacity of "
                               "the storage, times the time to fill one of its devices. Where a "
                               "published cell is printed as uncertain, that is said."),
                self._law_table(),
                page.heading("Where the law fails"),
                page.paragraph("The dumps that the same paper measured on Stampede, over what the "
                               "law gives for their sizes there."),
                page.table("beyond-law",
                           ["<program", "processes", "published, s", "by the law, s",
                            "over the law"],
                           beyond)]

    def _model_parts(self):
        rows = [[row["fitted_on"], str(row["rows_fitted"]), str(row["rows_tested"]),
                 *(_cell(row[key], "{:.0f}")
                   for key in ("checkpoint_rms_pct", "rate_checkpoint_rms_pct", "restart_rms_pct",
                               "rate_restart_rms_pct"))] for row in petascale.tested()]
        return [page.heading("A model of the published dumps"),
                page.paragraph("Checkpoint: draining, coordination of each process, and writing, "
                               "which gets slower with more processes. Restart: a start, "
                               "connections of each pair of processes, and reading. Errors are of "
                               "rows that it was not fitted on, root mean squares in percent of "
                               "the published time, beside those of size over the median rate. The "
                               "form was chosen with all rows in view."),
                page.table("model",
                           ["<fitted on", "rows fitted", "tested", "checkpoint %", "by the rate %",
                            "restart %", "by the rate %"],
                           rows)]

    def _weak_parts(self):
        found = self.weak()
        if not found:
            return []
        rows = [[str(row.nodes), str(row.nodes * row.ranks), _cell(row.rank_mb, "{:g}"),
                 _cell(row.size_bytes / MB, "{:.0f}"),
                 *map(_cell, (row.launch_s, row.stop_s, row.local_s, row.global_s, row.restart_s))]
                for row in found]
        parts = [page.heading("Weak scaling here"),
                 page.paragraph("One launched job on emulated nodes, which share the processors "
                                "and the storage of this machine. Before the restart their memory "
                                "tiers are removed."),
                 page.table("weak",
                            ["emulated nodes", "processes", "MB of a rank", "images MB", "launch s",
                             "stood still s", "level 1 s", "level 4 s", "restart s"],
                            rows)]
        wanted = self.extrapolated()
        if not wanted:
            return [*parts,
                    page.paragraph("Not extrapolated: that needs several numbers of ranks and of "
                                   "nodes, and sizes.")]
        off = petascale.own_errors(found)
        parts += [page.heading(f"{petascale.LARGEST} processes with 38 TB, extrapolated"),
                  page.paragraph("By the constants fitted on all rows above. Each of these rows by "
                                 "the others is off by "
                                 + ", ".join(f"{petascale.rms(values):.0f} % ({name})"
                                             for name, values in {
                                                 "level 1": off["local"],
                                                 "level 4": off["global"],
                                                 "restart": off["restart"]}.items())
                                 + ". Nothing of this size was measured here. Published, not ours: "
                                   "652.8 s for the checkpoint and 2539.05 s for the restart."),
                  page.table("extrapolated", ["<what", "extrapolated s", "<rests on"],
                             [[row["what"], _cell(row["extrapolated_s"], "{:.1f}"), row["rests_on"]]
                              for row in wanted]),
                  page.notes(list(petascale.ASSUMPTIONS))]
        return parts

    def _claim_parts(self):
        rows = [[row["table"], row["program"], str(row["processes"]), row["quantity"],
                 _cell(row["published"], "{:g}"), _cell(row["ours"], "{:.2f}"), row["ours_of"]]
                for row in self.claim_rows()]
        return [page.heading("Claims"),
                page.paragraph(
                    "Each published number beside that of the same program here, where it was run "
                    "(--program). Never the same machine, size or number of processes."),
                page.table("claims", ["<table", "<program", "processes", "<quantity", "published",
                                      "ours", "<ours is of"], rows)]

    def _notes(self):
        here = runs.machine()
        texts = []
        if self.refused:
            texts.append(f"Not measured: this machine lets no job be launched. {self.refused}")
        texts += [f"Here: {here['processor']}, {here['cores']} cores, {here['kernel']}; STREAM and "
                  "its launcher on one node, started by diapause launch. Storage: "
                  f"{self.results['rate']['bytes_per_s'] / MB:.0f} MB/s of one process that writes "
                  "and syncs.",
                  "Published: DMTCP on up to 32,752 ranks over InfiniBand, to Lustre. Launch times "
                  "there are of the ranks over the network; here of processes on one node.",
                  "The law is a lower bound: the published dumps took 7 to 17 times as long.",
                  "An image here holds the whole job with its launcher and the libraries of all "
                  "processes. A restart counts from the beginning of the restart until the job "
                  "goes on."]
        return texts

    def _table(self):
        rows = []
        for case in _cases(self.arguments):
            image, checkpoint, least = (self.median(case, "image_bytes"),
                                        self.median(case, "checkpoint_s"), self.least_s(case))
            launch = self.median(case, "launched_once_s") - self.median(case, "native_once_s")
            rows.append([str(case[0]), _cell(case[1], "{:g}"), _cell(image / MB, "{:.0f}"),
                         _cell(launch),
                         _cell(self.overhead(case), "{:+.2f}"),
                         _cell(self.median(case, "stood_still_s")), _cell(checkpoint), _cell(least),
                         _cell(checkpoint / least, "{:.1f}"),
                         _cell(self.median(case, "restart_s"))])
        return page.table("here", ["ranks", "MB of a rank", "image MB", "launch s", "overhead %",
                                   "stood still s", "checkpoint s", "law s", "over the law",
                                   "restart s"], rows)

    def _law_table(self):
        rows = [[row["system"], _cell(row["published_ideal_min"], "{:.1f}"),
                 _cell(row["law_min"], "{:.2f}"),
                 _cell(row["difference_pct"], "{:+.1f}"), row["why"],
                 row["uncertain_in_paper"].replace(";", ", ") or "-"]
                for row in self.law_rows()]
        return page.table("law", ["<system", "published, min", "by the law, min", "difference %",
                                  "<why", "<uncertain in the paper"], rows)


def _table_of(name):
    rows = published(name)
    return page.table(f"published-{name.split()[0].replace('.', '-').lower()}",
                      [f"<{column.replace('_', ' ')}" for column in rows[0]],
                      [[value or "-" for value in row.values()] for row in rows])


def _cell(value, text="{:.3f}"):
    return page.Number("-") if value is None else page.Number(text.format(value), float(value))
