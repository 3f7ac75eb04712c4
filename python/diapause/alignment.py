"""Finds for `diapause power align` by how much the clock of an external meter differs. It
correlates the meter's power with a trace of the same time."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np

from diapause import records
from diapause.files import Trouble, opened

TIMES = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6}
WATTS = {"w": 1.0, "mw": 1e-3, "uw": 1e-6}
JOULES = {"j": 1.0, "mj": 1e-3, "uj": 1e-6}
LEAST_LINES = 20  # that must have a counterpart in the trace
LEAST_CORRELATION = 0.5
LEAST_DISTANCE = 0.1  # by which the best offset must be better than all but those of the same peak
PARTS = 4  # of the time, whose offsets tell how sure it is
STEPS = 4  # offsets tried within the time between two lines
MOST_STEPS = 1 << 23  # of all that are tried; with more, their sums need gigabytes
ROUNDING = 1e-9  # share of the whole variance; less may be an error of rounding
T_OF_PARTS = 3.18  # Student's t for 95 % with three degrees of freedom


@dataclasses.dataclass(frozen=True)
class Meter:
    """A rail: mean powers of the time from one line to the next."""

    name: str
    ends_s: np.ndarray  # of the stretches, ascending, by its clock
    watts: np.ndarray

    @property
    def apart_s(self):
        return float(np.median(np.diff(self.ends_s)))

    def where(self, chosen):
        return Meter(self.name, self.ends_s[chosen], self.watts[chosen])

    def not_finer(self, period_s):
        """With one line for all that end within a period, if these are several."""
        if len(self.ends_s) < 2 or self.apart_s > period_s / 2:
            return self
        first = np.flatnonzero(np.diff(np.floor(self.ends_s / period_s), prepend=-np.inf))
        after = np.append(first[1:], len(self.ends_s))
        return Meter(self.name, self.ends_s[after - 1],
                     np.add.reduceat(self.watts, first) / (after - first))


def _cells(path):
    """The names of the columns, and the cells of each line."""
    try:
        with opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", "replace",
                                                    newline="") as text:
            reader = csv.reader(text)
            head, *lines = list(reader) or [[]]
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from error
    except csv.Error as error:
        raise Trouble(f"{path}:{reader.line_num}: no CSV: {error}") from error
    return [name.strip() for name in head], lines


def _points(lines, column):
    """(time, value) of each line that has both, by time; lines of the same
    time stay in their order."""
    points = []
    for cells in lines:
        try:
            point = (float(cells[0]), float(cells[column]))
        except (ValueError, IndexError):
            continue  # a missing reading
        if all(abs(value) <= records.LARGEST for value in point):  # False for NaN
            points.append(point)
    return np.array(sorted(points, key=lambda point: point[0]), float).reshape(-1, 2)


def _of_power(name, points, watts):
    """Of lines of the same time the mean counts."""
    times_s, first, count = np.unique(points[:, 0], return_index=True, return_counts=True)
    return Meter(name, times_s, watts * np.add.reduceat(points[:, 1], first) / count)


def _of_energy(name, points, joules):
    """Of lines of the same time the last one counts. Nothing is told by a stretch in which a
    counter was reset, or that is a hole."""
    times_s, found = np.unique(points[::-1, 0], return_index=True)
    seconds, more = np.diff(times_s), joules * np.diff(points[::-1, 1][found])
    return Meter(name, times_s[1:], more / seconds).where(
        (more >= 0) & (seconds < 1.5 * np.median(seconds)))


def read_meter(path, column=None):
    """One column of the CSV file of an external meter; without a name the first one
    that has power or energy."""
    names, lines = _cells(path)
    if not names or names[0] not in TIMES:
        raise Trouble(f"{path}: the first column must be one of {', '.join(TIMES)}")
    rails = {name: name.rpartition("_")[2] for name in names[1:]}
    wanted = column or next(
        (name for name, unit in rails.items() if unit in WATTS or unit in JOULES), None)
    if wanted not in rails or rails[wanted] not in {**WATTS, **JOULES}:
        raise Trouble(f"{path}: has no column {wanted or 'of power or energy'}; there are "
                      f"{', '.join(rails) or 'none'}")
    points = _points(lines, names.index(wanted, 1))
    points[:, 0] *= TIMES[names[0]]
    if (several := len(np.unique(points[:, 0]))) < LEAST_LINES:
        raise Trouble(
            f"{path}: has readings of {wanted} at {several} times, and {LEAST_LINES} are needed")
    unit = rails[wanted]
    if unit in JOULES:
        return _of_energy(wanted, points, JOULES[unit])
    return _of_power(wanted, points, WATTS[unit])


def _sums_at_lags(ours, theirs):
    """Of ours[i + lag] * theirs[i] for all lags from -(len(theirs) - 1) to len(ours) - 1: an array
    for each of ours and theirs."""
    length = ours.shape[1] + theirs.shape[1] - 1
    size = 1 << (length - 1).bit_length()
    ours, theirs = np.fft.rfft(ours, size), np.fft.rfft(theirs[:, ::-1], size)
    return lambda i, j: np.fft.irfft(ours[i] * theirs[j], size)[:length]


def _correlations(meter, times_s, joules, long_s):
    """Of the meter's power with that of the trace over stretches so long: the offsets at which the
    two overlap, and for each the correlation, or NaN where too few lines have a counterpart. The
    meter's times are rounded to the steps of the offsets."""
    step_s = long_s / STEPS
    since_s = times_s - times_s[0]  # of 1970 a step would have few digits
    grid = long_s + step_s * np.arange(1 + (since_s[-1] - long_s) // step_s)
    ours = (np.interp(grid, since_s, joules) - np.interp(grid - long_s, since_s, joules)) / long_s
    ours -= ours.mean()
    theirs = meter.watts - meter.watts.mean()
    places = np.round((meter.ends_s - meter.ends_s[0]) / step_s).astype(int)
    in_places = np.array([np.bincount(places, weights) for weights in (None, theirs, theirs ** 2)])
    of = _sums_at_lags(np.array([np.ones(len(grid)), ours, ours ** 2]), in_places)
    count = np.round(of(0, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, their_mean = of(1, 0) / count, of(0, 1) / count
        variance, their_variance = of(2, 0) / count - mean ** 2, of(0, 2) / count - their_mean ** 2
        found = (of(1, 1) / count - mean * their_mean) / np.sqrt(variance * their_variance)
    varies = ((variance > ROUNDING * np.mean(ours ** 2))
              & (their_variance > ROUNDING * np.mean(theirs ** 2)))
    found[~varies | (count < max(LEAST_LINES, len(theirs) / 4))] = np.nan
    lags = np.arange(1 - in_places.shape[1], len(grid))
    return times_s[0] + long_s - meter.ends_s[0] + lags * step_s, found


def _peak(correlations):
    """Where the highest one and those around it are that are nearly as high."""
    at = int(np.nanargmax(correlations))
    lower = np.flatnonzero(~(correlations >= correlations[at] - LEAST_DISTANCE))  # or NaN
    first, last = lower[lower < at], lower[lower > at]
    return slice(int(first[-1]) + 1 if len(first) else 0,
                 int(last[0]) if len(last) else len(correlations))


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


def _comparable(meter, times_s, within_s):
    """The lines that can have a counterpart in the trace. Trouble if they are
    too few, or too many."""
    meter = meter.where(
        (meter.ends_s + within_s >= times_s[0]) & (meter.ends_s - within_s <= times_s[-1]))
    # What is shorter than the trace's period cannot be compared with it.
    meter = meter.not_finer(float(np.median(np.diff(times_s))))
    if len(meter.ends_s) < LEAST_LINES or times_s[-1] - times_s[0] < meter.apart_s:
        raise _apart(meter, within_s)
    steps = (times_s[-1] - times_s[0] + meter.ends_s[-1] - meter.ends_s[0]) / meter.apart_s * STEPS
    if steps > MOST_STEPS:
        raise Trouble(f"{meter.name}: trace and meter are too long for lines that are "
                      f"{meter.apart_s:g} s apart; give an hour of them")
    return meter


def _apart(meter, within_s):
    return Trouble(f"{meter.name}: within {within_s:g} s of each other, meter and trace have no "
                   f"{LEAST_LINES} lines of the same time; record a trace while the meter runs, or "
                   "give --within")


def _tops_of_parts(meter, times_s, joules, near):
    """Which of the near offsets each part of the meter's time would have."""
    tops = []
    for ends, watts in zip(np.array_split(meter.ends_s, PARTS), np.array_split(meter.watts, PARTS)):
        beside = slice(*np.searchsorted(times_s,
                                        (ends[0] + near[0] - 2 * meter.apart_s,
                                         ends[-1] + near[-1] + 2 * meter.apart_s)))
        times = times_s[beside]
        if len(times) and times[-1] - times[0] > meter.apart_s:
            offsets, correlations = _correlations(Meter(meter.name, ends, watts), times,
                                                  joules[beside], meter.apart_s)
            is_near = (offsets >= near[0]) & (offsets <= near[-1])
            if not np.isnan(correlations[is_near]).all():
                tops.append(_top(offsets[is_near], correlations[is_near]))
    return tops


def align(meter, times_s, joules, within_s):
    """`joules`: of the trace since its beginning, at `times_s` by this machine's clock. Trouble if
    the offset cannot be told."""
    meter = _comparable(meter, times_s, within_s)
    offsets, correlations = _correlations(meter, times_s, joules, meter.apart_s)
    correlations[np.abs(offsets) > within_s] = np.nan
    if np.isnan(correlations).all():
        raise _apart(meter, within_s)
    peak = _peak(correlations)
    highest = float(np.nanmax(correlations))
    others = np.concatenate([correlations[:peak.start], correlations[peak.stop:]])
    second = float(np.nanmax(others)) if not np.isnan(others).all() else highest
    if highest < LEAST_CORRELATION or highest - second < LEAST_DISTANCE:
        raise Trouble(f"{meter.name}: the offset cannot be told: the best correlation is "
                      f"{highest:.2f}, and the next best {second:.2f}; make the machine busy and "
                      "idle at irregular times while both record")
    tops = _tops_of_parts(meter, times_s, joules, offsets[peak])
    scatter_s = (T_OF_PARTS * np.std(tops, ddof=1) / len(tops) ** 0.5 if len(tops) > 1
                 else 2 * meter.apart_s)
    # Whether the meter shows the mean of the time before or a moment nobody knows.
    return Alignment(_top(offsets, correlations), float(scatter_s) + meter.apart_s / 2, highest)


def run(meter_file, trace_file, column=None, within_s=600.0):
    """Prints the setting."""
    trace = records.read_trace(trace_file)
    meter = read_meter(meter_file, column)
    if not trace.total_domains or len(trace.seconds) < 2:
        raise Trouble(f"{trace.path}: has no total, or no time")
    times_s = trace.started_unix_s + np.array(trace.seconds)
    joules = np.array(trace.joules)[:, trace.total_domains].sum(axis=1)
    found = align(meter, times_s, joules, within_s)
    print(f"energy.stream_offset_s = {found.offset_s:.2f}   # +- {found.off_s:.2f} s; correlation "
          f"of {meter.name} with the trace: {found.correlation:.2f}")
