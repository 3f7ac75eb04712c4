"""`diapause power align`: by how much the clock of an external meter differs, by correlation of its power with a trace of the same time."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np

from diapause import records
from diapause.files import Trouble

TIMES = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6}
WATTS = {"w": 1.0, "mw": 1e-3, "uw": 1e-6}
JOULES = {"j": 1.0, "mj": 1e-3, "uj": 1e-6}
LEAST_LINES = 20  # that must have a counterpart in the trace
LEAST_CORRELATION = 0.5
LEAST_DISTANCE = 0.1  # by which the best offset must be better than all that are not next to it
PARTS = 4  # of the time, whose offsets tell how sure it is
STEPS = 4  # offsets tried within the time between two lines
T_OF_PARTS = 3.18  # Student's t for 95 % with three degrees of freedom


@dataclasses.dataclass(frozen=True)
class Meter:
    """A rail: mean power from one line to the next."""

    name: str
    ends_s: np.ndarray  # of the stretches, by its clock
    watts: np.ndarray

    @property
    def apart_s(self):
        return float(np.median(np.diff(self.ends_s)))


def read_meter(path, column=None):
    """One column of the CSV file of an external meter; without a name the first one that has power or energy."""
    try:
        with open(path, newline="") as file:
            head, *lines = list(csv.reader(file)) or [[]]
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from error
    names = [name.strip() for name in head]
    if not names or names[0] not in TIMES:
        raise Trouble(f"{path}: the first column must be one of {', '.join(TIMES)}")
    rails = {name: name.rpartition("_")[2] for name in names[1:]}
    wanted = column or next(
        (name for name, unit in rails.items() if unit in WATTS or unit in JOULES), None)
    if wanted not in rails or rails[wanted] not in {**WATTS, **JOULES}:
        raise Trouble(f"{path}: has no column {wanted or 'of power or energy'}; there are {', '.join(rails) or 'none'}")
    rows = []
    for cells in lines:
        try:
            rows.append((float(cells[0]) * TIMES[names[0]], float(cells[names.index(wanted)])))
        except (ValueError, IndexError):
            continue  # a missing reading
    points = np.array(sorted(set(rows)), float).reshape(-1, 2)
    if len(points) < LEAST_LINES:
        raise Trouble(
            f"{path}: has {len(points)} readings of {wanted}, and {LEAST_LINES} are needed")
    unit = rails[wanted]
    if unit in JOULES:
        return Meter(wanted, points[1:, 0],
                     JOULES[unit] * np.diff(points[:, 1]) / np.diff(points[:, 0]))
    return Meter(wanted, points[:, 0], WATTS[unit] * points[:, 1])


def _correlations(meter, times_s, joules, offsets):
    """Of the meter's power with that of the trace over the same stretches, for each offset; NaN where too few lines have one."""
    found = np.full(len(offsets), np.nan)
    apart_s = meter.apart_s
    for i, offset in enumerate(offsets):
        ends = meter.ends_s + offset
        inside = (ends - apart_s >= times_s[0]) & (ends <= times_s[-1])
        if inside.sum() < max(LEAST_LINES, len(ends) / 4):
            continue
        ours = (np.interp(ends[inside], times_s, joules) - np.interp(ends[inside] - apart_s, times_s, joules)) / apart_s
        theirs = meter.watts[inside]
        if ours.std() > 0 and theirs.std() > 0:
            found[i] = np.corrcoef(ours, theirs)[0, 1]
    return found


def _top(offsets, correlations):
    """The offset of the highest correlation, by a parabola through it and its neighbours."""
    at = int(np.nanargmax(correlations))
    if not 0 < at < len(offsets) - 1 or np.isnan(correlations[at - 1:at + 2]).any():
        return float(offsets[at])
    before, top, after = correlations[at - 1:at + 2]
    bend = before - 2 * top + after
    return float(offsets[at]
                 + (0.5 * (before - after) / bend if bend < 0 else 0.0) * (offsets[1] - offsets[0]))


@dataclasses.dataclass(frozen=True)
class Alignment:
    offset_s: float  # to be added to the meter's times
    off_s: float  # either way
    correlation: float


def align(meter, times_s, joules, within_s):
    """`joules`: of the trace since its beginning, at `times_s` by this machine's clock. Trouble if the offset cannot be told."""
    step_s = meter.apart_s / STEPS
    offsets = np.arange(-within_s, within_s + step_s / 2, step_s)
    correlations = _correlations(meter, times_s, joules, offsets)
    if np.isnan(correlations).all():
        raise Trouble(f"{meter.name}: within {within_s:g} s of each other, meter and trace have no {LEAST_LINES} lines of the same time; "
                      "record a trace while the meter runs, or give --within")
    best = _top(offsets, correlations)
    highest = float(np.nanmax(correlations))
    others = correlations[np.abs(offsets - best) > 2 * meter.apart_s]
    second = float(np.nanmax(others)) if len(others) and not np.isnan(others).all() else -1.0
    if highest < LEAST_CORRELATION or highest - second < LEAST_DISTANCE:
        raise Trouble(f"{meter.name}: the offset cannot be told: the best correlation is {highest:.2f}, and the next best {second:.2f}; "
                      "make the machine busy and idle at irregular times while both record")
    near = np.arange(best - 2 * meter.apart_s, best + 2 * meter.apart_s, step_s)
    parts = []
    for ends, watts in zip(np.array_split(meter.ends_s, PARTS), np.array_split(meter.watts, PARTS)):
        of_part = _correlations(Meter(meter.name, ends, watts), times_s, joules, near)
        if not np.isnan(of_part).all():
            parts.append(_top(near, of_part))
    scatter_s = T_OF_PARTS * np.std(parts, ddof=1) / len(parts) ** 0.5 if len(parts) > 1 else 2 * meter.apart_s
    # Whether the meter shows the mean of the time before or a moment nobody knows.
    return Alignment(best, float(scatter_s) + meter.apart_s / 2, highest)


def run(meter_file, trace_file, column=None, within_s=600.0):
    """Prints the setting."""
    trace = records.read_trace(trace_file)
    meter = read_meter(meter_file, column)
    if not trace.total_domains or len(trace.seconds) < 2:
        raise Trouble(f"{trace.path}: has no total, or no time")
    times_s = trace.started_unix_s + np.array(trace.seconds)
    joules = np.array(trace.joules)[:, trace.total_domains].sum(axis=1)
    found = align(meter, times_s, joules, within_s)
    print(f"energy.stream_offset_s = {found.offset_s:.2f}   # +- {found.off_s:.2f} s; correlation of {meter.name} with the trace: "
          f"{found.correlation:.2f}")
