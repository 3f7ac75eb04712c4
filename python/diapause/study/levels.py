"""`diapause study levels`: multilevel checkpoints of heat and STREAM, as the published study has
them on four machines."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import re

import matplotlib

from diapause import amounts, look, page
from diapause.study import multilevel, options, programs, runs

APPLICATIONS = ("heat", "stream")
STREAM_OVER_HEAT = 3  # in bytes of a rank's checkpoint, as published: 96 and 32 MB on the Cray XC40
START_S = 2.0  # about what a launcher takes
PART_STYLES = ((0, (1, 1)), (0, (4, 2)), (0, (6, 1, 1, 1)), "-")  # of lines of single components
CONFIGURATION = re.compile(r"ckp\(\d+(\.\d+)?(,\d+(\.\d+)?){3}\)(/e\d+)?")


def add_options(parser):
    options.add_common(parser, ranks=4, repetitions=3)
    parser.add_argument("--size", type=options.positive, default=32.0)
    parser.add_argument("--application", type=_applications, default=APPLICATIONS)
    parser.add_argument("--configuration", type=_configuration, action="append")
    parser.add_argument("--seconds", type=options.positive, default=60.0)
    parser.add_argument("--minute-s", type=options.positive)


def _applications(text):
    found = tuple(text.split(","))
    for name in found:
        if name not in APPLICATIONS:
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(APPLICATIONS)}")
    return found


def _configuration(text):
    if not CONFIGURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not of the form ckp(3,5,7,11) or ckp(3,5,7,11)/e1")
    return text


# ---- runs ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Application:
    """One of the programs, with the size of its state and the length of its runs."""

    name: str
    launcher: programs.Launcher
    size_mb: float
    seconds: float
    minute_s: float

    def words(self, is_plain, iterations, *more):
        bytes_of_rank = self.size_mb * 1e6
        size = (("--size", math.isqrt(int(bytes_of_rank * self.launcher.ranks / 8)))
                if self.name == "heat" else
                ("--elements", int(STREAM_OVER_HEAT * bytes_of_rank / 24)))
        return self.launcher.words(self.name + ("_plain" if is_plain else ""), *size,
                                   "--iterations", iterations, *more)

    def calibrate(self, directory):
        """Finds how many iterations take about the seconds. The number is doubled until they take
        long enough to be told from the start."""
        start_s, _ = programs.output_of(self.words(True, 1), directory)
        iterations, took_s = 8, 0.0
        while took_s < min(2.0, self.seconds / 4):
            iterations *= 2
            took_s = programs.output_of(self.words(True, iterations), directory)[0] - start_s
        return {"iterations": max(
            1, round(iterations * max(self.seconds - start_s, self.seconds / 4) / took_s))}

    def run(self, configuration, iterations, directory, parent):
        """Without checkpoints it is the program that knows nothing of Diapause."""
        if configuration == multilevel.ORIGINAL:
            return {**programs.metered(self.launcher, self.words(True, iterations), directory),
                    "checkpoints": []}
        with programs.places(parent) as where:
            config = self.launcher.configuration(directory, _toml(configuration, self.minute_s),
                                                 where)
            found = programs.metered(self.launcher,
                                     self.words(False, iterations, "--config", config, "--name",
                                                programs.NAME), directory)
            ledger = programs.ledger_of(where)
            return {**found, "checkpoints": programs.checkpoints_of(ledger, found["begin_unix_s"])}


def _toml(configuration, minute_s):
    """The published checkpoints are synchronous."""
    flips = (f"[flips]\nevery_s = {multilevel.FLIPS_EVERY_MINUTES * minute_s}\n"
             if "/e" in configuration else "")
    return f'schedule = "{configuration}"\nminute_s = {minute_s}\n[async]\nmode = "off"\n{flips}'


def _application(arguments, name):
    minute_s = arguments.minute_s or arguments.seconds / multilevel.minutes(name)
    return Application(name, options.launcher(arguments, arguments.ranks), arguments.size,
                       arguments.seconds, minute_s)


def _configurations(arguments, name):
    """All published ones, or those asked for with the baselines that they are compared with."""
    kinds = multilevel.tables_of(name)
    if not arguments.configuration:
        return list(dict.fromkeys(one for kind in kinds
                                  for one in multilevel.configurations(name, kind)))
    baselines = [multilevel.ORIGINAL]
    if name == "heat" and any("/e" in one for one in arguments.configuration):
        baselines.append(multilevel.baseline(name, "flips"))
    return list(dict.fromkeys(baselines + arguments.configuration))


def plan_of(arguments):
    parent = options.directory(arguments)
    made, calibrations = [], {}
    plan = runs.Plan(arguments.output, options.settings(arguments), made)
    for name in arguments.application:
        application = _application(arguments, name)
        calibrations[name] = f"{name}-calibration"
        made.append(runs.Run(calibrations[name], f"{name}: how many iterations fit",
                             arguments.seconds, application.calibrate))
    for repetition in range(arguments.repetitions):
        for name in arguments.application:
            application = _application(arguments, name)
            for configuration in _configurations(arguments, name):
                def do(directory, application=application, configuration=configuration):
                    iterations = plan.result(calibrations[application.name])["iterations"]
                    return application.run(configuration, iterations, directory, parent)

                made.append(runs.Run(_key(name, configuration, repetition),
                                     f"{name} {configuration}, {repetition + 1}",
                                     arguments.seconds + START_S, do))
    return plan


def _key(name, configuration, repetition):
    return f"{name}-{re.sub('[^a-z0-9.]+', '-', configuration.lower()).strip('-')}-{repetition + 1}"


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments), Study)


# ---- results -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Change:
    """Percent of the baseline, by (value - baseline) / baseline (Eq. 2 of the
    study); None: not known."""

    runtime: float | None
    power: float | None
    energy: float | None
    # How far power and energy may be off, in percentage points. The meter is off by the same share
    # of both runs; None: nobody knows what its samples have missed.
    off: float | None = None


def _percent(value, base):
    return None if value is None or not base else (value - base) / base * 100


class Study:
    """All runs; of several repetitions the one with the smallest run time counts, as published."""

    def __init__(self, arguments, results):
        self.arguments = arguments
        self.results = results

    def repetitions(self, name, configuration):
        return [self.results[_key(name, configuration, i)]
                for i in range(self.arguments.repetitions)]

    def best(self, name, configuration):
        return min(self.repetitions(name, configuration), key=lambda one: one["seconds"])

    def change(self, name, configuration, baseline):
        found, base = self.best(name, configuration), self.best(name, baseline)
        power = _percent(found["watts"].get("total"), base["watts"].get("total"))
        energy = [programs.joules_of(one) for one in (found, base)]
        over, off = amounts.ratio(*energy)
        return Change(_percent(found["seconds"], base["seconds"]), power,
                      None if over is None else 100 * (over - 1),
                      None if off is None else 100 * off)

    def noise(self, name):
        """Returns by how many percent the slowest run without checkpoints took
        longer than the fastest."""
        seconds = [one["seconds"] for one in self.repetitions(name, multilevel.ORIGINAL)]
        return _percent(max(seconds), min(seconds))

    @property
    def kind(self):
        kinds = {one["kind"] for key, one in self.results.items() if "kind" in one}
        return " and ".join(sorted(kinds - {""})) if kinds != {""} else ""

    def rows(self):
        """A row for each run."""
        rows = []
        for name in self.arguments.application:
            for configuration in _configurations(self.arguments, name):
                for i, one in enumerate(self.repetitions(name, configuration)):
                    levels = [level for _, level in one["checkpoints"]]
                    rows.append({
                        "application": name, "configuration": configuration, "repetition": i + 1,
                        "ranks": self.arguments.ranks,
                        "minute_s": _application(self.arguments, name).minute_s,
                        "runtime_s": round(one["seconds"], 4),
                        **{f"{domain}_w": round(watts, 3)
                           for domain, watts in one["watts"].items()},
                        **amounts.columns("energy_j", programs.joules_of(one)),
                        "energy_of": one["total"],
                        "energy_kind": one["kind"],
                        **{f"checkpoints_of_level_{level}": levels.count(level)
                           for level in (1, 2, 3, 4)}})
        return rows

    def tables(self):
        """(application, kind of table, baseline, configurations that were run)."""
        for name in self.arguments.application:
            there = _configurations(self.arguments, name)
            for kind in multilevel.tables_of(name):
                baseline = multilevel.baseline(name, kind)
                published = multilevel.configurations(name, kind)
                own = [one for one in there if one not in published
                       and ("/e" in one) == (kind == "flips")
                       and kind != "bits" and not any(one in multilevel.configurations(name, other)
                                                      for other in multilevel.tables_of(name))]
                shown = [one for one in there if one in published] + own
                if baseline in shown and len(shown) > 1:
                    yield name, kind, baseline, shown

    def comparison(self):
        """A row for each configuration: what was found here, and in columns of their
        own what is published."""
        rows = []
        for name, kind, baseline, configurations in self.tables():
            for configuration in configurations:
                here = self.change(name, configuration, baseline)
                row = {"application": name, "table": kind, "configuration": configuration,
                       "baseline": baseline, "here_runtime_pct": here.runtime,
                       "here_node_power_pct": here.power, "here_energy_pct": here.energy,
                       "here_energy_off_pct": here.off,
                       "here_energy_bound": None if here.energy is None else amounts.NO_BOUND
                       if here.off is None else "bound"}
                for machine in multilevel.MACHINES:
                    found = multilevel.row_of(name, kind, machine, configuration)
                    for what in ("runtime_pct", "node_power_pct", "energy_pct"):
                        row[f"published_{machine}_{what}"] = getattr(found, what) if found else None
                rows.append(row)
        return rows

    # ---- pictures --------------------------------------------------------------------------------

    def label(self):
        return f"run time measured here; power {self.kind or 'unknown'}; other points as published"

    def files(self):
        """The rows of each CSV file."""
        return {"measurements": self.rows(), "comparison": self.comparison()}

    def figures(self):
        drawn = {f"{name}-{kind}": self._draw_changes(name, kind, shown)
                 for name, kind, _, shown in self.tables()}
        drawn |= {f"{name}-power": self._draw_power(name) for name in self.arguments.application}
        return {name: figure for name, figure in drawn.items() if figure}

    def _draw_changes(self, name, kind, configurations):
        baseline = multilevel.baseline(name, kind)
        configurations = [one for one in configurations if one != baseline]
        height = 1.2 + 0.35 * len(configurations)
        made = look.figure(height, f"{TITLES[kind]}: {name}", self.label())
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(1, 3, sharey=True, gridspec_kw={
                "left": 0.15, "right": 0.985, "top": 1 - 0.62 / height, "bottom": 0.45 / height,
                "wspace": 0.08})
            for axes, what in zip(panes, ("runtime", "power", "energy")):
                for place, configuration in enumerate(configurations):
                    change = self.change(name, configuration, baseline)
                    here = getattr(change, what)
                    if here is not None:
                        axes.barh(place, here, 0.62, color=look.LIGHT, edgecolor=look.GREY,
                                  linewidth=0.6,
                                  xerr=change.off if what != "runtime" else None,
                                  error_kw={"elinewidth": 0.8, "ecolor": "#444444"},
                                  label="here" if place == 0 else None)
                    self._draw_published(axes, (name, kind, configuration), what, place)
                axes.axvline(0, color="#666666", linewidth=0.8)
                axes.set_xlabel(f"{what}, % more than {baseline}")
                axes.grid(axis="x")
            panes[0].set_yticks(range(len(configurations)), configurations)
            panes[0].invert_yaxis()
            made.legend(*panes[0].get_legend_handles_labels(), loc="upper right", ncols=5,
                        fontsize=8,
                        bbox_to_anchor=(0.99, 1 - 0.27 / height))
        return made

    @staticmethod
    def _draw_published(axes, of, what, place):
        name, kind, configuration = of
        column = {"runtime": "runtime_pct", "power": "node_power_pct", "energy": "energy_pct"}[what]
        for (machine, title), colour, marker in zip(multilevel.MACHINES.items(), look.LINES,
                                                    look.MARKERS):
            found = multilevel.row_of(name, kind, machine, configuration)
            value = getattr(found, column) if found else None
            if value is not None:
                axes.plot(value, place, marker, color=colour, markersize=4.5, linestyle="none")
            if place == 0:
                axes.plot([], [], marker, color=colour, markersize=4.5, linestyle="none",
                          label=f"{title}, published")

    def _draw_power(self, name):
        """Power of the node in the fastest run without checkpoints, and in that with the most of
        them; of the latter by component."""
        shown = [one for one in _configurations(self.arguments, name) if "/e" not in one]
        most = max(shown, key=lambda one: len(self.best(name, one)["checkpoints"]))
        pair = [one for one in (multilevel.ORIGINAL, most) if self.best(name, one)["curve"]]
        if not pair:
            return None
        height = 3.4
        made = look.figure(height, f"Power over time: {name}", f"node, {self.kind}")
        with matplotlib.rc_context(look.STYLE):
            axes = made.subplots(gridspec_kw={"left": 0.075, "right": 0.86, "top": 1 - 0.5 / height,
                                              "bottom": 0.5 / height})
            for configuration, colour in zip(pair, (look.GREY, look.BLUE)):
                seconds, watts = zip(*self.best(name, configuration)["curve"])
                axes.plot(seconds, watts, color=colour, linewidth=1.1, label=configuration)
            for (domain, curve), style in zip(self.best(name, most).get("parts", {}).items(),
                                              itertools.cycle(PART_STYLES)):
                if curve:
                    axes.plot(*zip(*curve), color=look.BLUE, linewidth=0.7, linestyle=style,
                              label=domain)
            seen = set()
            for at_s, level in self.best(name, most)["checkpoints"]:
                axes.axvline(at_s, color=look.LEVELS.get(level, look.BLACK), linewidth=1.0,
                             alpha=0.8,
                             linestyle=(0, (2, 2)),
                             label=None if level in seen else look.level_name(level))
                seen.add(level)
            axes.set_xlabel("s since the start")
            axes.set_ylabel("W")
            axes.set_ylim(bottom=0)
            axes.grid()
            axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.0), borderaxespad=0)
        return made

    # ---- page ------------------------------------------------------------------------------------

    def page(self, figures):
        parts = [page.heading_of_page("Multilevel checkpoints"),
                 f"<p>{page.kind_mark(self.kind)}</p>\n", page.notes(self._notes())]
        for name, kind, baseline, shown in self.tables():
            parts += [page.heading(f"{TITLES[kind]}: {name}"),
                      page.picture(look.saved(figures[f"{name}-{kind}"], "svg"),
                                   f"{TITLES[kind]} of {name}",
                                   f"In percent of {baseline}. Bars: here. Thin lines: what "
                                   "samples may have missed. Marks: published."),
                      self._change_table(name, kind, baseline, shown)]
        for name in self.arguments.application:
            parts.append(page.heading(f"Here: {name}"))
            if f"{name}-power" in figures:
                parts.append(page.picture(look.saved(figures[f"{name}-power"], "svg"),
                                          f"Power of {name} over time",
                                          "Dashed: when a checkpoint held, by level."))
            parts.append(self._run_table(name))
        return page.document("Multilevel checkpoints", parts)

    def _notes(self):
        here, one = runs.machine(), self.arguments
        texts = [f"Here: {here['processor']}, {here['cores']} cores, {here['memory_gb']} GB, "
                 f"{here['kernel']}; {one.ranks} ranks"
                 + (f", {one.ranks_per_node} to an emulated node" if one.ranks_per_node else "")
                 + f", {one.size:g} MB of a rank of heat and {STREAM_OVER_HEAT * one.size:g} MB of "
                   "one of STREAM. Published: 64 ranks a node and 32 and 96 MB on the Cray XC40, "
                   "for minutes."]
        for name in one.application:
            texts.append(f"{name}: a minute of ckp() is {_application(one, name).minute_s:.3g} s. "
                         f"Runs without checkpoints differed by {self.noise(name):.1f} % among "
                         f"{one.repetitions}: less than that is noise.")
        texts.append({
            "measured": "Power was measured on the node that the study was started on.",
            "": "No meter tells the power of this node: power and energy are unknown."}.get(
            self.kind,
            "Power is modelled, from a profile and how busy the processors were; the published one "
            "was measured. That of the node on which the study was started."))
        texts.append("Energy: what the node used in all of the run, all of it charged to the run. "
                     "It may be off as samples are apart and by the source itself; a change has "
                     "only the first, as the source is off by the same share of both runs.")
        texts.append("Run times here include the start of the ranks. Checkpoints are synchronous, "
                     "as published. Two published rows of ckp(4,5,6,7) (BG/Q and Haswell, heat) do "
                     "not agree with their own run time and power.")
        return texts

    def _change_table(self, name, kind, baseline, shown):
        heads = ["<configuration", "here: time", "power", "energy"]
        heads += [f"{title}: {what}" for title in multilevel.MACHINES.values()
                  for what in ("time", "energy")]
        rows = []
        for configuration in shown:
            here = self.change(name, configuration, baseline)
            cells = [configuration, _cell(here.runtime),
                     *(_cell(value) if configuration == baseline or value is None
                       else page.Number(amounts.percent_text(value, here.off), value)
                       for value in (here.power, here.energy))]
            for machine in multilevel.MACHINES:
                found = multilevel.row_of(name, kind, machine, configuration)
                cells += [_cell(found and found.runtime_pct), _cell(found and found.energy_pct)]
            rows.append(cells)
        return page.table(f"{name}-{kind}", heads, rows)

    def _run_table(self, name):
        domains = list(dict.fromkeys(domain for one in _configurations(self.arguments, name)
                                     for domain in self.best(name, one)["watts"]))
        rows = []
        for configuration in _configurations(self.arguments, name):
            best = self.best(name, configuration)
            levels = [level for _, level in best["checkpoints"]]
            rows.append([configuration, _cell(best["seconds"], "{:.2f}"),
                         *amounts.cells(programs.joules_of(best)),
                         *(_watts_cell(best, domain) for domain in domains),
                         "-" if not levels else " ".join(f"{levels.count(level)}xL{level}"
                                                         for level in sorted(set(levels)))])
        return page.table(f"{name}-runs",
                          ["<configuration", "s", *amounts.heads("J"),
                           *(f"{domain} W" for domain in domains),
                           "<checkpoints"], rows)


TITLES = {"runs": "Checkpoints", "flips": "With a bit flip", "bits": "Flips of other bits"}


def _watts_cell(found, domain):
    """Mean power, of which the digits follow from how far it may be off."""
    joules = programs.joules_of(found, domain)
    if joules is None:
        return page.Number("-")
    watts = found["watts"][domain]
    off = joules.uncertainty_j
    text = (f"≈ {look.rounded(watts, '')}" if off is None
            else look.digits(watts, off / found["seconds"], "")[0])
    return page.Number(text.strip(), watts)


def _cell(value, text="{:+.2f}"):
    return page.Number("-") if value is None else page.Number(text.format(value), float(value))
