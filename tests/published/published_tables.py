#!/usr/bin/env python3
"""The published tables, predicted: docs/published.md, and the costs of
checkpoints in profiles/*.toml.

Without arguments it compares both with what follows from the tables, and fails where they differ;
with --write it writes them. A prediction of a row is fitted on other rows than it: no published
number stands in a column called ours.
"""

import argparse
import csv
import difflib
import pathlib
import re
import sys
import tomllib

SOURCES = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCES / "python"))

import start  # noqa: E402  from there

start.use_python_that_has(start.NEEDED_BY_STUDIES)

import numpy as np  # noqa: E402  of that Python
from scipy import optimize  # noqa: E402

import headline  # noqa: E402  beside this file
from diapause.study import petascale  # noqa: E402  of this tree

TABLES = SOURCES / "python/diapause/study/published"
PAGE = SOURCES / "docs/published.md"
LEVELS = (1, 2, 3, 4)

# For each machine: its profile, and by program its table, that with one injected bit flip, and that
# of bit positions.
MACHINES = {"theta-xc40": {"heat": (5, 7, 8), "stream": (21, None, None)},
            "mira-bgq": {"heat": (9, 11, 12), "stream": (23, None, None)},
            "shepard-haswell": {"heat": (13, 15, 16), "stream": (25, None, None)},
            "cooper-kaveri": {"heat": (17, 19, 20), "stream": (27, None, None)}}
COMPONENTS = (6, 10, 14, 18, 22, 24, 26, 28)
# Tables in which each level has costs of its own: of the others one cost predicts rows that were
# left out as well or better.
WITH_LEVELS = {21}
# Processes on a node and MB of each, section 4 of the study.
BYTES = {("theta-xc40", "heat"): (64, 32),
         ("theta-xc40", "stream"): (64, 96),
         ("mira-bgq", "heat"): (16, 32),
         ("mira-bgq", "stream"): (16, 192),
         ("shepard-haswell", "heat"): (32, 32),
         ("shepard-haswell", "stream"): (32, 120),
         ("cooper-kaveri", "heat"): (4, 32),
         ("cooper-kaveri", "stream"): (4, 48)}


def rows_of(pattern):
    (path,) = TABLES.glob(pattern)
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def fti(number):
    return rows_of(f"fti2018_table{number:02d}_*.csv")


def percent(row, key):
    return float(row[f"{key}_pct"])


def counts(configuration, seconds):
    """Returns how many checkpoints of each level are taken in so long. In every minute for which a
    level is due, the deepest of them is taken."""
    every = [int(one) for one in re.search(r"\(([\d,]+)\)", configuration).group(1).split(",")]
    taken = [0] * 4
    for minute in range(1, int(seconds // 60) + 1):
        due = [level for level in range(4) if minute % every[level] == 0]
        if due:
            taken[due[-1]] += 1
    return taken


class Costs:
    """Seconds and joules of a run: a constant, and so much for each checkpoint."""

    def __init__(self, base_s, base_j, rows, has_levels):
        self.base_s, self.base_j = base_s, base_j
        more_s = np.array([base_s * percent(row, "runtime") / 100 for row in rows])
        more_j = np.array([base_j * percent(row, "energy") / 100 for row in rows])
        taken = np.array(
            [counts(row["configuration"], base_s + more) for row, more in zip(rows, more_s)], float)
        ones = np.ones((len(rows), 1))
        together = np.hstack([ones, taken.sum(axis=1, keepdims=True)])
        found = optimize.nnls(np.hstack([ones, taken]) if has_levels else together, more_s)[0]
        self.constant_s, self.level_s = found[0], np.resize(found[1:], 4)
        self.constant_j, cost_j = np.linalg.lstsq(together, more_j, rcond=None)[0]
        self.level_j = np.full(4, cost_j)

    def predict(self, configuration):
        """(runtime, power, energy) in percent of the run without checkpoints."""
        seconds = self.base_s
        for _ in range(100):  # checkpoints make the run longer, and a longer run has more of them
            taken = np.array(counts(configuration, seconds))
            longer = self.base_s + self.constant_s + float(taken @ self.level_s)
            if longer <= seconds:
                break
            seconds = longer
        joules = self.base_j + self.constant_j + float(taken @ self.level_j)
        runtime, energy = seconds / self.base_s, joules / self.base_j
        return tuple((one - 1) * 100 for one in (runtime, energy / runtime, energy))


def costs_of(number, without=None):
    base, *rows = fti(number)
    rows = [row for i, row in enumerate(rows) if i != without]
    return Costs(float(base["runtime_s"]), float(base["energy_j"]), rows, number in WITH_LEVELS)


KEYS = ("runtime", "node_power", "energy")


def rms(values):
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else float("nan")


def left_out(number):
    """Predicts each row of a table by the others. Returns rows of errors in percentage points."""
    rows = fti(number)[1:]
    return np.array([np.subtract(costs_of(number, i).predict(row["configuration"]),
                                 [percent(row, key) for key in KEYS])
                     for i, row in enumerate(rows)])


def noise(number, twin):
    """Scatter of one run, in points: the same configurations with and without a bit flip, both
    against ckp(3,5,7,11)."""
    rows = {row["configuration"]: row for row in fti(number)[1:]}
    base = rows["ckp(3,5,7,11)"]
    differences = []
    for row in fti(twin)[1:]:
        plain = rows[row["configuration"].split("/")[0]]
        differences.append([((1 + percent(plain, key) / 100) / (1 + percent(base, key) / 100)
                             - 1) * 100 - percent(row, key) for key in KEYS])
    return [rms(column) / np.sqrt(2) for column in np.transpose(differences)]


def points(values):
    return ", ".join(f"{value:.2f}" for value in values)


def schedule_line(machine, app, number, twin):
    errors = [rms(column) for column in left_out(number).T]
    model = ("a constant and a cost for each level" if number in WITH_LEVELS
             else "a constant and one cost for each checkpoint")
    beside = (points(noise(number, twin)) if twin
              else "no twin with injection; the study says below 1")
    return (f"{number}", f"{app} on {machine}", model, f"{len(fti(number)) - 2} other rows",
            points(errors), beside)


def injection_line(machine, number, twin):
    costs = costs_of(number)
    reference = 1 + np.array(costs.predict("ckp(3,5,7,11)")) / 100
    errors = [((1 + np.array(costs.predict(row["configuration"])) / 100) / reference - 1) * 100
              - [percent(row, key) for key in KEYS] for row in fti(twin)[1:]]
    return (f"{twin}", f"heat on {machine}, one bit flip", "that of the table without flips",
            f"table {number}, none of its own",
            points(rms(column) for column in np.transpose(errors)), points(noise(number, twin)))


def position_line(machine, number, twin, positions):
    errors = [rms([percent(row, key) for row in fti(positions)[1:]]) for key in KEYS]
    return (f"{positions}", f"heat on {machine}, bit positions",
            "which bit is flipped changes nothing", "nothing", points(errors),
            points(noise(number, twin)))


def component_line(number):
    """Power of the node from that of its processor and memory; the rest as without checkpoints."""
    base, *rows = fti(number)
    node, parts = (float(base["node_power_w"]),
                   {key: float(base[f"{key}_power_w"]) for key in ("cpu", "memory")})
    errors = [sum(parts[key] * percent(row, f"{key}_power") for key in parts) / node
              - percent(row, "node_power") for row in rows]
    return (f"{number}", "components",
            "power of the node: changes of processor and memory as printed, the rest as without "
            "checkpoints",
            "the run without checkpoints", f"power {rms(errors):.2f}", "")


def message_line(number):
    rows = fti(number)
    errors = []
    for key in [key for key in rows[0] if key.endswith("_pct")]:
        values = np.array([float(row[key]) for row in rows])
        errors += list((values.sum() - values) / (len(values) - 1) - values)
    spread = [np.std([float(row[key]) for row in rows], ddof=1)
              for key in rows[0] if key.endswith("_pct")]
    return (f"{number}", "messages (Equation 1)",
            "the mean of the same operation at other numbers of processes", "7 other rows",
            f"{rms(errors):.2f}", f"scatter over processes {rms(spread):.2f}")


def summary_line(number, pick):
    errors = []
    names = {"Cray XC40": "theta-xc40",
             "IBM BG/Q": "mira-bgq",
             "Intel Haswell": "shepard-haswell",
             "AMD Kaveri": "cooper-kaveri"}
    for row in fti(number):
        table = MACHINES[names[row["architecture"]]][
            "heat" if row["application"] == "HDC" else "stream"][0]
        rows = fti(table)[1:]
        predicted = [costs_of(table, i).predict(one["configuration"])[2]
                     for i, one in enumerate(rows)]
        errors.append(pick(predicted) - percent(row, "energy"))
    return (f"{number}", f"{'most' if pick is max else 'least'} energy", "of the predictions above",
            "rows left out in turn", f"energy {rms(errors):.2f}", "")


def rate_line(name, title, pattern, seconds, size):
    """Time of a checkpoint as its size over the median rate of the other rows."""
    rows = [row for row in rows_of(pattern) if row[seconds]]
    rates = np.array([size(row) / float(row[seconds]) for row in rows])
    errors = [(size(row) / np.median(np.delete(rates, i)) / float(row[seconds]) - 1) * 100
              for i, row in enumerate(rows)]
    return (name, title, "size over the median rate",
            f"{len(rows) - 1} other row{'s' * (len(rows) > 2)}", f"time {rms(errors):.0f} %",
            "one run each")


def petascale_lines():
    law = [(float(row["ratio"]) * float(row["single_disk_fill_time_min"]) / float(
        row["ideal_ckpt_time_min"]) - 1) * 100
           for row in rows_of("cao2016_table1_*") if row["ratio"] and row["ideal_ckpt_time_min"]]
    whole = lambda row: float(row["total_ckpt_size_tb"])  # noqa: E731
    each = lambda row: int(row["processes"]) * float(row["ckpt_size_per_process_mb"])  # noqa: E731
    launch = rows_of("cao2016_table4_*")[:5]
    logs = np.log([[float(row["processes_k"]), float(row["launch_time_max_s"])] for row in launch])
    far = []
    for i in range(len(logs)):
        slope, start = np.polyfit(*np.delete(logs, i, axis=0).T, 1)
        far.append((np.exp(start + slope * logs[i, 0] - logs[i, 1]) - 1) * 100)
    over = np.array([float(row["overhead_pct"]) for row in rows_of("cao2016_table5_*")])
    return [("I", "fill-time law", "the ratio of memory to storage times the fill time of a device",
             "nothing", f"time {rms(law):.0f} %: its row of a node with an SSD contradicts itself",
             ""),
            rate_line("II", "HPCG", "cao2016_table2_*", "checkpoint_time_s", whole),
            rate_line("III", "NAMD", "cao2016_table3_*", "checkpoint_time_s", whole),
            ("IV", "launch time", "a power of the number of processes", "4 other rows",
             f"time {rms(far):.0f} %", "0.3 to 7.5 s of 1K"),
            ("V", "overhead while it runs", "the mean of the others", "3 other rows",
             f"{rms((over.sum() - over) / (len(over) - 1) - over):.2f}",
             f"scatter {np.std(over, ddof=1):.2f}"),
            rate_line("VI", "LU.E", "cao2016_table6_*", "checkpoint_time_s", each),
            ("VII", "two MPI libraries", "", "",
             "not predicted: both take as long for sizes that differ by half, so "
             "something else than size decides, and two rows do not tell what",
             ""),
            rate_line("VIII", "NAS", "cao2016_table8_*", "checkpoint_time_s", each)]


def plain_markdown(head, lines):
    return (f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
            + "".join("| " + " | ".join(line) + " |\n" for line in lines))


def law_table():
    return plain_markdown(["machine", "published, min", "by the law, min", "difference", "why"], [
        (row["system"], f"{row['published_ideal_min']:g}", f"{row['law_min']:.2f}",
         f"{row['difference_pct']:+.1f} %", row["why"]) for row in petascale.law_rows()])


def beyond_table():
    return plain_markdown(
        ["program", "processes", "published checkpoint, s", "by the law, s", "over the law"],
        [(row["program"], str(row["processes"]), f"{row['published_checkpoint_s']:g}",
          f"{row['law_s']:.1f}", f"{row['times_the_law']:.1f}") for row in petascale.beyond_law()])


def model_table():
    return plain_markdown(["fitted on", "rows fitted", "rows tested", "checkpoint", "worst",
                           "by the median rate", "restart", "worst", "by the median rate"],
                          [(row["fitted_on"], str(row["rows_fitted"]), str(row["rows_tested"]),
                            f"{row['checkpoint_rms_pct']:.0f} %",
                            f"{row['checkpoint_worst_pct']:+.0f} %",
                            f"{row['rate_checkpoint_rms_pct']:.0f} %",
                            f"{row['restart_rms_pct']:.0f} %", f"{row['restart_worst_pct']:+.0f} %",
                            f"{row['rate_restart_rms_pct']:.0f} %") for row in petascale.tested()])


def costs_text():
    costs = petascale.fitted(petascale.dumps())
    return (f"draining {costs.drain_s:.1f} s,\ncoordination {1e3 * costs.coordination_s:.2f} ms of "
            "a process, writing at "
            f"{1e-9 / costs.write_s:.0f} GB/s and {1e9 * costs.contention_s * 32752:.4f} s/GB more "
            "at 32,752 processes. Of a restart:\n"
            f"{costs.start_s:.1f} s, {1e6 * costs.connect_s:.2f} us of each pair of processes, "
            f"reading at {1e-9 / costs.read_s:.0f} GB/s")


def saved_energy(pattern, ratio, longer):
    """Computes the saving in percent by the printed fit of each processor and
    the printed slowdown."""
    top = {row["series"]: float(row["cpu_base_clock_ghz"])
           for row in rows_of("wilkins2023_table2_2_*")}
    saved = []
    for row in rows_of(pattern):
        if row["model_data"] in top:
            a, b, c = (float(row[key]) for key in "abc")
            clock = top[row["model_data"]]
            saved.append((1 - longer * (a * (ratio * clock)**b + c) / (a * clock**b + c)) * 100)
    return saved


def thesis_text():
    compress, write = (saved_energy("wilkins2023_table2_4_*", 0.875, 1.075),
                       saved_energy("wilkins2023_table2_5_*", 0.85, 1.093))
    return f"""The thesis measured that the rule saves 13 % of a dump of 512 GB (6.5 kJ of 50). The
energy follows from its fits of power and its slowdowns. By these, compressing saves
{compress[0]:.1f} and {compress[1]:.1f} % on the two processors, and writing {write[0]:.1f} and
{write[1]:.1f} %. So a dump saves between {min(compress + write):.1f} and
{max(compress + write):.1f} %, whatever its shares are, and 13 % only where nearly all of it is
compression on the second processor. The shares are not printed, and the 14.3 % of its abstract are
a mean of powers. Its statements on asynchronous checkpoints (25 % more throughput and 20 % less
energy in memory than on disk, a fourth of the energy of direct writes) rest on figures whose data
is not in the text; they are not predicted.
"""


def thesis_lines():
    lines = [("2.1", "data sets", "", "", "not predicted: an input", ""),
             ("2.2", "processors", "", "", "not predicted: an input", ""),
             ("2.3", "which models there are", "", "", "not predicted: an input", "")]
    top = {row["series"]: float(row["cpu_base_clock_ghz"])
           for row in rows_of("wilkins2023_table2_2_*")}
    for name, title, pattern, ratio, printed in (
            ("2.4", "compression", "wilkins2023_table2_4_*", 0.875, 19.4),
            ("2.5", "writing", "wilkins2023_table2_5_*", 0.85, 11.2)):
        saved = []
        for row in rows_of(pattern):
            if row["model_data"] in top:
                a, b, c = (float(row[key]) for key in "abc")
                clock = top[row["model_data"]]
                saved.append((1 - (a * (ratio * clock)**b + c) / (a * clock**b + c)) * 100)
        lines.append((name, f"fits of {title}",
                      f"power saved at {ratio} of the clock, by the fit of each processor: "
                      f"{' and '.join(f'{one:.1f} %' for one in saved)}",
                      "the fits as printed; their points are not",
                      f"{np.mean(saved) - printed:+.1f} points against the {printed} % of the text",
                      "rmse of the fits 1.7 to 2.8 %"))
    return lines + [("3.1", "storage", "", "", "not predicted: an input", "")]


# For the study of throttled checkpoints: what it prints as saved, and the time of a checkpoint at
# the lowest of its six gears over that at the highest, in its words "little effect on time",
# nothing, and "nearly double".
THROTTLED = (("2.3", "local SSD", 25.0, 1.0), ("2.4.3", "remote SSD over IP", 50.0, 1.0),
             ("2.4.3", "remote SSD over RDMA", 15.0, 2.0))


def throttled_saved(lowest_time):
    """The most that a clock between the two printed ones saves of a checkpoint's energy, in
    percent, and that clock. The power is that of the profile, all of it assumed: a busy processor
    over its clock, and the rest of the node idle."""
    profile = tomllib.loads((SOURCES / "profiles/llano-cluster.toml").read_text())
    top, least = (profile["clock"][key]["value"] for key in ("base_ghz", "least_ghz"))
    a, b, c = (profile["frequency"][key]["value"] for key in "abc")
    package = profile["domain"]["package"]
    busy_w = package["idle_w"]["value"] + package["busy_w"]["value"]
    rest_w = sum(domain["idle_w"]["value"]
                 for name, domain in profile["domain"].items() if name != "package")
    clocks = np.linspace(least, top, 1000)
    phi = (lowest_time - 1) / (top / least - 1)
    watts = busy_w * (a * clocks**b + c) / (a * top**b + c) + rest_w
    saved = 1 - (phi * top / clocks + 1 - phi) * watts / (busy_w + rest_w)
    best = int(np.argmax(saved))
    return 100 * saved[best], clocks[best]


def throttled_lines():
    lines = []
    for section, medium, printed, lowest_time in THROTTLED:
        saved, clock = throttled_saved(lowest_time)
        lines.append((section, f"energy saved, {medium}", f"{printed:g} %",
                      f"{saved:.0f} % at {clock:.1f} GHz", f"{saved - printed:+.0f} points",
                      "taken from the text: nearly twice the time at 1.4 GHz" if lowest_time > 1
                      else "assumed: no time lost"))
    return lines


def text_lines():
    """The greatest increases that the text names: of the tables' rows, each
    predicted by the others."""
    lines = []
    for machine, apps in MACHINES.items():
        for app, (number, *_) in apps.items():
            rows = fti(number)[1:]
            predicted = np.array([costs_of(number, i).predict(row["configuration"])
                                  for i, row in enumerate(rows)])
            printed = [max(percent(row, key) for row in rows) for key in ("runtime", "energy")]
            ours = [predicted[:, 0].max(), predicted[:, 2].max()]
            lines.append((f"{app} on {machine}", *(f"{one:.2f} %" for one in printed),
                          *(f"{one:.2f} %" for one in ours)))
    return lines


def tables():
    lines = ([("1", "systems", "", "", "not predicted: an input", "")]
             + [message_line(number) for number in (2, 3, 4)])
    for machine, apps in MACHINES.items():
        number, twin, positions = apps["heat"]
        lines += [schedule_line(machine, "heat", number, twin),
                  injection_line(machine, number, twin),
                  position_line(machine, number, twin, positions),
                  schedule_line(machine, "stream", apps["stream"][0], None)]
    lines += ([component_line(number) for number in COMPONENTS]
              + [summary_line(29, max), summary_line(30, min)])
    return sorted(lines, key=lambda line: int(line[0]))


HEAD = ("| table | of what | predicted by | fitted on | error | run-to-run noise |\n"
        "|---|---|---|---|---|---|\n")


def markdown(lines):
    return HEAD + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def page():
    return f"""# The published tables, predicted

What this software implements was published with
{len(tables())} + {len(thesis_lines())} + {len(petascale_lines())} tables, and in a study without
tables. For each table this page says what predicts it, on which rows the prediction was fitted, how
far the other rows are off, and how far two runs of the same configuration are apart. A row is never
predicted from itself. `tests/published/published_tables.py` makes the page from the transcribed
tables, and a test compares the two. `diapause predict` gives the predictions.

Errors and noise are root mean squares. Where nothing else is said, they are those of
`runtime, power, energy`, in percentage points of the run without checkpoints. Noise is the scatter
of one run: the distance between the changes with and without an injected bit flip, over the square
root of 2.

## Multilevel checkpoints on four machines

The time of a run is that without checkpoints, a constant, and a cost for each checkpoint. The
schedule says when a level is due; where several levels are due, the deepest of them is taken. The
energy has a constant and one cost as well, and the power follows from the two.

{markdown(tables())}
For heat on three of the machines the runtimes are predicted about as well as noise allows (tables
5, 13, 17), and nearly so for 9 and 27. They are not for 23 and 25: on BG/Q ckp(2,3,4,5) takes
longer than ckp(1,3,5,7) with fewer checkpoints. On Haswell, where checkpoints more than double the
run, neither one cost for all of them nor one for each level is near.

The text of the study names the greatest increases. The same predictions say of them:

{plain_markdown(["of what", "runtime, printed", "energy, printed", "runtime, predicted",
                 "energy, predicted"], text_lines())}
## Compressed and asynchronous checkpoints

{markdown(thesis_lines())}
{thesis_text()}
## Throttled checkpoints

The study of throttled checkpoints prints no table, but three savings of a checkpoint's energy. It
prints neither the power of its nodes nor the time of a checkpoint at each clock. So the savings are
predicted from the profile `llano-cluster`, whose powers are all assumed, at the clock from 1.4 to
3.8 GHz that saves most:

{plain_markdown(["section", "of what", "printed", "predicted", "error", "time"], throttled_lines())}
This arithmetic tells the third saving from the other two, and does not tell those two apart. With
the local SSD a checkpoint takes slightly longer at lower clocks, but only a figure shows by how
much. Over IP the printed saving is more than the assumed processor can save. The 10 % of the title
is the product of 50 % and 20 %, and was not measured.

## Petascale

{markdown(petascale_lines())}
{petascale_text()}
## Numbers in the text

{headline_text()}"""


def headline_text():
    predicted, others = headline.lines(sys.modules[__name__])
    return f"""The texts of the four studies state {len(predicted) + len(others)} numbers
([headline.csv](../tests/published/headline.csv)). The models above predict {len(predicted)} of
these:

{plain_markdown(["study, section", "of what", "printed", "predicted", "by", "error"], predicted)}
The predicted savings have the greatest errors. The powers of the throttled nodes are assumed, and
the 14.3 % of the thesis are a mean of powers; by its own fits and slowdowns the energy saved is
half of that. The noise between runs with and without a flip exceeds the stated 1 % on one machine.
The other {len(others)} numbers are not predicted:

{plain_markdown(["study, section", "of what", "printed", "why not"], others)}"""


def petascale_text():
    return f"""### The checkpoint-fill-time law

From their own inputs, the law gives these times for the machines of table I:

{law_table()}
The law fails where a dump does not keep all devices busy. The dumps of the same paper, all on
Stampede, took:

{beyond_table()}
### A model of the dumps

    checkpoint = drain + coordination x P + S / write rate + contention x S x P
    restart    = start + connection x P^2 + S / read rate

P is the number of processes and S the size of all images. The paper drains by polling for a fixed
time and has one coordinator for all processes. At a restart each process connects to it and learns
the addresses of all others. The constants are non-negative and have the least squared relative
error. The form was chosen with all rows in view; the constants are tested only on rows that they
were not fitted on:

{model_table()}
Errors are root mean squares over the tested rows, in percent of the published time. *By the median
rate* is the error of the size over the median rate of the same fitted rows. The model beats that
rate where processes or sizes are extrapolated. It is no better for the other NAS benchmarks, whose
sizes and numbers of processes are near those of LU.E, and worse for their restarts. With a single
run of each kind, draining cannot be told from the rest of the constant part, nor writing from
contention.

These are the constants of all rows, which only [the extrapolation](studies.md#transparent) uses:
{costs_text()}.

Launch times (table IV, without the tree of coordinators) are predicted by a cost of each process
and one of each pair, each row from the others. They are {rms(petascale.launch_errors()):.0f} % off;
for all but the largest number of processes the printed range is wider still. The overhead while a
program runs (table V) follows no trend over the number of processes, and the mean of the other rows
is {rms(petascale.overhead_errors()):.2f} percentage points off.
"""


def profile_sections(machine):
    """[app.*] of a profile."""
    text = ""
    for app, (number, *_) in MACHINES[machine].items():
        base, costs, errors = fti(number)[0], costs_of(number), left_out(number)
        processes, megabytes = BYTES[machine, app]
        fitted = f"fit to table {number}, all rows"
        numbers = [("runtime_s", float(base["runtime_s"]), f"table {number}, Original"),
                   ("node_w", float(base["node_power_w"]), f"table {number}, Original"),
                   ("bytes", processes * megabytes * 1e6,
                    f"section 4: {megabytes} MB of each of {processes} processes"),
                   ("constant_s", costs.constant_s, fitted),
                   ("constant_j", costs.constant_j, fitted)]
        for level in LEVELS:
            numbers += [(f"level_{level}_s", costs.level_s[level - 1], fitted),
                        (f"level_{level}_j", costs.level_j[level - 1], fitted)]
        for i, key in enumerate(("runtime", "energy")):
            numbers.append((f"{key}_off_percent", 2 * rms(errors[:, 2 * i]),
                            f"table {number}: twice the root mean square of rows that were left "
                            "out of the fit"))
        text += (f"\n[app.{app}]\n"
                 + "".join(f'{name} = {{ value = {value:.6g}, source = "{source}" }}\n'
                           for name, value, source in numbers))
    return text


def expected():
    """{path: text}"""
    files = {PAGE: page()}
    for machine in MACHINES:
        path = SOURCES / f"profiles/{machine}.toml"
        kept = path.read_text().split("\n[app.")[0].rstrip("\n") + "\n"
        files[path] = kept + profile_sections(machine)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    differs = False
    for path, text in expected().items():
        found = path.read_text() if path.exists() else ""
        if found == text:
            continue
        if arguments.write:
            path.write_text(text)
            continue
        differs = True
        sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), text.splitlines(True),
                                                   str(path), "from the tables"))
    if differs:
        sys.exit("run tests/published/published_tables.py --write, and look at what has changed")


if __name__ == "__main__":
    main()
