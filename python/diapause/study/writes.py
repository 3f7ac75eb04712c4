"""`diapause study writes`: checkpoints written straight to the global directory, and those that
follow behind the program."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import statistics

import matplotlib

from diapause import amounts, look, page
from diapause.account import Sum
from diapause.study import options, programs, published, runs

# A checkpoint gets to the global directory in these ways. Each has settings, and says whether a
# tier of the node comes first.
METHODS = {
    "posix-file-per-rank": ("direct, POSIX, a file per rank", 'mode = "direct"\nfiles = "rank"',
                            None),
    "posix-aggregated": ("direct, POSIX, a file per node", 'mode = "direct"\nfiles = "auto"', None),
    "mpi-io": ("direct, MPI-IO, a file per node", 'mode = "mpi-io"\nfiles = "auto"', None),
    "async-memory": ("behind the program, memory first", 'mode = "staged"', "memory"),
    "async-disk": ("behind the program, disk first", 'mode = "staged"', "disk"),
}
LOCAL_PHASES = ("capture", "drain", "keep")
FLUSH_PHASES = ("encode", "global", "publish")
SCALINGS = ("weak", "strong")
CALLS_BETWEEN = 10  # iterations of STREAM from one checkpoint to the next
# A slowed flush must be over before the next checkpoint, or it is not slowed.
CALLS_BETWEEN_AT_CLOCKS = 100
CHECKPOINTS = 5  # of a run; the first one, which finds everything cold, does not count
EXPECTED_MB_S = 300.0  # for the time of the plan only
START_S = 2.0
# Section 3.4.2, about: what is compared, and the printed factor.
PUBLISHED = {"local throughput, memory over disk": 1.25, "local energy, memory over disk": 0.80,
             "total energy, direct over behind the program": 4.0}


def add_options(parser):
    options.add_common(parser, ranks=(1, 2, 4), repetitions=3)
    parser.add_argument("--size", type=options.positive, default=256.0)
    parser.add_argument("--disk", type=pathlib.Path)
    parser.add_argument("--clocks", type=options.clocks, default=(1.0, 0.85, 0.7, 0.5))
    parser.add_argument("--actuator", choices=("none", "cpufreq", "emulated"), default="none")
    parser.add_argument("--machine", choices=sorted(published.CHIPS), default="m510-broadwell")


# ---- runs ----------------------------------------------------------------------------------------


def _size_mb(arguments, scaling, ranks):
    """Returns the MB of a rank. In weak scaling they are the same for all numbers of ranks; in
    strong scaling the total is."""
    return arguments.size if scaling == "weak" else arguments.size * max(arguments.ranks) / ranks


def _first_tier(arguments):
    return (arguments.disk or arguments.output).resolve() / "diapause-first-tier"


def _toml(arguments, of):
    method, ratio = of.method, of.clock
    _, _, first = METHODS[method]
    governor = "" if ratio in (None, 1.0) else (
        f'[governor]\npolicy = "fixed"\nactuator = "{arguments.actuator}"\n'
        f'ratio_write = {ratio}\nratio_compress = {ratio}\n'
        f"watchdog = {json.dumps(str(arguments.command.resolve()))}\n")
    return (f'[level4]\nevery_calls = {of.calls_between}\n'
            f'[async]\nmode = "{"thread" if first else "off"}"\n{governor}')


@dataclasses.dataclass(frozen=True)
class Case:
    """A case that is run again in each repetition."""

    key: str
    title: str
    method: str
    ranks: int
    size_mb: float  # of a rank
    clock: float | None = None  # of flushes, over the base clock; None: this is not about clocks

    @property
    def calls_between(self):
        return CALLS_BETWEEN if self.clock is None else CALLS_BETWEEN_AT_CLOCKS


def measure(arguments, of, directory):
    parent = options.directory(arguments)
    launcher = options.launcher(arguments, of.ranks)
    _, of_global, first = METHODS[of.method]
    with programs.places(parent, _first_tier(arguments) if first == "disk" else None) as where:
        config = launcher.configuration(directory, _toml(arguments, of), where, of_global)
        words = launcher.words("stream", "--elements", int(of.size_mb * 1e6 / 24), "--iterations",
                               of.calls_between * CHECKPOINTS, "--config", config, "--name",
                               programs.NAME)
        found = programs.metered(launcher, words, directory)
        return {**found, "curve": [], "versions": versions_of(programs.ledger_of(where))}


def versions_of(ledger):
    """A dictionary for each checkpoint: bytes, seconds blocked, and seconds and joules of the local
    phase and of the flush."""
    made = {}
    for line in ledger.events("checkpoint"):
        made[line.fields["version"]] = {
            "bytes": line.fields.get("bytes_total", 0), "blocked_s": line.fields.get("blocked_s"),
            "level": line.fields.get("level_reached", 0), "local_s": 0.0, "flush_s": 0.0,
            "local_j": None, "flush_j": None, "local_off": None, "flush_off": None, "clock": None}
    sums = {}
    for energy in ledger.energy:
        for phase in energy.phases:
            part = ("local" if phase.name in LOCAL_PHASES else "flush" if phase.name in FLUSH_PHASES
                    else None)
            version = made.get(phase.version)
            if part is None or version is None:
                continue
            version[f"{part}_s"] += phase.seconds
            sums.setdefault((phase.version, part), Sum()).add(phase.joules)
            if phase.slowed and part == "flush":
                version["clock"] = phase.slowed.obtained
    for (number, part), sum_ in sums.items():
        made[number][f"{part}_j"] = sum_.of_known
        made[number][f"{part}_off"] = amounts.parts_of(sum_)
    return [made[number] for number in sorted(made)]


def _energy(version, part):
    """That of the local phase or of the flush, with its bounds; None: not known."""
    return amounts.sum_of(version[f"{part}_j"], version.get(f"{part}_off"))


def _ratios(arguments):
    return (tuple(sorted({1.0, *arguments.clocks}, reverse=True)) if arguments.actuator != "none"
            else ())


def cases(arguments):
    for scaling in SCALINGS if len(arguments.ranks) > 1 else ("weak",):
        for ranks in arguments.ranks:
            for method in METHODS:
                yield Case(f"{scaling}-{ranks}-{method}",
                           f"{scaling}, {ranks} ranks, {METHODS[method][0]}", method, ranks,
                           _size_mb(arguments, scaling, ranks))
    for clock in _ratios(arguments):
        yield Case(f"clock-{clock}", f"flush at {clock} of the clock", "async-memory",
                   max(arguments.ranks), arguments.size, clock)


def expected_s(case):
    return START_S + CHECKPOINTS * case.ranks * case.size_mb / EXPECTED_MB_S


def plan_of(arguments):
    made = []
    for repetition in range(arguments.repetitions):
        for case in cases(arguments):
            def do(directory, case=case):
                return measure(arguments, case, directory)

            made.append(runs.Run(f"{case.key}-{repetition + 1}", f"{case.title}, {repetition + 1}",
                                 expected_s(case), do))
    return runs.Plan(arguments.output, options.settings(arguments), made)


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments), _study_of)


def _study_of(arguments, results):
    shutil.rmtree(_first_tier(arguments), ignore_errors=True)
    return Study(arguments, results)


# ---- results -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of one checkpoint: medians over the checkpoints of all repetitions."""

    bytes: float
    blocked_s: float
    local_s: float
    flush_s: float
    local: Sum | None  # their energy
    flush: Sum | None

    @property
    def energy(self):
        return amounts.total(one for one in (self.local, self.flush) if one is not None)

    @property
    def durable_s(self):
        """From the beginning of the checkpoint until the global directory holds it."""
        return max(self.blocked_s, self.local_s + self.flush_s)


def _median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


class Study:
    def __init__(self, arguments, results):
        self.arguments = arguments
        self.results = results

    def _found(self, key):
        return [self.results[f"{key}-{i + 1}"] for i in range(self.arguments.repetitions)]

    def cost(self, key):
        """None if no checkpoint reached the global directory."""
        versions = [one for found in self._found(key) for one in found["versions"][1:]
                    if one["level"] == 4]
        # Only versions that really were slowed count, if there are any.
        versions = [one for one in versions if one["clock"] is not None] or versions
        if not versions:
            return None
        return Cost(*(_median(one[name] for one in versions)
                      for name in ("bytes", "blocked_s", "local_s", "flush_s")),
                    *(amounts.median(_energy(one, part) for one in versions)
                      for part in ("local", "flush")))

    @property
    def kind(self):
        kinds = {one["kind"] for one in self.results.values()} - {""}
        return " and ".join(sorted(kinds))

    def scalings(self):
        return SCALINGS if len(self.arguments.ranks) > 1 else ("weak",)

    def rows(self):
        rows = []
        for case in cases(self.arguments):
            for i, found in enumerate(self._found(case.key)):
                for number, one in enumerate(found["versions"]):
                    rows.append({"case": case.key, "method": case.method, "ranks": case.ranks,
                                 "mb_of_rank": case.size_mb, "clock_asked": case.clock or 1.0,
                                 "clock_obtained": one["clock"], "repetition": i + 1,
                                 "checkpoint": number + 1,
                                 **{name: one[name] for name in (
                                     "bytes", "level", "blocked_s", "local_s", "flush_s")},
                                 **amounts.columns("local_j", _energy(one, "local")),
                                 **amounts.columns("flush_j", _energy(one, "flush")),
                                 "runtime_s": found["seconds"],
                                 "node_w": found["watts"].get("total"),
                                 **amounts.columns("run_j", programs.joules_of(found)),
                                 "energy_kind": found["kind"]})
        return rows

    def _of_both(self, above, below, value):
        """At the largest number of ranks of weak scaling; None where it is not known."""
        ranks = max(self.arguments.ranks)
        found = [self.cost(f"weak-{ranks}-{method}") for method in (above, below)]
        return [value(one) if one else None for one in found]

    def comparison(self):
        """Returns what the thesis says in words, and the same for the runs of here."""
        rates = self._of_both("async-memory", "async-disk", _local_rate)
        here = {"local throughput, memory over disk":
                (rates[0] / rates[1] if None not in rates and rates[1] else None, None),
                "local energy, memory over disk": amounts.ratio(*self._of_both(
                    "async-memory", "async-disk", lambda one: one.local)),
                "total energy, direct over behind the program": amounts.ratio(*self._of_both(
                    "posix-file-per-rank", "async-memory", lambda one: one.energy))}
        rows = []
        for what, value in PUBLISHED.items():
            (ratio, off), is_energy = here[what], "energy" in what
            rows.append({"what": what, "here": ratio, "here_off": off,
                         "here_bound": None if ratio is None or not is_energy else "bound"
                         if off is not None else amounts.NO_BOUND,
                         "here_kind": self.kind if is_energy else "measured", "published": value})
        return rows

    # ---- clocks during flushes -------------------------------------------------------------------

    def clock_rows(self):
        """Returns what lower clocks during flushes do, over the full clock, beside the model of the
        published slowdown and power."""
        rows = []
        full = f"clock-{1.0}"
        curve, top = published.curve_of(self.arguments.machine, "write")
        for ratio in _ratios(self.arguments):
            key = f"clock-{ratio}"
            cost, base = self.cost(key), self.cost(full)
            clocks = [one["clock"] for found in self._found(key)
                      for one in found["versions"] if one["clock"] is not None]
            is_slowed = ratio == 1.0 or bool(clocks)
            counts = self.arguments.actuator == "cpufreq" and self.kind == "measured"
            longer = published.phi("write") / ratio + 1 - published.phi("write")
            known = is_slowed and cost and base
            rows.append({
                "clock_asked": ratio, "clock_obtained": statistics.fmean(clocks) if clocks else 1.0
                if ratio == 1.0 else None, "clock_by": self.arguments.actuator,
                "here_flush_over_full": cost.flush_s / base.flush_s if known
                and base.flush_s else None,
                "here_program_over_full": self._runtime(key) / self._runtime(full) if is_slowed
                else None,
                **dict(zip(("here_energy_over_full", "here_energy_over_full_off"), amounts.ratio(
                    self._energy(key), self._energy(full)) if is_slowed and counts
                    else (None, None))),
                "modelled_flush_over_full": longer, "modelled_program_over_full": 1.0,
                "modelled_flush_energy_over_full": longer * curve.power(
                    ratio * top) / curve.power(top),
                "modelled_energy_bound": amounts.NO_BOUND})
        return rows

    def _runtime(self, key):
        return min(found["seconds"] for found in self._found(key))

    def _spread(self, key):
        seconds = [found["seconds"] for found in self._found(key)]
        return max(seconds) / min(seconds) - 1

    def _noise(self):
        if self.arguments.repetitions == 1:
            return "How much runs at the full clock differ is not known: there was one."
        return f"Runs at the full clock differed by {100 * self._spread(f'clock-{1.0}'):.0f} %."

    def _energy(self, key):
        return programs.joules_of(min(self._found(key), key=lambda found: found["seconds"]))

    def answer(self):
        """Says in a sentence whether lower clocks during flushes pay."""
        rows = self.clock_rows()
        if not rows:
            return ("Clocks during background flushes: not measured. --actuator cpufreq sets them, "
                    "emulated makes believe; no published study has measured it either.")
        slowed = [row for row in rows if row["clock_asked"] < 1
                  and row["here_program_over_full"] is not None]
        if not slowed:
            return ("Clocks during background flushes: not measured, because the clock could not "
                    "be changed here.")
        last = slowed[-1]
        text = (f"At {last['clock_asked']} of the clock during flushes the program took "
                f"{last['here_program_over_full']:.2f} times as long, and a flush "
                f"{last['here_flush_over_full']:.2f} times ({self.arguments.actuator}); the model "
                f"says {last['modelled_flush_over_full']:.2f} times for the flush and nothing for "
                f"the program. {self._noise()} ")
        known = [row for row in slowed if row["here_energy_over_full"] is not None]
        if not known:
            return text + ("What energy that saves was not measured: a run that takes longer by as "
                           "many percent as the flush saves of the whole energy saves nothing, and "
                           "a flush is a small part of it.")
        best = min(known, key=lambda row: row["here_energy_over_full"])
        saved, off = (1 - best["here_energy_over_full"], best["here_energy_over_full_off"])
        if saved <= (off or 0.0):
            return text + "No clock saved energy of the run that can be told apart."
        shown = amounts.saved_cell(100 * saved, None if off is None else 100 * off).text
        return text + f"The most energy was saved at {best['clock_asked']}: {shown} % of the run."

    # ---- pictures and page -----------------------------------------------------------------------

    def files(self):
        """The rows of each CSV file."""
        return {"measurements": self.rows(), "comparison": self.comparison(),
                "clocks": self.clock_rows()}

    def figures(self):
        return {f"{scaling}-scaling": self._draw(scaling) for scaling in self.scalings()}

    def _draw(self, scaling):
        height = 3.9
        made = look.figure(height, f"{scaling.capitalize()} scaling",
                           f"times measured, energy {self.kind or 'unknown'}")
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(1, 3, gridspec_kw={"left": 0.065, "right": 0.985,
                                                     "top": 1 - 0.98 / height,
                                                     "bottom": 0.5 / height, "wspace": 0.26})
            shown = (("MB/s while the program waits", lambda one: one.bytes / one.blocked_s / 1e6),
                     ("MB/s until it is durable", lambda one: one.bytes / one.durable_s / 1e6),
                     ("J of a checkpoint", lambda one: one.energy and one.energy.joules))
            for method, colour, marker in zip(METHODS, look.LINES, look.MARKERS):
                costs = [(ranks, self.cost(f"{scaling}-{ranks}-{method}"))
                         for ranks in self.arguments.ranks]
                for axes, (_, value) in zip(panes, shown):
                    known = [(ranks, one) for ranks, one in costs if one and one.blocked_s
                             and value(one) is not None]
                    off = [one.energy.uncertainty_j or 0.0 for _, one in known] if (
                        axes is panes[-1]) else None
                    axes.errorbar([ranks for ranks, _ in known], [value(one) for _, one in known],
                                  off, fmt=marker + "-", color=colour, markersize=4.5,
                                  linewidth=1.2, elinewidth=0.8, label=METHODS[method][0])
            for axes, (title, _) in zip(panes, shown):
                axes.set_title(title, loc="left")
                axes.set_xlabel("ranks")
                axes.set_xticks(self.arguments.ranks)
                axes.set_ylim(bottom=0)
                axes.grid()
            made.legend(*panes[0].get_legend_handles_labels(), loc="upper right", ncols=3,
                        fontsize=7.5,
                        bbox_to_anchor=(0.99, 1 - 0.24 / height))
        return made

    def page(self, figures):
        parts = [page.heading_of_page("Writing checkpoints"),
                 f"<p>{page.kind_mark(self.kind)}</p>\n", page.notes(self._notes()),
                 page.heading("Beside the published study"), self._published_table()]
        for scaling in self.scalings():
            parts += [page.heading(f"{scaling.capitalize()} scaling"),
                      page.picture(look.saved(figures[f"{scaling}-scaling"], "svg"),
                                   f"{scaling} scaling of rate and energy",
                                   "Thin lines: how far energy may be off, all parts together; "
                                   "where there are none it has no bound."),
                      self._table(scaling)]
        parts += [page.heading("Clocks during background flushes"), page.paragraph(self.answer())]
        if self.clock_rows():
            parts.append(self.clock_table())
        return page.document("Writing checkpoints", parts)

    def _notes(self):
        here, one = runs.machine(), self.arguments
        texts = [f"Here: {here['processor']}, {here['cores']} cores, {here['kernel']}; STREAM with "
                 f"{one.size:g} MB of a rank (weak scaling), or {one.size * max(one.ranks):g} MB "
                 "of all ranks (strong). Published: up to 2 GiB of a rank, GenericIO for direct "
                 "writes and VELOC for those behind the program, processor and memory measured, no "
                 "storage device.",
                 "Energy is what phases of checkpoints use beyond the program, by the rule of the "
                 "account; the published one is all that processor and memory used meanwhile. The "
                 "data of the published figures is not in the text; what stands beside ours is "
                 "what it says in words.",
                 "A quotient of two energies may be off by what samples have missed and by who is "
                 "charged; the meter is off by the same share of both."]
        if self.kind != "measured":
            texts.append("No counter measured power here: energy is modelled." if self.kind
                         else "Nothing tells energy here.")
        if max(one.ranks) > here["cores"]:
            texts.append("There were more ranks than cores: what follows behind the program takes "
                         "time from it.")
        return texts

    def _published_table(self):
        rows = [[one["what"], _cell(one["published"], "{:.2f}"),
                 amounts.ratio_cell(one["here"], one["here_off"]) if one["here_bound"]
                 else _cell(one["here"], "{:.2f}"),
                 one["here_kind"] if one["here"]
                 is not None else "not measured"] for one in self.comparison()]
        return page.table("published-writes",
                          ["<factor", "published, about", "here", "<here it is"], rows)

    def _table(self, scaling):
        rows = []
        for ranks in self.arguments.ranks:
            for method in METHODS:
                one = self.cost(f"{scaling}-{ranks}-{method}")
                cells = ["-"] * 15 if one is None else [
                    _cell(one.bytes / 1e6, "{:.0f}"), _cell(one.blocked_s, "{:.4f}"),
                    _cell(one.local_s, "{:.4f}"), _cell(one.flush_s, "{:.4f}"),
                    _cell(one.bytes / one.durable_s / 1e6, "{:.0f}"), *amounts.cells(one.local),
                    *amounts.cells(one.flush)]
                rows.append([str(ranks), METHODS[method][0], *cells])
        return page.table(f"{scaling}-writes",
                          ["ranks", "<method", "MB", "blocked s", "local phase s", "flush s",
                           "MB/s until durable", *amounts.heads("local J"),
                           *amounts.heads("flush J")], rows)

    def clock_table(self):
        rows = [[_cell(row["clock_asked"]), _cell(row["clock_obtained"]),
                 _cell(row["here_flush_over_full"]), _cell(row["here_program_over_full"]),
                 amounts.ratio_cell(row["here_energy_over_full"],
                                    row["here_energy_over_full_off"]),
                 *(_cell(row[f"modelled_{name}_over_full"])
                   for name in ("flush", "program", "flush_energy"))]
                for row in self.clock_rows()]
        return page.table("flush-clocks",
                          ["asked", "obtained", "flush", "program", "energy, measured",
                           "flush, modelled", "program, modelled",
                           "energy of the flush, modelled, no bound"],
                          rows)


def _local_rate(one):
    return one.bytes / one.local_s if one.local_s else None


def _cell(value, text="{:.3f}"):
    return page.Number("-") if value is None else page.Number(text.format(value), float(value))
