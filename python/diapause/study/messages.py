"""`diapause study messages`: what checkpoints do to messages, by the published Equation 1 and by a
mean that knows its sign.

Equation 1 is a mean of absolute differences: it is above 0 for two runs of the same program, too.
So each repetition is three runs, two without checkpoints and one with them: what Equation 1 says of
the first two is its bias.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import statistics

import matplotlib

from diapause import look, page
from diapause.study import multilevel, options, programs, runs

OPERATIONS = ("Sendrecv", "Reduce", "Allreduce", "Gather")
ARMS = {"first": "without checkpoints", "second": "without checkpoints, again",
        "checkpoints": "ckp(3,5,7,11)"}
SCHEDULE = "ckp(3,5,7,11)"
MINUTES_OF_A_RUN = 22  # the default, with which each level has its turn
START_S = 2.0
# Two-sided 95 % of Student's t, for so many degrees of freedom; beyond the last it is the one of
# the normal distribution.
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
           2.160, 2.145)
NORMAL = 1.96


def add_options(parser):
    options.add_common(parser, ranks=(4,), repetitions=5)
    parser.add_argument("--largest", type=options.whole_number, default=4 << 20)
    parser.add_argument("--seconds", type=options.positive, default=0.5)
    parser.add_argument("--minute-s", type=options.positive)


# ---- runs ----------------------------------------------------------------------------------------


def sizes(largest):
    return [1 << i for i in range(largest.bit_length())]


def _seconds_of_run(arguments):
    return len(OPERATIONS) * len(sizes(arguments.largest)) * arguments.seconds


def minute_s(arguments):
    return arguments.minute_s or _seconds_of_run(arguments) / MINUTES_OF_A_RUN


def _measure(arguments, ranks, arm, directory, parent):
    launcher = options.launcher(arguments, ranks)
    words = ("--largest", arguments.largest, "--seconds", arguments.seconds)
    if arm != "checkpoints":
        _, printed = programs.output_of(launcher.words("messages_plain", *words), directory)
        return {"times": times_of(printed), "checkpoints": []}
    with programs.places(parent) as where:
        config = launcher.configuration(
            directory,
            f'schedule = "{SCHEDULE}"\nminute_s = {minute_s(arguments)}\n[async]\nmode = "off"\n',
            where)
        _, printed = programs.output_of(launcher.words("messages", *words, "--config", config,
                                                       "--name", programs.NAME),
                                        directory)
        return {"times": times_of(printed),
                "checkpoints": programs.checkpoints_of(programs.ledger_of(where), 0.0)}


def times_of(printed):
    """{operation: {bytes: microseconds}} of what the program printed."""
    times = {}
    for row in csv.DictReader(io.StringIO(printed)):
        times.setdefault(row["operation"], {})[int(row["bytes"])] = float(row["time_us"])
    return times


def plan_of(arguments):
    parent = options.directory(arguments)
    made = []
    for ranks in arguments.ranks:
        for repetition in range(arguments.repetitions):
            for arm, title in ARMS.items():
                def do(directory, ranks=ranks, arm=arm):
                    return _measure(arguments, ranks, arm, directory, parent)

                made.append(runs.Run(_key(ranks, arm, repetition),
                                     f"{ranks} ranks, {title}, {repetition + 1}",
                                     _seconds_of_run(arguments) + START_S, do))
    return runs.Plan(arguments.output, options.settings(arguments), made)


def _key(ranks, arm, repetition):
    return f"{ranks}-{arm}-{repetition + 1}"


def run(arguments):
    runs.carry_out(arguments, plan_of(arguments), Study)


# ---- results -------------------------------------------------------------------------------------


def equation_1(changes):
    """The published one: the mean of the absolute relative differences, in percent."""
    return statistics.fmean(map(abs, changes)) * 100


@dataclasses.dataclass(frozen=True)
class Mean:
    """Over repetitions, with half of its 95 % confidence interval; None:
    there was one repetition."""

    value: float
    error: float | None

    @staticmethod
    def of(values):
        values = list(values)
        if len(values) < 2:
            return Mean(values[0], None)
        freedom = len(values) - 1
        factor = STUDENT[freedom - 1] if freedom <= len(STUDENT) else NORMAL
        return Mean(statistics.fmean(values),
                    factor * statistics.stdev(values) / len(values) ** 0.5)

    def text(self):
        return f"{self.value:+.2f} ± " + ("?" if self.error is None else f"{self.error:.2f}")

    @property
    def tells(self):
        """Returns whether it is more than its noise."""
        return self.error is not None and abs(self.value) > self.error


def _size_text(size):
    """1024 -> "1 Ki"."""
    power, prefix = next((power, prefix)
                         for power, prefix in ((20, " Mi"), (10, " Ki"), (0, "")) if size >> power)
    return f"{size >> power}{prefix}"


class Study:
    def __init__(self, arguments, results):
        self.arguments = arguments
        self.results = results
        self.sizes = sizes(arguments.largest)

    def times(self, ranks, arm, repetition, operation):
        """Microseconds, by size."""
        found = self.results[_key(ranks, arm, repetition)]["times"][operation]
        return [found[str(size)] if str(size) in found else found[size] for size in self.sizes]

    def changes(self, ranks, arm, repetition, operation):
        """Returns the change of every size over the first run of the repetition, as a ratio: of the
        bandwidth of Sendrecv and of the time of the others, as published."""
        before = self.times(ranks, "first", repetition, operation)
        after = self.times(ranks, arm, repetition, operation)
        if operation == "Sendrecv":
            return [old / new - 1 for old, new in zip(before, after)]
        return [new / old - 1 for old, new in zip(before, after)]

    def costs(self, ranks, arm, repetition, operation):
        """Returns the same with more cost above 0: less bandwidth, more time."""
        sign = -1 if operation == "Sendrecv" else 1
        return [sign * change for change in self.changes(ranks, arm, repetition, operation)]

    def _over_repetitions(self, what):
        return Mean.of(what(repetition) for repetition in range(self.arguments.repetitions))

    def by_equation_1(self, ranks, arm, operation):
        return self._over_repetitions(lambda i: equation_1(self.changes(ranks, arm, i, operation)))

    def signed(self, ranks, arm, operation):
        return self._over_repetitions(
            lambda i: 100 * statistics.fmean(self.costs(ranks, arm, i, operation)))

    def rows(self):
        rows = []
        for ranks in self.arguments.ranks:
            for arm in ARMS:
                for i in range(self.arguments.repetitions):
                    for operation in OPERATIONS:
                        times = self.times(ranks, arm, i, operation)
                        rows += [{"ranks": ranks, "arm": arm, "repetition": i + 1,
                                  "operation": operation, "bytes": size, "time_us": time,
                                  "checkpoints_of_run": len(
                                      self.results[_key(ranks, arm, i)]["checkpoints"])}
                                 for size, time in zip(self.sizes, times)]
        return rows

    def comparison(self):
        rows = []
        for ranks in self.arguments.ranks:
            for operation in OPERATIONS:
                row = {"ranks": ranks, "operation": operation}
                for arm, name in (("checkpoints", "checkpoints"), ("second", "two_without")):
                    signed = self.signed(ranks, arm, operation)
                    row |= {f"here_{name}_equation_1_pct": self.by_equation_1(
                        ranks, arm, operation).value,
                            f"here_{name}_signed_pct": signed.value,
                            f"here_{name}_signed_error_pct": signed.error}
                for machine in multilevel.MESSAGE_TABLES:
                    found = multilevel.message_table(machine).get(ranks, {})
                    row[f"published_{machine}_equation_1_pct"] = found.get(operation)
                rows.append(row)
        return rows

    # ---- pictures and page -----------------------------------------------------------------------

    def files(self):
        """The rows of each CSV file."""
        return {"measurements": self.rows(), "comparison": self.comparison()}

    def figures(self):
        return {f"by-size-{ranks}": self._draw(ranks) for ranks in self.arguments.ranks}

    def _draw(self, ranks):
        height = 5.6
        made = look.figure(height, f"What a message costs more, {ranks} ranks",
                           "measured; thin: each repetition, thick: median")
        with matplotlib.rc_context(look.STYLE):
            panes = made.subplots(2, 2, sharex=True, gridspec_kw={
                "left": 0.075, "right": 0.985, "top": 1 - 0.72 / height, "bottom": 0.5 / height,
                "wspace": 0.16, "hspace": 0.22})
            for axes, operation in zip(panes.flat, OPERATIONS):
                for arm, colour in (("second", look.GREY), ("checkpoints", look.BLUE)):
                    found = [[100 * cost for cost in self.costs(ranks, arm, i, operation)]
                             for i in range(self.arguments.repetitions)]
                    for one in found:
                        axes.plot(self.sizes, one, color=colour, linewidth=0.5, alpha=0.4)
                    axes.plot(self.sizes, [statistics.median(column) for column in zip(*found)],
                              color=colour, linewidth=1.8, label=f"{ARMS[arm]}, over the first run")
                axes.axhline(0, color="#666666", linewidth=0.8)
                axes.set_xscale("log", base=2)
                axes.set_xticks(self.sizes[::4], [_size_text(size) for size in self.sizes[::4]])
                axes.set_title(operation, loc="left")
                axes.set_ylabel("% more cost")
                axes.grid()
            for axes in panes[1]:
                axes.set_xlabel("bytes of a message")
            made.legend(*panes[0][0].get_legend_handles_labels(), loc="upper right", ncols=2,
                        fontsize=8,
                        bbox_to_anchor=(0.99, 1 - 0.27 / height))
        return made

    def page(self, figures):
        parts = [page.heading_of_page("Messages beside checkpoints"), page.notes(self._notes())]
        for ranks in self.arguments.ranks:
            parts += [page.heading(f"{ranks} ranks"), self._table(ranks),
                      page.picture(
                          look.saved(figures[f"by-size-{ranks}"], "svg"),
                          f"Cost by size of message, {ranks} ranks",
                          "Grey is noise: both runs are of the program without checkpoints.")]
        parts += [page.heading("As published"),
                  page.paragraph("Percent by Equation 1, of one run with checkpoints over one "
                                 "without, on up to 1024 cores. No noise was published, so nobody "
                                 "can tell how much of these numbers is bias.",
                                 quiet=True),
                  self._published_table()]
        return page.document("Messages beside checkpoints", parts)

    def _notes(self):
        here, one = runs.machine(), self.arguments
        taken = [len(found["checkpoints"])
                 for key, found in self.results.items() if "-checkpoints-" in key]
        texts = [f"Here: {here['processor']}, {here['cores']} cores, {here['kernel']}; messages of "
                 f"1 to {one.largest} bytes, each for about {one.seconds:g} s. Published: Cray "
                 "XC40, BG/Q and Haswell, over their networks.",
                 f"{SCHEDULE} with minutes of {minute_s(one):.3g} s, synchronous: {min(taken)} to "
                 f"{max(taken)} checkpoints in a run. The published runs had minutes of 60 s; how "
                 "long they were is not told."]
        bias = [self.by_equation_1(ranks, "second", operation).value for ranks in one.ranks
                for operation in OPERATIONS]
        texts.append(f"Equation 1 finds {min(bias):.1f} to {max(bias):.1f} % between two runs "
                     "without any checkpoint. Whatever it says of checkpoints counts only beyond "
                     "that.")
        telling = [f"{operation} on {ranks}" for ranks in one.ranks for operation in OPERATIONS
                   if self.signed(ranks, "checkpoints", operation).tells]
        texts.append("The signed mean of checkpoints is more than its noise for "
                     + (", ".join(telling) if telling else "none of "
                     "the operations") + ".")
        if max(one.ranks) > here["cores"]:
            texts.append(
                "There were more ranks than cores here: they took turns, and the noise is large.")
        return texts

    def _table(self, ranks):
        rows = []
        for operation in OPERATIONS:
            cells = [operation]
            for arm in ("checkpoints", "second"):
                one, signed = (self.by_equation_1(ranks, arm, operation),
                               self.signed(ranks, arm, operation))
                cells += [page.Number(f"{one.value:.2f}", one.value),
                          page.Number(signed.text(), signed.value)]
            for machine in multilevel.MESSAGE_TABLES:
                value = multilevel.message_table(machine).get(ranks, {}).get(operation)
                cells.append(page.Number("-" if value is None else f"{value:.2f}", value))
            rows.append(cells)
        return page.table(f"messages-{ranks}",
                          ["<operation", "here, checkpoints: Eq. 1 %", "signed %",
                           "here, two without: Eq. 1 %", "signed %",
                           *(f"published {multilevel.MACHINES[machine]}: Eq. 1 %"
                             for machine in multilevel.MESSAGE_TABLES)], rows)

    @staticmethod
    def _published_table():
        rows = [[multilevel.MACHINES[machine], str(cores),
                 *(page.Number(f"{of[name]:.2f}", of[name]) for name in OPERATIONS)]
                for machine in multilevel.MESSAGE_TABLES
                for cores, of in multilevel.message_table(machine).items()]
        return page.table("published-messages", ["<machine", "cores", *OPERATIONS], rows)
