"""The numbers that the studies state in their text (headline.csv): each is predicted, or
there is a reason why not."""

import csv
import pathlib
import re

import numpy as np

MACHINES = {"XC40": "theta-xc40", "BG/Q": "mira-bgq", "Haswell": "shepard-haswell",
            "Kaveri": "cooper-kaveri"}
KEYS = {"runtime": 0, "node power": 1, "energy": 2}

INPUT = "an input"
METHOD = "how it was measured"
OTHERS = "quoted of others"
FIGURE = "stands in a figure, whose data is not in the text"

# These are the reasons, by paper and quantity, why a number is not predicted.
NOT_PREDICTED = {
    ("000", "checkpoint file size per MPI process, HDC"): INPUT,
    ("000", "HDC Haswell disk power increase"):
        "a component, and only its own measurement tells of it",
    ("000", "STREAM BG/Q original runtime as stated in text"): "an input, and table 23 has another",
    ("000", "power sampling rate PoLiMEr and EMON"): METHOD,
    ("000", "power sampling rate PowerInsight"): METHOD,
    ("001", "checkpoint time factor, RDMA at lowest gear"): "an input of the saving over RDMA",
    ("001", "share of total runtime spent in checkpoints"): INPUT,
    ("001", "checkpoint overhead on current systems, low"): OTHERS,
    ("001", "checkpoint overhead on current systems, high"): OTHERS,
    ("001", "checkpoint commit time"): INPUT,
    ("001", "node MTBF"): INPUT,
    ("001", "highest CPU frequency"): INPUT,
    ("001", "lowest CPU frequency"): INPUT,
    ("001", "checkpoint size per process"): INPUT,
    ("001", "runs per gear"): METHOD,
    ("001", "ASCI White MTBF"): OTHERS,
    ("003", "f_I/O for lossy compression (Eq. 2.3)"):
        "the rule, chosen by its authors; our throttling page has the clocks that save most",
    ("003", "f_I/O for data writing (Eq. 2.3)"):
        "the rule, chosen by its authors; our throttling page has the clocks that save most",
    ("003", "SSE of the Broadwell fit on Hurricane-ISABEL"):
        "a property of points that are not printed",
    ("003", "RMSE of the Broadwell fit on Hurricane-ISABEL"):
        "a property of points that are not printed",
    ("003", "TDP Xeon D-1548"): INPUT,
    ("003", "TDP Xeon Silver 4114"): INPUT,
    ("003", "local checkpoint throughput, DRAM over SSD"): FIGURE,
    ("003", "local checkpoint energy, DRAM under SSD"): FIGURE,
    ("003", "total checkpoint energy, GenericIO over VELOC"): FIGURE,
    ("003", "processes past which GIO energy rises again (strong scaling)"): FIGURE,
    ("003", "repetitions per experiment"): METHOD,
    ("004", "largest checkpoint"): INPUT,
    ("004", "runtime overhead before, 4K cores"):
        "of an earlier version, of which nothing else is printed",
    ("004", "runtime overhead before, 2K cores"):
        "of an earlier version, of which nothing else is printed",
    ("004", "single disk bandwidth assumed"): INPUT,
    ("004", "peak Lustre bandwidth observed"): "a property of the file system",
    ("004", "single SSD checkpoint: size"): INPUT,
    ("004", "single SSD restart: time"):
        "the law is of writing, and no other restart of one node is printed",
    ("004", "launch time improvement with tree of coordinators, 16K"):
        "the tree was used in one row, which tells no trend",
}


class Predictions:
    """The predictions by paper and quantity, as (value, by what). `tables`
    is published_tables.py."""

    def __init__(self, tables):
        self.tables = tables
        # For each machine and program, every row predicted by the others, in percent.
        self.rows = {}
        for machine, apps in tables.MACHINES.items():
            for app, (number, *_) in apps.items():
                self.rows[machine,
                          app] = np.array([tables.costs_of(number, i).predict(row["configuration"])
                                           for i, row in enumerate(tables.fti(number)[1:])])
        self.single = {("000", "STREAM XC40 energy difference of the two extreme configurations"):
                       lambda: (self.spread("theta-xc40"),
                                "the rows of table 21, each by the others")}
        self.single |= (
            self.of_runs() | self.of_throttling() | self.of_thesis() | self.of_petascale())

    def of(self, row):
        paper, quantity = row["paper"], row["quantity"]
        match = re.fullmatch(r"(HDC|STREAM) (\S+) (runtime|node power|energy) (increase|decrease)",
                             quantity)
        if paper == "000" and match:
            program, machine, key, way = match.groups()
            values = self.rows[MACHINES[machine],
                               "heat" if program == "HDC" else "stream"][:, KEYS[key]]
            return ((values.max() if way == "increase" else -values.min()),
                    "the rows of its table, each by the others")
        known = (self.single.get((paper, quantity))
                 or self.single.get((paper, quantity, row["unit"])))
        return known() if known else None

    def spread(self, machine):
        energies = self.rows[machine, "stream"][:, 2]
        return energies.max() - energies.min()

    def most(self, machine):
        return max(self.rows[machine, app][:, 2].max() for app in ("heat", "stream"))

    def of_runs(self):
        noise = lambda: max(self.tables.noise(apps["heat"][0], apps["heat"][1])[0]
                            for apps in self.tables.MACHINES.values())  # noqa: E731
        by_impact = lambda: sorted(  # noqa: E731
            MACHINES, key=lambda name: self.most(MACHINES[name]))
        made = {("000", "run-to-run runtime variation"): lambda: (
                    noise(), "the twins with injection, largest of four machines"),
                ("000", "machines with smallest impact"): lambda: (
                    "; ".join(by_impact()[:2]),
                    "greatest energies of the rows, each by the others"),
                ("000", "machine with largest impact"): lambda: (
                    by_impact()[-1], "greatest energies of the rows, each by the others")}
        for quantity, machine in (("STREAM XC40 checkpoint total size", "theta-xc40"),
                                  ("STREAM BG/Q checkpoint total size", "mira-bgq"),
                                  ("STREAM Haswell checkpoint total size", "shepard-haswell")):
            files, megabytes = self.tables.BYTES[machine, "stream"]
            made["000", quantity] = lambda files=files, megabytes=megabytes: (
                files * megabytes / 1e3, f"{files} files of {megabytes} MB")
        for quantity, machine in (("Cray XC40", "theta-xc40"), ("IBM BG/Q", "mira-bgq"),
                                  ("Intel Haswell", "shepard-haswell"),
                                  ("AMD Kaveri", "cooper-kaveri")):
            made["000", f"max-min energy percentage, {quantity}"] = lambda machine=machine: (
                self.spread(machine), "the rows of its table of STREAM, each by the others")
        return made

    def of_throttling(self):
        saved = {medium: (lambda time=time: (self.tables.throttled_saved(time)[0],
                                             "the profile llano-cluster, all assumed"))
                 for _, medium, _, time in self.tables.THROTTLED}
        total = lambda: (  # noqa: E731
            0.2 * self.tables.throttled_saved(1.0)[0],
            "20 % of the runtime, and the saving over IP from the profile")
        return {
            ("001", "checkpoint energy saving, local SSD"): saved["local SSD"],
            ("001", "checkpoint energy saving, remote SSD over IPoIB"): saved["remote SSD over IP"],
            ("001", "checkpoint energy saving, remote SSD over RDMA"):
                saved["remote SSD over RDMA"],
            ("001", "total energy saving possible"): total,
            ("001", "total energy saving derived from 50% of 20%"): total}

    def of_thesis(self):
        fits = (("wilkins2023_table2_4_*", 0.875, 1.075), ("wilkins2023_table2_5_*", 0.85, 1.093))
        power = {key: np.mean(self.tables.saved_energy(key, ratio, 1)) for key, ratio, _ in fits}
        energy = [saved for one in fits for saved in self.tables.saved_energy(*one)]
        compress, write = (lambda value=value: (value, "the printed fits, mean of two processors")
                           for value in power.values())
        # The same share scales with the clock.
        longer = lambda pct, ratio, other: (  # noqa: E731
            100 * (pct / 100 / (1 / ratio - 1)) * (1 / other - 1))
        overall = lambda: (  # noqa: E731
            np.mean(energy),
            "the printed fits and slowdowns, mean of two processors and both steps")
        return {("003", "energy usage reduction, lossy compression"): compress,
                ("003", "power saving, compression at 0.875 f_max"): compress,
                ("003", "energy usage reduction, data writing"): write,
                ("003", "power saving, writing at 0.85 f_max"): write,
                ("003", "overall energy saving"): overall,
                ("003", "average energy saving"): overall,
                ("003", "runtime increase, compression at 0.875 f_max"): lambda: (
                    longer(9.3, 0.85, 0.875),
                    "the increase of writing: the same share scales with the clock"),
                ("003", "runtime increase, writing at 0.85 f_max"): lambda: (
                    longer(7.5, 0.875, 0.85),
                    "the increase of compression: the same share scales with the clock"),
                ("003", "average runtime increase"): lambda: (
                    (longer(9.3, 0.85, 0.875) + longer(7.5, 0.875, 0.85)) / 2, "the two above"),
                ("003", "energy saved, 512 GB SZ + NFS write", "%"): lambda: (
                    np.mean(energy), "as above; between 3.6 and 14.3 by the shares of the steps"),
                ("003", "energy saved, 512 GB SZ + NFS write", "kJ"): lambda: (
                    0.5 * np.mean(energy), "the same of 50 kJ"),
                ("003", "energy, 2 GiB per rank over 1 GiB per rank"): lambda: (
                    2.0, "energy in proportion to bytes")}

    def of_petascale(self):
        tables = self.tables
        petascale = tables.petascale
        dumps = petascale.dumps()
        largest = max(range(len(dumps)), key=lambda i: dumps[i].processes)
        others = petascale.fitted([dump for i, dump in enumerate(dumps) if i != largest])
        largest_s = lambda: others.checkpoint_s(  # noqa: E731
            dumps[largest].processes, dumps[largest].size_bytes)
        without_hpcg = petascale.fitted([dump for dump in dumps if dump.program != "HPCG"])
        law = {row["system"]: row["law_min"] for row in petascale.law_rows()}
        ideal_s = {(row["program"], row["processes"]): row["law_s"]
                   for row in petascale.beyond_law()}
        beyond = {dump.processes: without_hpcg.checkpoint_s(
            dump.processes, dump.size_bytes) / ideal_s["HPCG", dump.processes]
                  for dump in dumps if dump.program == "HPCG"}
        over = [float(row["overhead_pct"]) for row in tables.rows_of("cao2016_table5_*")]
        exascale = law["Theoretical Exascale"]
        return {("004", "largest checkpoint time"): lambda: (
                    largest_s() / 60, "the model of dumps, fitted on the other rows"),
                ("004", "runtime overhead"): lambda: (
                    np.mean(over[:-1]), "table V, the mean of the rows before the last"),
                ("004", "predicted ideal exascale checkpoint time"): lambda: (
                    exascale, "the law, table I"),
                ("004", "predicted real-world exascale checkpoint time"): lambda: (
                    exascale * beyond[16368],
                    "the law, times what the model of dumps takes over it on 16,368 processes"),
                ("004", "observed over ideal, 16K cores"): lambda: (
                    beyond[16368], "the model of dumps, fitted without HPCG, over the law"),
                ("004", "observed over ideal, 32752 cores"): lambda: (
                    beyond[32752], "the model of dumps, fitted without HPCG, over the law"),
                ("004", "single SSD predicted time"): lambda: (
                    128e9 / 500e6 * 3 / 128, "the law: 3 GB at 500 MB/s"),
                ("004", "single SSD checkpoint: time"): lambda: (
                    128e9 / 500e6 * 3 / 128, "the law: 3 GB at 500 MB/s")}


def _error(row, value):
    if isinstance(value, str):
        return "the same" if all(name in row["value"] for name in value.split("; ")) else "another"
    printed = float(row["value"])
    if row["qualifier"] in ("upper bound", "lower bound"):
        return "within" if (value <= printed) == (row["qualifier"] == "upper bound") else "beyond"
    return f"{value - printed:+.2f}" + (" points" if row["unit"] == "%"
                                        else f" ({(value / printed - 1) * 100:+.0f} %)")


def lines(tables):
    """Rows of the predicted numbers: where, what, printed, predicted, by what, error; and rows of
    the others: where, what, printed, why not."""
    predictions, predicted, others = Predictions(tables), [], []
    names = {"000": "multilevel", "001": "throttled", "003": "thesis", "004": "petascale"}
    with open(pathlib.Path(__file__).with_name("headline.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        of = f"{names[row['paper']]}, {row['section']}"
        printed = f"{row['value']} {row['unit']}".strip() + (
            f", {row['qualifier']}" if row["qualifier"] in ("upper bound", "lower bound") else "")
        found = predictions.of(row)
        if found is None:
            others.append((of, row["quantity"], printed,
                           NOT_PREDICTED[row["paper"], row["quantity"]]))
            continue
        value, by = found
        text = value if isinstance(value, str) else f"{value:.2f} {row['unit']}".strip()
        predicted.append((of, row["quantity"], printed, text, by, _error(row, value)))
    return predicted, others
