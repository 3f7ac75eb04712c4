"""`diapause study failures`: heat among injected failures, a second for an hour, beside `diapause
simulate` with the same ones.

Calibration runs, between the others, tell what an iteration, a checkpoint and a restart cost. The
runs that are predicted take no part in that.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics

import matplotlib

from diapause import look, page, records
from diapause.files import Trouble, written
from diapause.study import options, programs, runs
from diapause.study.killing import CLASSES, Failure, drawn, endure, trace_of

ITERATION_MS = 20.0  # at least: so long that other work on the machine changes it little
FEWEST_CHECKPOINTS = 6  # in a calibration run, so that both of its failures come behind one
CALIBRATE_EVERY = 2  # runs
CALIBRATION_TRIES = 3
GOAL = 0.05
RANDOM_REPLICAS = 1000
START_S = 1.5


def add_options(parser):
    options.add_common(parser, ranks=4, repetitions=20)
    parser.set_defaults(ranks_per_node=1)
    parser.add_argument("--size", type=options.positive, default=2.0)
    parser.add_argument("--seconds", type=options.positive, default=12.0)
    parser.add_argument("--interval-s", type=options.positive, default=1.0)
    parser.add_argument("--mtbf", type=_mean_time, action="append")


def _mean_time(text):
    name, _, seconds = text.partition("=")
    if name not in CLASSES:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not of the form process=SECONDS or node=SECONDS")
    return name, options.positive(seconds)


def _mean_times(arguments):
    """Seconds between failures of a class in the job: of those that were not told, a half of the
    work for processes, a node a third as often."""
    told = dict(arguments.mtbf or ())
    process_s = told.get("process", arguments.seconds / 2)
    return {"process": process_s, "node": told.get("node", 3 * process_s)}


# ---- runs ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of a run, whatever fails in it."""

    launcher: programs.Launcher
    size_mb: float  # of a rank
    seconds: float
    interval_s: float

    @property
    def nodes(self):
        return -(-self.launcher.ranks // self.launcher.ranks_per_node)

    @property
    def interval(self):
        """Iterations between checkpoints."""
        return max(1, round(1e3 * self.interval_s / ITERATION_MS))

    @property
    def iterations(self):
        """So many that no checkpoint is due at the last one."""
        count = max(FEWEST_CHECKPOINTS, round(1e3 * self.seconds / ITERATION_MS / self.interval))
        return count * self.interval + self.interval // 2 if self.interval > 1 else count

    def calibration_failures(self):
        """A process and a node, behind a quarter and behind a half of the work."""
        return [Failure("process", 0, version=self.iterations // 4),
                Failure("node", self.nodes - 1, version=self.iterations // 2)]

    def calibrate(self, directory, parent):
        """A run that was done before it could fail as it was to is done again."""
        for _ in range(CALIBRATION_TRIES):
            found = self.run(self.calibration_failures(), directory, parent)
            if len(found["kills"]) == len(CLASSES):
                break
        return found

    def toml(self):
        # A process that is killed while it ends, with all its work done, must not begin anew.
        return (f'schedule = ""\n[level2]\nevery_calls = {self.interval}\n'
                '[async]\nmode = "off"\n[finish]\nkeep = "all"\n')

    def run(self, failures, directory, parent):
        with programs.places(parent) as where:
            config = self.launcher.configuration(directory, self.toml(), where)
            side = math.isqrt(int(self.size_mb * 1e6 * self.launcher.ranks / 8))
            words = self.launcher.words("heat", "--size", side, "--iterations", self.iterations,
                                        "--min-ms-per-iteration", ITERATION_MS, "--config", config,
                                        "--name", programs.NAME)
            told = endure(words, directory, where, failures)
            return {**told, **told_by(programs.ledger_of(where)), "iterations": self.iterations}


def told_by(ledger):
    """Of each checkpoint that held and each restart what costs are taken from. A checkpoint that
    puts back what a failure has taken of the version that was restored is a part of the restart."""
    restored = {line.incarnation: records.count(line.fields, "version")
                for line in ledger.events("restart")}
    checkpoints = []
    for line in ledger.events("checkpoint"):
        version, blocked_s = (records.count(line.fields, "version"),
                              records.duration(line.fields, "blocked_s"))
        held = records.count(line.fields, "level_reached") and None not in (version, blocked_s)
        if held and restored.get(line.incarnation) != version:
            checkpoints.append([line.incarnation, line.unix_s, version, blocked_s])
    return {"checkpoints": checkpoints,
            "restored": [[key, value] for key, value in restored.items() if value is not None]}


def plan_of(arguments):
    parent = options.directory(arguments)
    shape = _shape(arguments)
    failures = sum(arguments.seconds / mean_s for mean_s in _mean_times(arguments).values())
    among_failures_s = arguments.seconds + START_S + failures * (START_S + arguments.interval_s / 2)
    made = []
    for number in range(arguments.repetitions):
        if number % CALIBRATE_EVERY == 0:
            calibration = number // CALIBRATE_EVERY + 1
            made.append(runs.Run(f"calibration-{calibration}", f"what things cost, {calibration}",
                                 arguments.seconds + 3 * START_S,
                                 lambda directory: shape.calibrate(directory, parent)))
        made.append(runs.Run(f"run-{number + 1}", f"among failures, {number + 1}", among_failures_s,
                             lambda directory, number=number: shape.run(
                                 _failures(arguments, number), directory, parent)))
    return runs.Plan(arguments.output, options.settings(arguments), made)


def _shape(arguments):
    return Shape(options.launcher(arguments, arguments.ranks), arguments.size, arguments.seconds,
                 arguments.interval_s)


def _failures(arguments, number):
    return drawn(_mean_times(arguments), _shape(arguments).nodes, _until_s(arguments), number + 1)


def _until_s(arguments):
    """No run takes that long."""
    return 1000 * arguments.seconds


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments),
                   lambda arguments, results: Study(arguments, results, Simulator(arguments)))


# ---- what a calibration tells --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Costs:
    """In seconds."""

    iteration_s: float
    checkpoint_s: float
    start_s: float  # from the first start until the first iteration
    restart_s: dict[str, float]  # from a failure of that class until the next iteration
    end_s: float  # behind the last iteration


def costs_of(calibrations):
    """Means over some runs with a failure of each class. Trouble if they do
    not tell all of them."""
    found = {"iteration": [], "checkpoint": [], "start": [], "end": [],
             **{kind: [] for kind in CLASSES}}
    iterations = work_s = 0.0
    for one in calibrations:
        by_start = {}
        for number, unix_s, version, blocked_s in sorted(one["checkpoints"],
                                                         key=lambda line: line[1]):
            by_start.setdefault(number, []).append((unix_s, version, blocked_s))
            found["checkpoint"].append(blocked_s)
        for lines in by_start.values():
            for (unix_s, version, blocked_s), (then_s, next_version, _) in zip(lines, lines[1:]):
                work_s += then_s - unix_s - blocked_s
                iterations += next_version - version
    if not iterations:
        raise Trouble(
            "no calibration run has two checkpoints behind one another: give more --seconds")
    iteration_s = work_s / iterations
    for one in calibrations:
        _add_edges(one, iteration_s, found)
    missing = [name for name, values in found.items() if not values and name != "iteration"]
    if missing:
        raise Trouble(f"the calibration runs do not tell what this takes: {', '.join(missing)}; "
                      "give more --seconds")
    means = {name: statistics.fmean(values) for name, values in found.items() if values}
    return Costs(iteration_s, means["checkpoint"], means["start"],
                 {kind: means[kind] for kind in CLASSES}, means["end"])


def _add_edges(one, iteration_s, found):
    """What starts and the end take beyond the iterations up to and from the next checkpoint."""
    restored = dict(map(tuple, one["restored"]))
    lines = sorted(one["checkpoints"], key=lambda line: line[1])
    firsts = {}
    for number, unix_s, version, _ in lines:
        firsts.setdefault(number, (unix_s, version))
    begins = [("start", one["begin_unix_s"]), *((kind, unix_s) for kind, unix_s in one["kills"])]
    for number, (what, begin_unix_s) in enumerate(begins, start=1):
        if number not in firsts:
            continue
        unix_s, version = firsts[number]
        found[what].append(
            unix_s - begin_unix_s - (version - restored.get(number, 0)) * iteration_s)
    _, unix_s, version, blocked_s = lines[-1]
    end_unix_s = one["begin_unix_s"] + one["seconds"]
    found["end"].append(
        end_unix_s - unix_s - blocked_s - (one["iterations"] - version) * iteration_s)


# ---- prediction ----------------------------------------------------------------------------------


class Simulator:
    """`diapause simulate` of the same job."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.shape = _shape(arguments)

    def with_failures(self, costs, failures):
        """Seconds that the run takes among these failures, checkpoints in it,
        and restarts by class."""
        until_s = _until_s(self.arguments)
        trace = written(self.arguments.output.resolve() / "failures.csv",
                        trace_of(failures, costs.start_s, until_s))
        try:
            whole = self._play(costs, "--trace", trace, "--replicas", 1)["whole"]
        finally:
            trace.unlink()
        return {"seconds": costs.start_s + whole["wall time"]["mean"] + costs.end_s,
                "checkpoints": whole["checkpoints of level 2"]["mean"],
                "restarts": whole["restarts from level 1"]["mean"]
                + whole["restarts from level 2"]["mean"]}

    def at_random(self, costs):
        """(mean seconds, half the width of the interval that holds the mean with 95 %) over
        failures of the same means."""
        wall = self._play(costs, "--replicas", RANDOM_REPLICAS)["whole"]["wall time"]
        return costs.start_s + wall["mean"] + costs.end_s, wall["half_width"]

    def _play(self, costs, *more):
        def level(number, kind):
            return (f"--level={number}:blocked={costs.checkpoint_s}s,behind=0s,"
                    f"restart={max(costs.restart_s[kind], 0)}s,down=0s")

        shape = self.shape
        means = [f"--mtbf={kind}={seconds}s"
                 for kind, seconds in _mean_times(self.arguments).items()]
        words = [self.arguments.command, "simulate", "--json", "--sync", "--nodes", shape.nodes,
                 "--ranks", shape.launcher.ranks, "--bytes-per-rank", f"{shape.size_mb}MB",
                 "--levels", "1,2", level(1, "process"), level(2, "node"),
                 "--interval", f"{shape.interval * costs.iteration_s}s", "--every", 1, "--work",
                 f"{shape.iterations * costs.iteration_s}s", "--seed", 1, *means, *more]
        return json.loads(programs.output_of(list(map(str, words)), self.arguments.output)[1])


# ---- results -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean, and how far either way it may be off with 95 %; None: it is of one value."""

    mean: float
    half: float | None

    def text(self, form="{:.2f}"):
        return form.format(self.mean) + ("" if self.half is None
                                         else " +- " + form.format(self.half))


def interval_of(values):
    values = list(values)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return Interval(statistics.fmean(values), half)


class Study:
    def __init__(self, arguments, results, simulator):
        self.arguments = arguments
        self.calibrations = [one for key, one in results.items() if key.startswith("calibration-")]
        self.measured = [results[f"run-{i + 1}"] for i in range(arguments.repetitions)]
        self.costs = costs_of(self.calibrations)
        self.predicted = [simulator.with_failures(self._costs_near(i), _failures(arguments, i))
                          for i in range(arguments.repetitions)]
        self.at_random, self.at_random_half = simulator.at_random(self.costs)

    def _costs_near(self, number):
        """From the calibrations before and behind the run; from all where
        these do not tell them."""
        before = number // CALIBRATE_EVERY
        try:
            return costs_of(self.calibrations[before:before + 2])
        except Trouble:
            return self.costs

    def mean_measured(self):
        return interval_of(one["seconds"] for one in self.measured)

    def mean_predicted(self):
        return statistics.fmean(one["seconds"] for one in self.predicted)

    def off(self):
        """By which share measured runs take longer than predicted, all together. Runs that share a
        calibration err alike, and count as one for what it may be off."""
        beside = [real["seconds"] - told["seconds"]
                  for real, told in zip(self.measured, self.predicted)]
        groups = [beside[i:i + CALIBRATE_EVERY] for i in range(0, len(beside), CALIBRATE_EVERY)]
        half = interval_of(map(statistics.fmean, groups)).half
        predicted = self.mean_predicted()
        return Interval(statistics.fmean(beside) / predicted,
                        None if half is None else half / predicted)

    def verdict(self):
        off = self.off()
        within = abs(off.mean) <= GOAL
        text = (f"{len(self.measured)} runs took {self.mean_measured().text()} s on the mean, and "
                f"{self.mean_predicted():.2f} s are predicted for the same failures: "
                f"{100 * off.mean:+.1f} %"
                f"{'' if off.half is None else f' +- {100 * off.half:.1f} %'}, "
                f"{'within' if within else 'not within'} {100 * GOAL:.0f} %.")
        if off.half is not None and off.half > GOAL:
            text += " The runs are too few, or the machine too unsteady, to tell that for sure."
        return text

    def rows(self):
        rows = []
        for number, (real, told) in enumerate(zip(self.measured, self.predicted), start=1):
            kinds = [kind for kind, _ in real["kills"]]
            rows.append({"run": number, "measured_s": round(real["seconds"], 3),
                         "predicted_s": round(told["seconds"], 3),
                         "measured_over_predicted": round(real["seconds"] / told["seconds"], 4),
                         "failures_of_processes": kinds.count("process"),
                         "failures_of_nodes": kinds.count("node"), "measured_restarts": len(kinds),
                         "predicted_restarts": told["restarts"],
                         "measured_checkpoints": len(real["checkpoints"]),
                         "predicted_checkpoints": told["checkpoints"]})
        return rows

    def cost_rows(self):
        one = self.costs
        named = {"iteration": one.iteration_s, "checkpoint": one.checkpoint_s,
                 "first start": one.start_s,
                 "restart after a process failed": one.restart_s["process"],
                 "restart after a node failed": one.restart_s["node"], "end": one.end_s}
        return [{"what": what, "seconds": round(seconds, 6)} for what, seconds in named.items()]

    def comparison(self):
        measured, predicted, off = self.mean_measured(), self.mean_predicted(), self.off()
        return [{"what": "mean seconds, the same failures", "measured": measured.mean,
                 "measured_half_width": measured.half, "predicted": predicted,
                 "predicted_half_width": None, "off_pct": 100 * off.mean,
                 "off_half_width_pct": None if off.half is None else 100 * off.half},
                {"what": "mean seconds, failures drawn anew", "measured": measured.mean,
                 "measured_half_width": measured.half, "predicted": self.at_random,
                 "predicted_half_width": self.at_random_half,
                 "off_pct": 100 * (measured.mean / self.at_random - 1), "off_half_width_pct": None}]

    def files(self):
        return {"measurements": self.rows(), "costs": self.cost_rows(),
                "comparison": self.comparison()}

    # ---- picture and page ------------------------------------------------------------------------

    def figures(self):
        height = 4.6
        made = look.figure(height, "Run time among failures",
                           "measured, and simulated with measured costs")
        with matplotlib.rc_context(look.STYLE):
            axes = made.subplots(gridspec_kw={"left": 0.08, "right": 0.62, "top": 1 - 0.55 / height,
                                              "bottom": 0.5 / height})
            predicted = [one["seconds"] for one in self.predicted]
            measured = [one["seconds"] for one in self.measured]
            ends = (0.9 * min(predicted + measured), 1.1 * max(predicted + measured))
            axes.fill_between(ends, [(1 - GOAL) * end for end in ends],
                              [(1 + GOAL) * end for end in ends], color=look.LIGHT, linewidth=0,
                              label=f"within {100 * GOAL:.0f} %")
            axes.plot(ends, ends, color=look.GREY, linewidth=0.9)
            axes.plot(predicted, measured, "o", color=look.BLUE, markersize=4.5, label="a run")
            axes.plot([statistics.fmean(predicted)], [statistics.fmean(measured)], "D",
                      color=look.VERMILION, markersize=7, label="mean of all")
            axes.set_xlabel("s predicted, with the failures of the run")
            axes.set_ylabel("s measured")
            axes.grid()
            axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0)
        return {"measured-over-predicted": made}

    def page(self, figures):
        parts = [page.heading_of_page("Among failures"), page.paragraph(self.verdict()),
                 page.notes(self._notes()),
                 page.picture(look.saved(figures["measured-over-predicted"], "svg"),
                              "Measured over predicted run time"),
                 page.heading("What is compared"), self._table("comparison", self.comparison()),
                 page.heading("What things cost here"), self._table("costs", self.cost_rows()),
                 page.heading("Runs"), self._table("runs", self.rows())]
        return page.document("Among failures", parts)

    def _notes(self):
        here, one, means = runs.machine(), self.arguments, _mean_times(self.arguments)
        shape = _shape(one)
        return [f"Here: {here['processor']}, {here['cores']} cores, {here['kernel']}; heat with "
                f"{one.ranks} ranks on {shape.nodes} emulated nodes, {one.size:g} MB of a rank, "
                f"{shape.iterations} iterations of at least {ITERATION_MS:g} ms, a checkpoint of "
                f"level 2 every {shape.interval} of them. The mean time between failures is "
                f"{means['process']:g} s for processes and {means['node']:g} s for nodes: take "
                "seconds for hours.",
                "A failure kills all ranks at once; that of a node also removes what it holds in "
                "memory. The job is started again at once. Failures that come while it starts take "
                "the start with them, here and in the simulation.",
                f"Costs are from {len(self.calibrations)} runs of their own, taken between the "
                "others, with a failure of each class: for each run those of the calibrations "
                "before and behind it. The times of the predicted runs are in no cost. The table "
                "of costs has the means of all, from which the run time among other failures is "
                "predicted, too."]

    @staticmethod
    def _table(name, rows):
        def cell(value):
            if isinstance(value, str):
                return value
            return page.Number("-") if value is None else page.Number(f"{value:.4g}", float(value))

        heads = [("<" if isinstance(value, str) else "") + column.replace("_", " ")
                 for column, value in rows[0].items()]
        return page.table(name, heads, [[cell(value) for value in row.values()] for row in rows])
