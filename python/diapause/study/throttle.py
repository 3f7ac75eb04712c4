"""`diapause study throttle`: clocks while a checkpoint is written, to local and remote storage, as
published of one cluster."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import tempfile

import matplotlib
import numpy as np

from diapause import amounts, look, page
from diapause.study import options, programs, published, runs

# The media that are written to are local, over IP, and over RDMA. The published values are in
# percent of the energy of a checkpoint, with what the paper says about time.
MEDIA = {"local": "local disk", "ip": "remote, over IP", "rdma": "remote, over RDMA"}
PUBLISHED_SAVED = {"local": ("up to 25", "little effect on time"), "ip": ("50", ""),
                   "rdma": ("15", "nearly twice the time")}
# Six gears from 3.8 to 1.4 GHz; those between are not told, here they are evenly spaced.
LOWEST_GEAR = 1.4 / 3.8
GEARS = tuple(round(float(gear), 3) for gear in np.linspace(1, LOWEST_GEAR, 6))
# Figure 1 of the paper: commit time, mean time between failures of a node, sizes.
FIGURE_1 = ("--levels", "4", "--level", "4:blocked=15min,restart=15min", "--sync", "--node-mtbf",
            "15y")
SIZES = tuple(2**i for i in range(7, 18))
PARTS = {"work": look.GREEN, "checkpoints": look.BLUE, "rework": look.VERMILION,
         "restarts": look.PURPLE}


def add_options(parser):
    options.add_common(parser, ranks=1, repetitions=3)
    parser.add_argument("--size", type=options.positive, default=1500.0)
    parser.add_argument("--medium", type=_medium, action="append")
    parser.add_argument("--clocks", type=options.clocks, default=GEARS)
    parser.add_argument("--actuator", choices=("none", "cpufreq", "emulated"), default="none")
    parser.add_argument("--machine", choices=sorted(published.CHIPS), default="m510-broadwell")
    parser.add_argument("--seconds", type=options.positive, default=2.0)


def _medium(text):
    name, equals, path = text.partition("=")
    if name not in MEDIA or not equals or not path:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not {' or '.join(MEDIA)}, and =DIRECTORY behind it")
    return name, path


# ---- runs ----------------------------------------------------------------------------------------


def _media(arguments):
    return dict(arguments.medium or [("local", str(arguments.output.resolve()))])


def _gears(arguments):
    """The full clock is among them: everything is compared with it."""
    return (tuple(sorted({1.0, *arguments.clocks}, reverse=True)) if arguments.actuator != "none"
            else (1.0,))


def _write(arguments, path, directory):
    """[a dictionary for each gear]: seconds of a durable write, and joules."""
    count = int(arguments.size * 1e6 / 8)
    field = directory / "field.raw"
    np.random.default_rng(1).standard_normal(count).tofile(field)
    with tempfile.TemporaryDirectory(prefix="diapause-study-", dir=path) as where:
        _, printed = programs.output_of(
            [str(arguments.command.resolve()), "study", "encode", str(field), "--type", "float64",
             "--dims", str(count), "--codecs", "raw", "--bounds", "0", "--clocks",
             ",".join(map(str, _gears(arguments))), "--actuator", arguments.actuator,
             "--directory", where, "--seconds", str(arguments.seconds)], directory)
    lines = [json.loads(line) for line in printed.splitlines()]
    return {
        "gears": [{key: line[key] for key in ("asked", "obtained", "seconds", "passes", "raw_bytes",
                                              "joules", "joules_of", "energy_of", "energy_kind",
                                              "uncertainty", "uncertainty_of")}
                  for line in lines if line["step"] == "write"]}


def _shares(arguments):
    """Computes the shares of figure 1, by the planner."""
    sizes = ",".join(map(str, SIZES))
    done = subprocess.run([arguments.command.resolve(), "plan", *FIGURE_1, "--sizes", sizes,
                           "--json"], capture_output=True, text=True, env=programs.environment())
    if done.returncode != 0:
        raise programs.RunError(f"diapause plan: {done.stderr.strip()}")
    return {"sizes": [{"nodes": one["nodes"], "work_s": one["plan"]["intervals"][0]["work_s"],
                       **{part: one["plan"]["parts"][part]["of_time"] for part in PARTS}}
                      for one in json.loads(done.stdout)["sizes"]]}


def plan_of(arguments):
    made = []
    for repetition in range(arguments.repetitions):
        for name, path in _media(arguments).items():
            def do(directory, path=path):
                return _write(arguments, path, directory)

            # Every gear compresses, writes and decompresses, and writes once to warm up.
            made.append(runs.Run(f"{name}-{repetition + 1}",
                                 f"{MEDIA[name]} ({path}), {repetition + 1}",
                                 4 * arguments.seconds * len(_gears(arguments)), do))
    made.append(runs.Run("figure-1", "figure 1, by the planner", 1.0,
                         lambda directory: _shares(arguments)))
    return runs.Plan(arguments.output, options.settings(arguments), made)


def run(arguments):
    for name, path in _media(arguments).items():
        if arguments.medium and not pathlib.Path(path).is_dir():
            raise programs.Trouble(f"--medium {name}={path}: is no directory")
    runs.carry_out(arguments, plan_of(arguments), Study)


# ---- results -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Gear:
    """Means over the repetitions of one clock, over the same at the full clock."""

    clock: float
    time: float
    cpu: float | None  # joules of the processor; None: not measured at a real clock
    node: float | None
    cpu_off: float | None = None  # either way; None: nobody knows what samples have missed
    node_off: float | None = None


class Study:
    def __init__(self, arguments, results):
        self.arguments = arguments
        self.results = results

    def _lines(self, medium):
        """{clock asked: [its lines]}."""
        found = {}
        for i in range(self.arguments.repetitions):
            for line in self.results[f"{medium}-{i + 1}"]["gears"]:
                found.setdefault(line["asked"], []).append(line)
        return found

    @property
    def is_real(self):
        """Returns whether joules say something about slower clocks: they come from a counter, at
        clocks that were set."""
        kinds = {line["energy_kind"] for medium in _media(self.arguments)
                 for of in self._lines(medium).values() for line in of}
        return self.arguments.actuator == "cpufreq" and kinds == {"measured"}

    def gears(self, medium):
        lines = self._lines(medium)

        def seconds(asked):
            return statistics.fmean(line["seconds"] for line in lines[asked])

        def over_full(asked, value):
            if not self.is_real:
                return None, None
            return amounts.ratio(*(amounts.mean(value(line) for line in lines[clock])
                                   for clock in (asked, 1.0)))

        gears = []
        for asked in sorted(lines, reverse=True):
            (cpu, cpu_off), (node, node_off) = (over_full(asked, of) for of in (_cpu, _node))
            gears.append(Gear(statistics.fmean(line["obtained"] for line in lines[asked]),
                              seconds(asked) / seconds(1.0), cpu, node, cpu_off, node_off))
        return gears

    def modelled(self, gear):
        """(processor, node) energy over that at the full clock: the time of here, with the
        published power over the clock; the rest of the node draws as much as the processor at its
        full clock. None where nothing is published."""
        curve, top = published.curve_of(self.arguments.machine, "write")
        if gear.clock * top < published.clocks_ghz()[curve.data][0] - 1e-9:
            return None, None
        power = curve.power(gear.clock * top) / curve.power(top)
        return gear.time * power, gear.time * (power + 1) / 2

    def rows(self):
        rows = []
        for medium, path in _media(self.arguments).items():
            for i in range(self.arguments.repetitions):
                for line in self.results[f"{medium}-{i + 1}"]["gears"]:
                    rows.append({"medium": medium, "path": path, "repetition": i + 1,
                                 "clock_asked": line["asked"], "clock_obtained": line["obtained"],
                                 "clock_by": self.arguments.actuator, "seconds": line["seconds"],
                                 "passes": line["passes"], "bytes": line["raw_bytes"],
                                 "mb_s": line["raw_bytes"] / line["seconds"] / 1e6,
                                 **amounts.columns("joules", _node(line)),
                                 **{column: value for domain in line["joules_of"]
                                    for column, value in amounts.columns(
                                        f"{domain}_j", _of_domain(line, domain)).items()},
                                 "energy_of": line["energy_of"],
                                 "energy_kind": line["energy_kind"]})
        return rows

    def comparison(self):
        """A row for each medium and gear; media that were not written to have
        published columns only."""
        rows = []
        for medium in MEDIA:
            saved, time = PUBLISHED_SAVED[medium]
            beside = {"published_energy_saved_at_best_pct": saved, "published_time": time}
            if medium not in _media(self.arguments):
                rows.append({"medium": medium, "here": "not measured", **beside})
                continue
            for gear in self.gears(medium):
                cpu, node = self.modelled(gear)
                rows.append({"medium": medium, "here": self.how, "here_clock": gear.clock,
                             "here_time_over_full": gear.time,
                             "here_cpu_energy_over_full": gear.cpu,
                             "here_cpu_energy_over_full_off": gear.cpu_off,
                             "here_node_energy_over_full": gear.node,
                             "here_node_energy_over_full_off": gear.node_off,
                             "modelled_cpu_energy_over_full": cpu,
                             "modelled_node_energy_over_full": node,
                             "modelled_energy_bound": amounts.NO_BOUND, **beside})
        return rows

    @property
    def how(self):
        if self.arguments.actuator == "none":
            return "full clock only"
        return "clocks emulated" if self.arguments.actuator == "emulated" else "clocks set"

    def conclusion(self, medium):
        """In one sentence, of the processor and of the node."""
        if medium not in _media(self.arguments):
            return (f"{MEDIA[medium]}: not measured; --medium {medium}=DIRECTORY names a directory "
                    "of that kind.")
        gears = self.gears(medium)
        if len(gears) == 1:
            return (f"{MEDIA[medium]}: written at the full clock only, so nothing can be said of "
                    "slower ones; --actuator cpufreq sets clocks, emulated makes believe.")
        if self.is_real:
            cpu, node = (min(gears, key=lambda gear, what=what: getattr(gear, what) or 9.0)
                         for what in ("cpu", "node"))
            return (f"{MEDIA[medium]}: the processor uses least at {cpu.clock:.2f} of the clock "
                    f"({_saved(cpu.cpu, cpu.cpu_off)}), the node at {node.clock:.2f} "
                    f"({_saved(node.node, node.node_off)}); the "
                    f"write then takes {node.time:.2f} times as long.")
        slowest = gears[-1]
        known = [gear for gear in gears if self.modelled(gear)[0] is not None]
        cpu, node = (min(known, key=lambda gear, i=i: self.modelled(gear)[i]) for i in (0, 1))
        return (f"{MEDIA[medium]}: at {slowest.clock:.2f} of the clock ({self.how}) the write "
                f"takes {slowest.time:.2f} times as long, so that it saves energy only where power "
                f"falls by more than {max(0.0, 100 * (1 - 1 / slowest.time)):.0f} %. What energy "
                f"that is was not measured; by the published power of {self.arguments.machine} the "
                f"processor would use least at {cpu.clock:.2f} ({_saved(self.modelled(cpu)[0])}), "
                f"a node that draws twice as much at {node.clock:.2f} "
                f"({_saved(self.modelled(node)[1])}), by a model without a bound.")

    # ---- pictures and page -----------------------------------------------------------------------

    def files(self):
        """The rows of each CSV file."""
        return {"measurements": self.rows(), "comparison": self.comparison(),
                "figure-1": self.results["figure-1"]["sizes"]}

    def figures(self):
        return {"gears": self._draw_gears(), "figure-1": self._draw_shares()}

    def _draw_gears(self):
        height = 3.9
        made = look.figure(height, "Writing a checkpoint at lower clocks",
                           f"time: {self.how}; energy: "
                           + ("measured" if self.is_real
                              else f"modelled with published power ({self.arguments.machine}), "
                                   "no bound"))
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(1, 3, gridspec_kw={"left": 0.065, "right": 0.985,
                                                     "top": 1 - 0.65 / height,
                                                     "bottom": 0.5 / height, "wspace": 0.2})
            for medium, colour, marker in zip(_media(self.arguments), look.LINES, look.MARKERS):
                gears = self.gears(medium)
                clocks = [gear.clock for gear in gears]
                energies = list(zip(*([(gear.cpu, gear.node) if self.is_real
                                       else self.modelled(gear) for gear in gears])))
                offs = (None, [gear.cpu_off or 0.0 for gear in gears],
                        [gear.node_off or 0.0 for gear in gears])
                for axes, values, off in zip(panes, ([gear.time for gear in gears], *energies),
                                             offs):
                    values = [np.nan if value is None else value for value in values]
                    axes.errorbar(clocks, values, off if self.is_real else None, fmt=marker + "-",
                                  color=colour, label=MEDIA[medium], markersize=4.5, linewidth=1.2,
                                  elinewidth=0.8)
            for axes, what in zip(panes, ("time", "energy of the processor", "energy of the node")):
                axes.axhline(1, color="#BBBBBB", linewidth=0.8)
                axes.set_xlabel("clock over full clock")
                axes.set_title(what, loc="left")
                axes.grid()
            panes[0].set_ylabel("over that at the full clock")
            panes[0].legend()
        return made

    def _draw_shares(self):
        """Draws figure 1 of the paper: where the time goes on so many nodes."""
        sizes = self.results["figure-1"]["sizes"]
        height = 3.8
        made = look.figure(height, "Where the time goes against the size of the system",
                           "by the planner, exact intervals")
        with matplotlib.rc_context(look.STYLE):
            axes = made.subplots(gridspec_kw={"left": 0.075, "right": 0.86, "top": 1 - 0.5 / height,
                                              "bottom": 0.5 / height})
            shares = [[100 * one[part] for one in sizes] for part in PARTS]
            axes.stackplot([one["nodes"] for one in sizes], shares, colors=PARTS.values(),
                           labels=PARTS, alpha=0.85)
            axes.set_xscale("log", base=2)
            axes.set_xlim(SIZES[0], SIZES[-1])
            axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES], fontsize=7.5)
            axes.set_ylim(0, 100)
            axes.set_xlabel("nodes, each failing every 15 years; a checkpoint takes 15 minutes")
            axes.set_ylabel("% of wall-clock time")
            axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.0), borderaxespad=0)
        return made

    def page(self, figures):
        kind = "measured" if self.is_real else "modelled"
        mark = kind + (", clocks emulated" if self.arguments.actuator == "emulated" else "")
        return page.document("Clocks while checkpoints are written", [
            page.heading_of_page("Clocks while checkpoints are written"),
            f"<p>{page.kind_mark(mark)}</p>\n", page.notes(self._notes()), page.heading("Media"),
            *(page.paragraph(self.conclusion(medium)) for medium in MEDIA),
            page.picture(look.saved(figures["gears"], "svg"),
                         "Time and energy of writing over the clock"),
            self._gear_table(),
            page.heading("Beside the published study"), self._published_table(),
            page.paragraph("The 10 % of the paper's title is a product, 50 % of the 20 % of the "
                           "time that checkpoints may take, and was not measured; 50 % is IP over "
                           "InfiniBand alone.",
                           quiet=True),
            page.heading("Figure 1"),
            page.picture(
                look.saved(figures["figure-1"], "svg"), "Shares of wall-clock time by system size",
                "The data of the published figure is not in its text. Its intervals are Daly's, "
                "those here are exact; its restart time is not told, here it is 15 minutes too."),
            self._share_table()])

    def _notes(self):
        here, one = runs.machine(), self.arguments
        texts = [f"Here: {here['processor']}, {here['kernel']}; one process writes {one.size:g} MB "
                 "and syncs them. Published: 16 processes on 4 nodes, 1.5 GB of each, clocks of "
                 "1.4 to 3.8 GHz in six gears, power of whole nodes."]
        if one.actuator == "emulated":
            texts.append("Clocks are emulated: the thread gets a share of the time. Times are "
                         "real; the power of a slower clock is not, so no energy of here stands "
                         "beside the published one.")
        texts.append("Energy over that at the full clock may be off by what samples have missed; "
                     "the meter is off by the same share of both. All that the node used meanwhile "
                     "is charged to the write.")
        if one.actuator == "none":
            texts.append("Clocks were not changed.")
        if one.actuator == "cpufreq" and not self.is_real:
            texts.append("No counter measured power, so energy is that of the model.")
        return texts

    def _gear_table(self):
        rows = []
        for medium in _media(self.arguments):
            lines = self._lines(medium)
            for asked, gear in zip(sorted(lines, reverse=True), self.gears(medium)):
                seconds = [line["seconds"] for line in lines[asked]]
                cpu, node = self.modelled(gear)
                rows.append([MEDIA[medium], _cell(gear.clock, "{:.3f}"),
                             _cell(statistics.fmean(seconds), "{:.3f}"),
                             _cell(lines[asked][0]["raw_bytes"] / statistics.fmean(seconds) / 1e6,
                                   "{:.0f}"), _cell(gear.time),
                             *amounts.cells(amounts.mean(map(_node, lines[asked]))),
                             amounts.ratio_cell(gear.cpu, gear.cpu_off),
                             amounts.ratio_cell(gear.node, gear.node_off), _cell(cpu), _cell(node)])
        return page.table("gears",
                          ["<medium", "clock", "s", "MB/s", "time", *amounts.heads("J of a write"),
                           "processor J over full clock, measured",
                           "node J over full clock, measured",
                           "processor J over full clock, modelled, no bound",
                           "node J over full clock, modelled, no bound"], rows)

    def _published_table(self):
        rows = []
        for medium, title in MEDIA.items():
            saved, time = PUBLISHED_SAVED[medium]
            gears = self.gears(medium) if medium in _media(self.arguments) else []
            best = [gear for gear in gears if gear.node is not None]
            least = min(best, key=lambda gear: gear.node) if best else None
            rows.append([title, f"{saved} %", time or "-",
                         page.Number("not measured") if not best else amounts.saved_cell(
                             100 * (1 - least.node),
                             None if least.node_off is None else 100 * least.node_off),
                         page.Number("not measured") if len(gears) < 2
                         else _cell(gears[-1].time, "{:.2f} times")])
        return page.table("published-gears",
                          ["<medium", "published: energy saved", "<published: time",
                           "here: energy saved, node, %", "here: time at the lowest clock"], rows)

    def _share_table(self):
        rows = [[str(one["nodes"]), _cell(one["work_s"] / 60, "{:.1f}"),
                 *(_cell(100 * one[part], "{:.2f}") for part in PARTS)]
                for one in self.results["figure-1"]["sizes"]]
        return page.table("figure-1", ["nodes", "interval, min", *(f"{part} %" for part in PARTS)],
                          rows)


def _of_domain(line, domain):
    return amounts.sum_of(line["joules_of"].get(domain),
                          line.get("uncertainty_of", {}).get(domain))


def _cpu(line):
    return _of_domain(line, "package")


def _node(line):
    return amounts.sum_of(line["joules"], line.get("uncertainty"))


def _saved(ratio, off=None):
    """`off` is how far a measured ratio may be off; a saving within that is none."""
    if ratio is None or not ratio < 0.995:
        return "nothing saved"
    if off is None:
        return f"{100 * (1 - ratio):.0f} % saved"
    if off >= 1 - ratio:
        return "no saving told apart"
    return f"{amounts.saved_cell(100 * (1 - ratio), 100 * off).text} % saved"


def _cell(value, text="{:.3f}"):
    return page.Number("-") if value is None else page.Number(text.format(value), float(value))
