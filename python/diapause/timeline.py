"""Power over time, and phases beside it, on one time axis: that of the job, without the
time between its starts."""

from __future__ import annotations

import bisect
import dataclasses

import numpy as np

MOST_STEPS = 1500  # steps of a curve; more than a picture has pixels
LEAST_SPAN = 1 / 700  # of a lane; a narrower span may fall between two pixels


class Axis:
    """Wall clock to the job's own time: seconds in which it ran, one start after the other."""

    def __init__(self, spans):
        """`spans`: (from, to) of each start, on the wall clock."""
        self.begins, self.ends, self.offsets = [], [], []
        length = 0.0
        for begin, end in sorted(spans):
            if self.ends and begin <= self.ends[-1]:  # clocks that were set meanwhile
                length += max(0.0, end - self.ends[-1])
                self.ends[-1] = max(end, self.ends[-1])
                continue
            self.begins.append(begin)
            self.ends.append(end)
            self.offsets.append(length)
            length += end - begin
        self.length = length

    def at(self, unix_s):
        """Moments in which it did not run are at the end of the start before."""
        place = max(0, bisect.bisect_right(self.begins, unix_s) - 1)
        inside = min(max(unix_s, self.begins[place]), self.ends[place]) - self.begins[place]
        return self.offsets[place] + inside

    def pauses(self):
        """(place on the axis, seconds that it did not run)."""
        return [(self.offsets[i], self.begins[i] - self.ends[i - 1])
                for i in range(1, len(self.begins))]


def axis_of(ledger):
    spans = {}
    for line in ledger.energy:
        begin, end = line.end_unix_s - line.seconds, line.end_unix_s
        known = spans.get(line.incarnation, (begin, end))
        spans[line.incarnation] = (min(begin, known[0]), max(end, known[1]))
    return Axis(spans.values())


@dataclasses.dataclass
class Curve:
    """Mean power between one edge and the next; NaN where nobody knows."""

    domain: str
    edges: np.ndarray  # seconds on the axis
    watts: np.ndarray


def _curve(domain, pieces, axis):
    """`pieces`: (from, to, joules, seconds that they stand for), rising."""
    if len(pieces) > MOST_STEPS:
        pieces = _thinned(np.array(pieces))
    edges, watts = [], []
    for begin, end, joules, covered_s in pieces:
        if not edges:
            edges.append(begin)
        elif begin > edges[-1] + axis.length / MOST_STEPS:
            # This is a hole; a smaller distance is the jitter of the clock.
            edges.append(begin)
            watts.append(np.nan)
        if end > edges[-1]:
            edges.append(end)
            watts.append(joules / covered_s if covered_s > 0 else np.nan)
    return Curve(domain, np.array(edges), np.array(watts))


def _thinned(pieces):
    """Neighbours put together, so that no energy is lost; a gap of the sources stays in the
    mean of its neighbours."""
    groups = np.array_split(pieces, MOST_STEPS)
    return [(group[0, 0], group[-1, 1], group[:, 2].sum(), group[:, 3].sum()) for group in groups]


def curves_of_ledger(ledger, axis):
    """For each domain; each energy line is a step. The total comes first."""
    pieces = {}
    for line in ledger.energy:
        begin, end = axis.at(line.end_unix_s - line.seconds), axis.at(line.end_unix_s)
        for domain, joules in line.whole.by_domain.items():
            pieces.setdefault(domain, []).append((begin, end, joules, line.seconds - line.gap_s))
    names = sorted(pieces, key=lambda name: (name != "total", name))
    return [_curve(name, sorted(pieces[name]), axis) for name in names]


def curves_of_trace(trace, axis):
    """For each domain of the node, and their total: what was recorded while the job ran."""
    seconds = trace.started_unix_s + np.array(trace.seconds)
    inside = ((seconds >= axis.begins[0]) & (seconds <= axis.ends[-1]) if axis.begins
              else np.zeros(len(seconds), bool))
    if inside.sum() < 2:
        return []
    places = np.array([axis.at(one) for one in seconds[inside]])
    joules = np.diff(np.array(trace.joules)[inside], axis=0)
    covered = np.diff(np.array(trace.covered_s)[inside], axis=0)
    columns = {}
    for index, source in enumerate(trace.domains):
        columns.setdefault(source.domain, []).append(index)
    parts = {"total": trace.total_domains} if trace.total_domains else {}
    curves = []
    for name, indexes in (parts | columns).items():
        used, known_s = joules[:, indexes].sum(axis=1), covered[:, indexes].min(axis=1)
        curves.append(_curve(name, list(zip(places[:-1], places[1:], used, known_s)), axis))
    return curves


def lanes(phases, axis):
    """For each name of a phase, its spans on the axis as (begin, length); what would
    touch in a picture is one."""
    least = axis.length * LEAST_SPAN
    spans = {}
    for phase in phases:
        if phase.start_unix_s is not None:
            begin, end = axis.at(phase.start_unix_s), axis.at(phase.start_unix_s + phase.seconds)
            spans.setdefault(phase.name, []).append((begin, max(end, begin + least)))
    return {name: _joined(sorted(found), least) for name, found in spans.items()}


def _joined(spans, least):
    joined = []
    for begin, end in spans:
        if joined and begin <= joined[-1][1] + least / 2:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([begin, end])
    return [(begin, end - begin) for begin, end in joined]
