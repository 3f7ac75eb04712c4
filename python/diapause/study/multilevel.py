"""The tables of the published study of multilevel checkpoints; see
published/README.md for the source."""

from __future__ import annotations

import csv
import dataclasses
import functools

from diapause.study.published import FOLDER

MACHINES = {"xc40": "Cray XC40", "bgq": "BG/Q", "haswell": "Haswell", "kaveri": "Kaveri"}
# Which table has what of which application on which machine.
TABLES = {("heat", "runs"): {"xc40": "05_hdc_xc40", "bgq": "09_hdc_bgq",
                             "haswell": "13_hdc_haswell", "kaveri": "17_hdc_kaveri"},
          ("heat", "flips"): {"xc40": "07_hdc_xc40_e1", "bgq": "11_hdc_bgq_e1",
                              "haswell": "15_hdc_haswell_e1", "kaveri": "19_hdc_kaveri_e1"},
          ("heat", "bits"): {"xc40": "08_hdc_xc40_bitpos", "bgq": "12_hdc_bgq_bitpos",
                             "haswell": "16_hdc_haswell_bitpos", "kaveri": "20_hdc_kaveri_bitpos"},
          ("stream", "runs"): {"xc40": "21_stream_xc40", "bgq": "23_stream_bgq",
                               "haswell": "25_stream_haswell", "kaveri": "27_stream_kaveri"}}
MESSAGE_TABLES = {"xc40": "02_imb_overhead_xc40", "bgq": "03_imb_overhead_bgq",
                  "haswell": "04_imb_overhead_haswell"}
ORIGINAL = "Original"
FLIPS_EVERY_MINUTES = 1 / 6  # section 4: an injection every 10 s


@dataclasses.dataclass(frozen=True)
class Row:
    """One configuration on one machine: percent of the baseline, which is the row that has
    absolute values instead."""

    configuration: str
    runtime_s: float | None
    runtime_pct: float | None
    node_power_pct: float | None
    energy_pct: float | None


def _number(text):
    return float(text) if text else None


@functools.cache
def table(application, kind, machine):
    with open(FOLDER / f"fti2018_table{TABLES[application, kind][machine]}.csv",
              newline="") as file:
        return tuple(Row(row["configuration"],
                         *(_number(row[key]) for key in ("runtime_s", "runtime_pct",
                                                         "node_power_pct", "energy_pct")))
                     for row in csv.DictReader(file))


def tables_of(application):
    return [kind for name, kind in TABLES if name == application]


def configurations(application, kind):
    """Returns the configurations of all machines, the baseline first."""
    return list(dict.fromkeys(row.configuration for machine in MACHINES
                              for row in table(application, kind, machine)))


def baseline(application, kind):
    (first,) = {row.configuration for row in table(application, kind, "xc40")
                if row.runtime_s is not None}
    return first


def row_of(application, kind, machine, configuration):
    """None if that machine was not measured with it."""
    return next((row for row in table(application, kind, machine)
                 if row.configuration == configuration), None)


def minutes(application):
    """Returns how many minutes of ckp() a run without checkpoints on the Cray XC40 has."""
    return row_of(application, "runs", "xc40", ORIGINAL).runtime_s / 60


def message_table(machine):
    """{ranks: {operation: percent by Equation 1}}."""
    with open(FOLDER / f"fti2018_table{MESSAGE_TABLES[machine]}.csv", newline="") as file:
        return {int(row["cores"]): {
            key.removeprefix("mpi_").removesuffix("_pct").capitalize(): _number(value)
            for key, value in row.items() if key != "cores"} for row in csv.DictReader(file)}
