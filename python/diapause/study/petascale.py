"""The published tables of system-level checkpoints at petascale, and models of them.

Source of all tables and of the law: J. Cao et al., System-level Scalable Checkpoint-Restart for
Petascale Computing (2016); see published/README.md. Its checkpoints have a single coordinator to
which each process is connected (section II-C), drain the network by polling for a fixed time
(section III-B), write to Lustre, and at a restart connect every process anew (section IV-C). Units
are seconds, bytes and bytes per second everywhere.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import math

import numpy as np
from scipy import optimize

from diapause.study.published import FOLDER

TB, GB, MB, MINUTE_S = 1e12, 1e9, 1e6, 60.0
STAMPEDE = "Stampede (TACC)"  # where all of its runs were measured
TABLES = {"HPCG": "cao2016_table2_hpcg", "NAMD": "cao2016_table3_namd",
          "LU.E": "cao2016_table6_lu_e", "NAS": "cao2016_table8_nas"}
FITTED = ("HPCG", "NAMD", "LU.E")  # tables 2, 3 and 6; table 8 is never fitted on
SMALL = 8192  # processes
LARGEST = 32752  # processes, with 38 TB
LARGEST_BYTES = 38 * TB
PER_NODE = 16  # processes, table II
TINY_S = 1e-4  # a shorter time cannot be told from none


def rows_of(name):
    """The rows of a transcribed table, as text."""
    with open(FOLDER / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def _number(text):
    return float(text) if text else None


# ---- the law -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine as the law takes it. If the sizes of a machine are unknown, only the ratio
    `memory_bytes / storage_bytes` counts."""

    memory_bytes: float
    storage_bytes: float  # capacity of all devices: nodes x devices of each x device_bytes
    device_bytes: float
    device_bytes_per_s: float

    @classmethod
    def of_nodes(cls, memory_bytes, nodes, devices, device_bytes, device_bytes_per_s):
        """Storage as so many nodes with so many devices each."""
        return cls(memory_bytes, nodes * devices * device_bytes, device_bytes, device_bytes_per_s)

    @property
    def device_fill_s(self):
        """Seconds to fill one device."""
        return self.device_bytes / self.device_bytes_per_s

    @property
    def storage_bytes_per_s(self):
        """The rate of all devices together, which the law assumes."""
        return self.storage_bytes / self.device_fill_s

    def least_s(self, used=1.0):
        """The checkpoint-fill-time law, section III-D: used x memory / storage x the time to fill a
        device. `used`: the share of the memory that is written."""
        return used * self.memory_bytes / self.storage_bytes * self.device_fill_s


def fill_time_s(memory_bytes, storage_bytes, device_bytes, device_bytes_per_s):
    """The law for a dump of all memory."""
    return Machine(memory_bytes, storage_bytes, device_bytes, device_bytes_per_s).least_s()


# These are the reasons why a row of table I differs from the law by more than the rounding of its
# ratio.
DIFFERENCES = {
    "SSD-based 4-core node": "the printed disk of 4 TB takes 133 min to fill; the printed 4.3 min "
                             "are those of 128 GB, and by the printed ratio the checkpoint takes "
                             "0.54 min: 4.3 is again the time to fill the SSD",
    "Theoretical Exascale": "4 TB at 4 GB/s are 16.7 min, printed 16; a tenth is 1.67, printed 1.6"}


def machines():
    """{system: Machine} of table I, as printed; a missing size is 1 byte, with the
    other by the printed ratio."""
    found = {}
    for row in rows_of("cao2016_table1_fill_time_law"):
        memory, storage = _number(row["storage_ram_tb"]), _number(row["storage_disk_or_ssd_tb"])
        if memory is None or storage is None:
            memory, storage = float(row["ratio"]), 1.0
        found[row["system"]] = Machine(memory * TB, storage * TB,
                                       float(row["assumed_disk_size_tb"]) * TB,
                                       float(row["assumed_single_disk_bandwidth_mb_s"]) * MB)
    return found


def law_rows():
    """Table I beside what the law gives for its own inputs: minutes, the difference in
    percent, and its reason."""
    rows = []
    for row in rows_of("cao2016_table1_fill_time_law"):
        printed, law = (float(row["ideal_ckpt_time_min"]),
                        machines()[row["system"]].least_s() / MINUTE_S)
        off = 100 * (law / printed - 1)
        why = DIFFERENCES.get(row["system"], "the printed ratio and fill time are rounded"
                              if abs(off) >= 0.05 else "none")
        rows.append({"system": row["system"], "published_ideal_min": printed, "law_min": law,
                     "difference_pct": off, "why": why,
                     "uncertain_in_paper": row["columns_marked_uncertain_in_paper"]})
    return rows


# ---- measured there ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Dump:
    """A published checkpoint and its restart."""

    program: str
    processes: int
    size_bytes: float  # of all images
    checkpoint_s: float
    restart_s: float
    note: str


def size_bytes(row):
    """Returns the size of all images of a row of tables II, III, VI and VIII."""
    if row.get("total_ckpt_size_tb"):
        return float(row["total_ckpt_size_tb"]) * TB
    return float(row["ckpt_size_per_process_mb"]) * MB * float(row["processes"])


@functools.cache
def dumps(*names):
    """Returns the dumps of these tables, by default those that models are fitted on."""
    return tuple(Dump(row.get("benchmark", name), int(row["processes"]), size_bytes(row),
                      float(row["checkpoint_time_s"]), float(row["restart_time_s"]),
                      row.get("note", "")) for name in names or FITTED
                 for row in rows_of(TABLES[name]))


def beyond_law():
    """Says how often the time of the law each published dump took, on the machine
    where it was measured."""
    rate = machines()[STAMPEDE].storage_bytes_per_s
    return [{"program": dump.program, "processes": dump.processes,
             "published_checkpoint_s": dump.checkpoint_s, "law_s": dump.size_bytes / rate,
             "times_the_law": dump.checkpoint_s * rate / dump.size_bytes} for dump in dumps()]


# ---- a model of dumps ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Costs:
    """Non-negative seconds for each term; P processes with S bytes in all.

    checkpoint = drain + coordination P + S / write rate + contention S P
                 (section IV-C: messages to one coordinator; Lustre)
    restart    = start + connect P^2 + S / read rate
                 (section IV-C: building connections decides)

    The form was chosen with all rows in view: each of P processes connects to the coordinator and
    gets the addresses of all others.
    """

    drain_s: float
    coordination_s: float  # of a process
    write_s: float  # of a byte
    contention_s: float  # of a byte and process
    start_s: float
    connect_s: float  # of a pair of processes
    read_s: float  # of a byte

    def checkpoint_s(self, processes, size_bytes):
        return (self.drain_s + self.coordination_s * processes + self.write_s * size_bytes
                + self.contention_s * size_bytes * processes)

    def restart_s(self, processes, size_bytes):
        return self.start_s + self.connect_s * processes**2 + self.read_s * size_bytes


def least_squares(terms, seconds, least_s=TINY_S):
    """Non-negative coefficients of the columns of `terms` with the least sum of squared relative
    errors. The errors of times below `least_s` are relative to that."""
    seconds = np.asarray(seconds, float)
    unit = np.maximum(seconds, least_s)
    scaled = np.asarray(terms, float) / unit[:, None]
    # The columns differ by many orders of magnitude.
    largest = np.where(scaled.max(axis=0) > 0, scaled.max(axis=0), 1.0)
    return optimize.nnls(scaled / largest, seconds / unit)[0] / largest


def fitted(rows):
    """Costs by these dumps alone."""
    checkpoint = least_squares([(1.0, row.processes, row.size_bytes, row.size_bytes * row.processes)
                                for row in rows],
                               [row.checkpoint_s for row in rows])
    restart = least_squares([(1.0, row.processes**2, row.size_bytes) for row in rows],
                            [row.restart_s for row in rows])
    return Costs(*map(float, (*checkpoint, *restart)))


def splits():
    """[(what it is fitted on, its rows, the rows that it is tested on)]; no row is in both."""
    all_ = dumps()
    return [(f"runs with up to {SMALL} processes, tested on larger ones",
             *_parted(all_, lambda row: row.processes <= SMALL)),
            ("LU.E and NAMD, tested on HPCG", *_parted(all_, lambda row: row.program != "HPCG")),
            ("HPCG, NAMD and LU.E, tested on the other NAS benchmarks", all_, dumps("NAS"))]


def _parted(rows, is_fitted):
    return (tuple(row for row in rows if is_fitted(row)),
            tuple(row for row in rows if not is_fitted(row)))


def errors(costs, rows):
    """(checkpoint, restart) in percent of the published time, a pair for each dump."""
    return np.array(
        [(100 * (costs.checkpoint_s(row.processes, row.size_bytes) / row.checkpoint_s - 1),
          100 * (costs.restart_s(row.processes, row.size_bytes) / row.restart_s - 1))
         for row in rows])


def rate_errors(known, rows):
    """Returns the same for the plainest model, size over the median rate of the `known` dumps."""
    write, read = (np.median([row.size_bytes / getattr(row, what) for row in known])
                   for what in ("checkpoint_s", "restart_s"))
    return np.array([(100 * (row.size_bytes / write / row.checkpoint_s - 1),
                      100 * (row.size_bytes / read / row.restart_s - 1))
                     for row in rows])


def rms(values):
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan


def tested():
    """Each split, and each row left out in turn: how far the model and the median rate are off the
    rows they were not fitted on, root mean square in percent."""
    rows = []
    for what, known, unknown in splits():
        rows.append(_test_row(what, len(known), errors(fitted(known), unknown),
                              rate_errors(known, unknown)))
    all_ = dumps()
    alone = [(all_[:i] + all_[i + 1:], all_[i:i + 1]) for i in range(len(all_))]
    rows.append(_test_row("all rows but one, tested on that, in turn", len(all_) - 1,
                          np.vstack([errors(fitted(known), one) for known, one in alone]),
                          np.vstack([rate_errors(known, one) for known, one in alone])))
    return rows


def _test_row(what, known, model, rate):
    return {"fitted_on": what, "rows_fitted": known, "rows_tested": len(model),
            "checkpoint_rms_pct": rms(model[:, 0]), "restart_rms_pct": rms(model[:, 1]),
            "checkpoint_worst_pct": float(model[np.argmax(np.abs(model[:, 0])), 0]),
            "restart_worst_pct": float(model[np.argmax(np.abs(model[:, 1])), 1]),
            "rate_checkpoint_rms_pct": rms(rate[:, 0]), "rate_restart_rms_pct": rms(rate[:, 1])}


# ---- launching, and running ----------------------------------------------------------------------


def launches():
    """Table IV without the tree of coordinators: (processes, seconds at most)."""
    return [(1024 * float(row["processes_k"]), float(row["launch_time_max_s"]))
            for row in rows_of("cao2016_table4_launch_time")
            if row["tree_of_coordinators"] == "0"]


def launch_costs(rows):
    """Seconds of a process and of a pair: launch = first P + second P^2 (section IV-C1: one
    coordinator accepts all connections)."""
    return least_squares([(processes, processes**2) for processes, _ in rows],
                         [seconds for _, seconds in rows])


def launch_errors():
    """In percent, each row of table IV by the others."""
    rows, found = launches(), []
    for i, (processes, seconds) in enumerate(rows):
        linear, square = launch_costs(rows[:i] + rows[i + 1:])
        found.append(100 * ((linear * processes + square * processes**2) / seconds - 1))
    return found


def overhead_errors():
    """Table V: the overhead of each row, in percentage points off the mean of the others."""
    values = np.array([float(row["overhead_pct"])
                       for row in rows_of("cao2016_table5_runtime_overhead_lu_e")])
    return (values.sum() - values) / (len(values) - 1) - values


# ---- ours, extrapolated --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Weak:
    """A measurement of here: a launched job with so many processes on each of so many emulated
    nodes."""

    nodes: int
    ranks: int  # processes of a node
    rank_mb: float  # data of a process, besides what it consists of anyway
    size_bytes: float  # of all images
    launch_s: float  # beyond the start without
    stop_s: float  # the job stands still, at level 1
    local_s: float  # checkpoint of level 1, until it holds
    global_s: float  # of level 4
    restart_s: float  # from the global directory, as if all nodes were lost

    @property
    def processes(self):
        return self.nodes * self.ranks


@dataclasses.dataclass(frozen=True)
class OwnCosts:
    """Of our checkpoints, by measurements of here, where emulated nodes share one machine, so that
    it does the work of all of them. A node that has a machine to itself counts as one of them:

    launch  = a n + b p            n: nodes of a machine
    stop    = a n + b p + c s      p: processes of a machine
    local   = a n + b p + c s      s: bytes of a machine
    global  = local + a + S / rate      S: bytes of all nodes
    restart = a n + b p + S / rate
    """

    launch: tuple
    stop: tuple
    local: tuple
    more_of_global: tuple
    restart: tuple

    def launch_s(self, nodes, processes):
        return float(np.dot(self.launch, (nodes, processes)))

    def stop_s(self, nodes, processes, here_bytes):
        return float(np.dot(self.stop, (nodes, processes, here_bytes)))

    def local_s(self, nodes, processes, here_bytes):
        return float(np.dot(self.local, (nodes, processes, here_bytes)))

    def global_s(self, nodes, processes, here_bytes, size_bytes, byte_s=None):
        """`byte_s`: seconds of a byte, in place of those of the storage here."""
        first, here_s = self.more_of_global
        return (self.local_s(nodes, processes, here_bytes) + first
                + (here_s if byte_s is None else byte_s) * size_bytes)

    def restart_s(self, nodes, processes, size_bytes, byte_s=None):
        of_node, of_process, here_s = self.restart
        return (of_node * nodes + of_process * processes
                + (here_s if byte_s is None else byte_s) * size_bytes)


def own_costs(rows):
    """Fits the costs to these measurements alone."""
    def fit(terms, seconds):
        # A difference of two times may be near 0, or below by scatter: it must not outweigh all
        # others.
        return tuple(map(float, least_squares(terms, seconds,
                                              max(float(np.median(np.abs(seconds))) / 10, TINY_S))))

    machine = [(row.nodes, row.processes, row.size_bytes) for row in rows]
    return OwnCosts(fit([terms[:2] for terms in machine], [row.launch_s for row in rows]),
                    fit(machine, [row.stop_s for row in rows]),
                    fit(machine, [row.local_s for row in rows]),
                    fit([(1.0, row.size_bytes) for row in rows],
                        [row.global_s - row.local_s for row in rows]),
                    fit(machine, [row.restart_s for row in rows]))


def own_errors(rows):
    """In percent, of each measurement by the others: {"local": [...], "global":
    [...], "restart": [...]}."""
    found = {"local": [], "global": [], "restart": []}
    for i, row in enumerate(rows):
        costs = own_costs(rows[:i] + rows[i + 1:])
        machine = (row.nodes, row.processes, row.size_bytes)
        for what, seconds in (("local", costs.local_s(*machine)),
                              ("global", costs.global_s(*machine, row.size_bytes)),
                              ("restart", costs.restart_s(*machine))):
            found[what].append(100 * (seconds / getattr(row, f"{what}_s") - 1))
    return found


UNKNOWN = "not known: the measurements here do not tell this cost"
# FDR InfiniBand with four lanes has 6.8 GB/s by its specification.
NETWORK_BYTES_PER_S = 4 * 14.0625e9 * 64 / 66 / 8
ASSUMPTIONS = (
    f"{LARGEST} processes, {PER_NODE} of a node, with 38 TB in images of equal size, as published.",
    "Each node takes as long as this machine does for one node: its memory has the rate of the "
    "memory here, and costs are linear far beyond the measured sizes and numbers of processes.",
    "The emulated nodes shared the processors of one machine, so that the time of all of them is "
    "that of their sum; nodes with machines of their own work at once.",
    "Agreeing and the connections between nodes cost a node what they cost here, where there are "
    "few. A step of agreement of 10,000 nodes takes under a millisecond (docs/scaling.md); "
    "connections of each process with more others than here are not counted.",
    f"Levels 2 and 3 send the data of a node once, at {NETWORK_BYTES_PER_S / GB:.1f} GB/s of a "
    "node, the nominal rate of FDR InfiniBand; computing parity takes no longer than sending. "
    "Neither is measured here.",
    "Storage as published, not that of here: once at the rate of the law for Stampede, once at the "
    "rate that its dumps of this size reached in the model fitted on the published rows.")


def extrapolated(costs, processes=LARGEST, size_bytes=LARGEST_BYTES, per_node=PER_NODE):
    """Computes what a checkpoint of each level, and a restart, would take with our costs. Returns
    rows of seconds, with None where they are not known, and the assumptions."""
    node_bytes = size_bytes * per_node / processes
    node = (1, per_node, node_bytes)
    local_s = costs.local_s(*node)
    sent_s = node_bytes / NETWORK_BYTES_PER_S
    law_s = 1 / machines()[STAMPEDE].storage_bytes_per_s
    theirs = fitted(dumps())
    write_s, read_s = theirs.write_s + theirs.contention_s * processes, theirs.read_s
    rows = [("launch", costs.launch_s(1, per_node), "constants measured here"),
            ("the job stands still", costs.stop_s(*node), "constants measured here"),
            ("level 1", local_s, "constants measured here"),
            ("level 2", local_s + sent_s, "level 1, and an assumed network"),
            ("level 3", local_s + sent_s, "level 1, and an assumed network")]
    for name, first, second in (("storage by the law", law_s, law_s),
                                ("storage as the published dumps used it", write_s, read_s)):
        rows += [(f"level 4, {name}", costs.global_s(*node, size_bytes, first),
                  "level 1, and assumed storage"),
                 (f"restart, {name}", costs.restart_s(1, per_node, size_bytes, second),
                  "constants measured here, and assumed storage")]
    told = []
    for what, seconds, why in rows:
        terms = costs.stop if "stands still" in what else costs.local if "level" in what else None
        # A cost of bytes that the fit has made 0 would stay 0 for any number of bytes.
        is_known = seconds > 0 and (terms is None or terms[-1] > 0)
        told.append({"what": what, "extrapolated_s": seconds if is_known else None,
                     "rests_on": why if is_known else UNKNOWN})
    return told
