"""The numbers of the published study of SZ and ZFP under clocks and error bounds; see
published/README.md for the source."""

from __future__ import annotations

import csv
import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).parent / "published"
# Section 2.5.1.3, Eq. 2.3: the clock of each phase, as a ratio of the highest; and by how much that
# lengthened it.
RULE = {"compress": 0.875, "write": 0.85}
LONGER = {"compress": 1.075, "write": 1.093}
SAVED_POWER = {"compress": 0.194, "write": 0.112}  # section 2.5.1.1, as printed
SAVED_ENERGY = 0.13  # section 2.6.2: compressing and writing 512 GB, mean over the bounds
SAVED_J, DUMPED_GB = 6500.0, 512.0  # the same
STEP_MHZ = 50  # distance of the clocks that it measured at
CHIPS = {"m510-broadwell": "Broadwell", "c220g5-skylake": "Skylake"}


@dataclasses.dataclass(frozen=True)
class Curve:
    """P(f) = a f^b + c, f in GHz, scaled to the power at the highest clock; and how
    well it fitted there."""

    step: str  # "compress" or "write"
    data: str  # a processor, a codec, or "Total"
    a: float
    b: float
    c: float
    sse: float
    rmse: float
    r2: float

    def power(self, clock_ghz):
        return self.a * clock_ghz**self.b + self.c


def _rows(name):
    with open(FOLDER / name, newline="") as file:
        return list(csv.DictReader(file))


def curves():
    """Tables 2.4 and 2.5."""
    files = {"compress": "wilkins2023_table2_4_compress_fits.csv",
             "write": "wilkins2023_table2_5_datawrite_fits.csv"}
    return [Curve(step, row["model_data"],
                  *(float(row[key]) for key in ("a", "b", "c", "sse", "rmse", "r2")))
            for step, name in files.items() for row in _rows(name)]


def clocks_ghz():
    """{processor: (lowest, highest)}, table 2.2."""
    return {row["series"]: (float(row["cpu_min_clock_ghz"]), float(row["cpu_base_clock_ghz"]))
            for row in _rows("wilkins2023_table2_2_hardware.csv")}


def curve_of(machine, step):
    """(the curve of that machine for the step, its highest clock in GHz)."""
    chip = CHIPS[machine]
    (found,) = [curve for curve in curves() if (curve.step, curve.data) == (step, chip)]
    return found, clocks_ghz()[chip][1]


def phi(step):
    """The share of the time that scales with the clock, from how much longer the step took at
    the clock of the rule."""
    return (LONGER[step] - 1) / (1 / RULE[step] - 1)
