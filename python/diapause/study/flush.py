"""`diapause study flush`: clocks lowered while checkpoints are flushed behind the program, by
model, by emulation, or measured."""

from __future__ import annotations

import argparse
import json
import os
import subprocess

import matplotlib

from diapause import look, page
from diapause.study import background, options, programs, published, runs, writes

# Cores of a node: table 1 of the study of multilevel checkpoints, tables 2.2 and 3.4 of the thesis,
# section 2.2 of the study of throttled checkpoints. `generic` is the machine that this runs on.
CORES = {"theta-xc40": 64, "mira-bgq": 16, "shepard-haswell": 32, "cooper-kaveri": 4,
         "m510-broadwell": 8, "c220g5-skylake": 20, "xeon6148-cluster": 40, "llano-cluster": 4,
         "generic": 0}


def add_options(parser):
    options.add_common(parser, ranks=2, repetitions=3)
    parser.add_argument("--size", type=options.positive, default=64.0)
    parser.add_argument("--actuator", choices=("none", "cpufreq", "emulated"), default="none")
    parser.add_argument("--clocks", type=options.clocks, default=(1.0, 0.85, 0.7, 0.5))
    parser.add_argument("--flush-s", type=options.positive, default=10.0)
    parser.add_argument("--interval-s", type=options.positive, default=60.0)
    parser.add_argument("--phi", type=_share, default=published.phi("write"))
    parser.add_argument("--psi", type=_share, default=1.0)


def _share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share from 0 to 1")
    return value


def _profile(arguments, name):
    """Parameters by key."""
    done = subprocess.run([arguments.command, "power", "--once", "--json", "--interval", "0.05",
                           "--meters", "model", "--profile", name],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise programs.Trouble(f"profile {name}: {done.stderr.strip().removeprefix('diapause: ')}")
    return {one["key"]: one["value"] for one in json.loads(done.stdout)["model"]["parameters"]}


def _as_writes(arguments):
    """Returns the arguments that the study of writes takes, which has the runs."""
    return argparse.Namespace(**{**vars(arguments), "ranks": (arguments.ranks,), "disk": None,
                                 "machine": "m510-broadwell"})


def _clock_cases(arguments):
    return [case for case in writes.cases(_as_writes(arguments)) if case.clock is not None]


def plan_of(arguments):
    made = []
    for name in CORES:
        made.append(runs.Run(f"profile-{name}", f"profile {name}", 0.5,
                             lambda _, name=name: _profile(arguments, name)))
    for repetition in range(arguments.repetitions):
        for case in _clock_cases(arguments):
            def do(directory, case=case):
                return writes.measure(_as_writes(arguments), case, directory)

            made.append(runs.Run(f"{case.key}-{repetition + 1}", f"{case.title}, {repetition + 1}",
                                 writes.expected_s(case), do))
    return runs.Plan(arguments.output, options.settings(arguments), made)


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments), Study)


class Study:
    def __init__(self, arguments, results):
        self.arguments = arguments
        self.flush = background.Flush(arguments.flush_s, arguments.phi, arguments.interval_s,
                                      arguments.psi)
        self.nodes = [background.node_of(name, results[f"profile-{name}"],
                                         cores or os.cpu_count() or 1,
                                         name in published.CHIPS) for name, cores in CORES.items()]
        self.runs = writes.Study(_as_writes(arguments), {key: one for key, one in results.items()
                                                         if not key.startswith("profile-")})

    def model_rows(self):
        return [row for node in self.nodes for row in background.rows_of(node, self.flush)]

    def files(self):
        """The rows of each CSV file."""
        return {"model": self.model_rows(), "clocks": self.runs.clock_rows()}

    def figures(self):
        return {"clocks": self._draw()}

    def _draw(self):
        height = 4.2
        made = look.figure(
            height, "Clocks during background flushes",
            f"modelled, no bound; flushes of {self.flush.seconds:g} s, "
            f"{self.flush.interval_s:g} s apart")
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(1, 3, gridspec_kw={"left": 0.065, "right": 0.985,
                                                     "top": 1 - 1.0 / height,
                                                     "bottom": 0.5 / height, "wspace": 0.26})
            shown = (("energy of a flush over that at the base clock",
                      lambda row, full: row["flush_j"] / full["flush_j"]),
                     ("% of the node's energy, own core",
                      lambda row, _: row["own_core_energy_pct"]),
                     ("% of the node's energy, shared cores",
                      lambda row, _: row["shared_cores_energy_pct"]))
            for i, node in enumerate(self.nodes):
                rows = background.rows_of(node, self.flush)
                for axes, (_, value) in zip(panes, shown):
                    axes.plot([row["ratio"] for row in rows], [value(row, rows[0]) for row in rows],
                              linewidth=1.3, color=look.LINES[i % len(look.LINES)],
                              linestyle="-" if node.is_published else "--", label=node.name)
            for axes, (title, _) in zip(panes, shown):
                axes.set_title(title, loc="left", fontsize=8.5)
                axes.set_xlabel("clock over base clock")
                axes.grid()
            made.legend(*panes[0].get_legend_handles_labels(), loc="upper right", ncols=5,
                        fontsize=7.5,
                        bbox_to_anchor=(0.99, 1 - 0.24 / height))
        return made

    def page(self, figures):
        title = "Clocks during background flushes"
        parts = [page.heading_of_page(title), f"<p>{page.kind_mark('modelled')}</p>\n",
                 page.notes(self._notes()), page.heading("By model"),
                 *(page.paragraph(background.answer(node, self.flush)) for node in self.nodes),
                 page.picture(look.saved(figures["clocks"], "svg"),
                              "Energy over the clock, for each machine"), self._model_table(),
                 page.heading("Here"), page.paragraph(self.runs.answer())]
        if self.runs.clock_rows():
            parts.append(self.runs.clock_table())
        return page.document(title, parts)

    def _notes(self):
        flush = self.flush
        least = flush.least_ratio
        source = (" (the published slowdown of writing)" if flush.phi == published.phi("write")
                  else "")
        texts = [f"A flush takes {flush.seconds:g} s at the base clock, and the next checkpoint "
                 f"begins {flush.interval_s:g} s after its beginning; a share of {flush.phi:.3f} "
                 f"of the flush scales with the clock{source}, and on shared cores a share of "
                 f"{flush.psi:g} of the program.",
                 "Marginal power is what a core that flushes draws beyond an idle package. Powers "
                 "are those of the profiles, of which many are assumed; machines whose power over "
                 "the clock is not published (dashed) are taken to have a cube. So nothing of the "
                 "model has a bound, and only clocks of one machine can be compared."]
        texts.append("A flush at the base clock is not over in time: none may be slowed."
                     if least is None
                     else f"Below {least:.2f} of the clock a flush would not be over before the "
                          "next checkpoint.")
        if self.arguments.actuator == "emulated":
            texts.append(
                "Clocks are emulated below: times are real, and no energy of here is told.")
        return texts

    def _model_table(self):
        rows = []
        for node in self.nodes:
            for row in background.rows_of(node, self.flush, ratios=(1.0, 0.9, 0.8, 0.7, 0.6, 0.5)):
                rows.append([row["machine"], _cell(row["ratio"], "{:g}"), "yes" if row["in_time"]
                             else "no", _cell(row["flush_s"]), _about(row["marginal_w"]),
                             _about(row["flush_j"]), _cell(row["own_core_energy_pct"], "{:+.3f}"),
                             _cell(row["shared_cores_program_pct"]),
                             _cell(row["shared_cores_energy_pct"], "{:+.3f}")])
        return page.table("background",
                          ["<machine", "clock", "<in time", "flush s", "marginal W, no bound",
                           "flush J, no bound",
                           "own core: node's energy %", "shared cores: program %",
                           "shared cores: node's energy %"], rows)


def _about(value):
    """Of a model without a bound."""
    return page.Number(f"≈ {look.rounded(value, '').strip()}", float(value))


def _cell(value, text="{:.2f}"):
    return page.Number(text.format(value), float(value))
