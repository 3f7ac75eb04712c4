"""The rows of a sweep put together: power over the clock, fits, energy with and
without the rule, tables."""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import io
import math

import numpy as np
from scipy import stats

from diapause import amounts
from diapause.study import fit, published, sweep
from diapause.study.sweep import Row

STEPS = ("compress", "write")  # of a checkpoint
EQUAL_PSNR_DB = (60.0, 80.0, 100.0, 120.0)


ROW_COLUMNS = tuple(field.name for field in dataclasses.fields(Row))


def csv_of(columns, rows):
    """The bytes of a CSV file; what is not known, None, is left empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return file.getvalue().encode()


def measurements(rows):
    """Tidy: a row for each step, with the columns of Row, and of its joules all bounds together."""
    return csv_of((*ROW_COLUMNS, "uncertainty_j", "joules_bound"), (
        (*dataclasses.astuple(row), row.energy and row.energy.uncertainty_j,
         amounts.bound_word(row.energy)) for row in rows))


def mean(values):
    """Geometric: of ratios and times of unlike fields."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def label_of(codec, bound):
    return f"{codec} {bound:.0e}" if bound else codec


@dataclasses.dataclass(frozen=True)
class Point:
    """A step of one field, codec and bound at a clock, over the same at the full clock."""

    step: str
    codec: str
    asked: float  # ratio of the clock
    clock: float  # the one obtained
    runtime: float
    power: float | None  # None: nobody measured it


class Study:
    """All rows, with the machine whose published curves stand in where no power over
    the clock is measured."""

    def __init__(self, rows, machine, dumps=()):
        self.rows = rows
        self.dumps = dumps
        self.machine = machine
        # Rows by clock asked, for each field, codec, bound and step.
        self._series = collections.defaultdict(dict)
        for row in rows:
            self._series[row.field, row.codec, row.bound, row.step][row.clock_asked] = row
        # The fits are asked for again for every codec and bound.
        self.power_fit = functools.cache(self.power_fit)
        self.runtime_fit = functools.cache(self.runtime_fit)

    @property
    def codecs(self):
        return list(dict.fromkeys(row.codec for row in self.rows))

    @property
    def bounds(self):
        """Returns the bounds of the lossy codecs, the widest first."""
        return sorted({row.bound for row in self.rows if row.bound}, reverse=True)

    @property
    def has_clocks(self):
        return any(row.clock_by != "none" for row in self.rows)

    @property
    def measures_power(self):
        """Returns whether power over the clock is measured: by a counter, at clocks
        that are not emulated."""
        return any(point.power is not None for point in self.points())

    def points(self):
        for (_, codec, _, step), clocks in self._series.items():
            full = clocks.get(1.0)
            if full is None or full.clock_by == "none" or step not in STEPS:
                continue
            for row in clocks.values():
                counts = (row.energy_kind == full.energy_kind == "measured"
                          and not row.clock_is_emulated)
                known = counts and row.joules and full.joules
                power = row.joules / row.seconds / (full.joules / full.seconds) if known else None
                yield Point(step, codec, row.clock_asked, row.clock_obtained,
                            row.seconds / full.seconds, power)

    # ---- fits ------------------------------------------------------------------------------------

    def power_fit(self, step):
        """Over the ratio of the clock; None where power was not measured at four clocks."""
        known = [(point.clock, point.power)
                 for point in self.points() if point.step == step and point.power is not None]
        return _or_none(fit.fit_power, known)

    def runtime_fit(self, step):
        """Fits the medians at each clock, because other work on the machine makes a
        few times much longer."""
        clocks = collections.defaultdict(list)
        for point in self.points():
            if point.step == step:
                clocks[point.asked].append((point.clock, point.runtime))
        return _or_none(fit.fit_runtime, [np.median(found, axis=0) for found in clocks.values()])

    def power_at(self, step, clock):
        """Scaled, and how it is known: our own fit, or the published curve of the machine."""
        found = self.power_fit(step)
        if found:
            return float(found.power(clock) / found.power(1.0)), "measured"
        curve, top = published.curve_of(self.machine, step)
        return curve.power(clock * top) / curve.power(top), "modelled"

    def longer_at(self, step, clock):
        """Run time over that at the full clock, and how it is known: our own fit, or the
        published share of the clock."""
        found = self.runtime_fit(step)
        if found:
            emulated = any(row.clock_is_emulated for row in self.rows)
            return float(found.runtime(clock)), "emulated" if emulated else "measured"
        return published.phi(step) / clock + 1 - published.phi(step), "modelled"

    # ---- energy ----------------------------------------------------------------------------------

    def _at_full_clock(self, codec, bound, step):
        """A row for each field."""
        return [clocks[1.0] for (_, *method), clocks in self._series.items()
                if method == [codec, bound, step] and 1.0 in clocks]

    def seconds_per_gb(self, codec, bound, step):
        """At the full clock, for 10^9 bytes of the fields; the mean over them.
        None if it was not done."""
        found = self._at_full_clock(codec, bound, step)
        return mean(row.seconds / row.raw_bytes * 1e9 for row in found) if found else None

    def joules_per_gb(self, codec, bound, step):
        """Returns the same in measured joules, or None unless all of them are measured."""
        found = self._at_full_clock(codec, bound, step)
        if not found or any(row.energy_kind != "measured" or not row.joules for row in found):
            return None
        return mean(row.joules / row.raw_bytes * 1e9 for row in found)

    def energy_off_per_gb(self, codec, bound):
        """How far the joules of both steps together may be off, all parts added; None without a
        bound."""
        found = [row for step in STEPS for row in self._at_full_clock(codec, bound, step)]
        offs = [row.energy and row.energy.uncertainty_j for row in found]
        if not found or None in offs:
            return None
        steps = len(STEPS)
        return steps * sum(off / row.raw_bytes * 1e9 for off, row in zip(offs, found)) / len(found)

    def energy(self, codec, bound, step, with_rule):
        """For a GB, in joules where all of them are measured, else in seconds at full power.
        None if it was not done."""
        base = (self.joules_per_gb(codec, bound, step) if self.in_joules
                else self.seconds_per_gb(codec, bound, step))
        if base is None or not with_rule:
            return base
        clock = published.RULE[step]
        return base * self.power_at(step, clock)[0] * self.longer_at(step, clock)[0]

    def seconds_off(self, codec, bound, step):
        """Half the 95 % interval of the mean of seconds_per_gb, over it, as passes scatter; None
        where a step was done once."""
        found = self._at_full_clock(codec, bound, step)
        if not found or any(row.passes < 2 for row in found):
            return None
        squares = [(stats.t.ppf(0.975, row.passes - 1) * row.seconds_scatter / row.seconds)**2
                   / row.passes for row in found]
        return math.sqrt(sum(squares)) / len(found)

    def at_equal_error(self):
        """Rows of codec, measure (`psnr_db` or `greatest_error`), its value and the ratio there:
        the mean over the fields of which all lossy codecs have that value between two of their
        bounds, by a line through the logarithms of the two ratios."""
        curves = collections.defaultdict(dict)  # by measure and field: by codec: points
        for (field, codec, bound, step), clocks in self._series.items():
            row = clocks.get(1.0)
            if (step != "compress" or not bound or row is None or row.psnr_db is None
                or row.lossless_blocks):
                continue
            for measure, value in (("psnr_db", row.psnr_db),
                                   ("greatest_error", math.log10(row.greatest_error))):
                curves[measure, field].setdefault(codec, []).append((value, math.log(row.ratio)))
        rows = []
        for measure, values in (("psnr_db", EQUAL_PSNR_DB),
                                ("greatest_error", [math.log10(one) for one in sweep.BOUNDS])):
            for value in values:
                found = collections.defaultdict(list)
                for (name, _), codecs in curves.items():
                    at = {codec: _between(points, value) for codec, points in codecs.items()}
                    if name == measure and len(at) > 1 and None not in at.values():
                        for codec, ratio in at.items():
                            found[codec].append(math.exp(ratio))
                rows += [{"codec": codec,
                          "measure": measure,
                          "value": value if measure == "psnr_db" else 10**value,
                          "ratio": mean(ratios),
                          "fields": len(ratios)} for codec, ratios in found.items()]
        return rows

    def dump_rows(self):
        """Returns the dumps of all fields together, by codec and bound: as they were done here, as
        they are computed from the time of each step of the sweep, and as published. A value that
        was not measured is None."""
        rows = []
        for codec, bound in dict.fromkeys((dump.codec, dump.bound) for dump in self.dumps):
            plain, ruled = ([dump for dump in self.dumps
                             if (dump.codec, dump.bound, dump.with_rule) == (codec, bound, rule)]
                            for rule in (False, True))
            spent = [amounts.total(dump.measured for dump in dumps) for dumps in (plain, ruled)]
            over, over_off = amounts.ratio(spent[1], spent[0])
            seconds = [_sum(dump.seconds for dump in dumps) for dumps in (plain, ruled)]
            rows.append({
                "codec": codec,
                "bound": bound,
                "gb": sum(dump.raw_bytes for dump in plain) / 1e9,
                "clock_by": plain[0].clock_by,
                "energy": "not measured" if spent[0] is None else "measured",
                "here_seconds": seconds[0],
                "here_write_s": _sum(dump.write_s for dump in plain),
                "here_seconds_with_rule": seconds[1],
                "here_write_s_with_rule": _sum(dump.write_s for dump in ruled),
                "here_longer_pct": _percent(seconds[1], seconds[0]),
                **amounts.columns("here_joules", spent[0]),
                **amounts.columns("here_joules_with_rule", spent[1]),
                "here_energy_saved_pct": None if over is None else 100 * (1 - over),
                "here_energy_saved_off_pct": None if over_off is None else 100 * over_off,
                **self._reckoned(codec, bound, {dump.field: dump.raw_bytes for dump in plain}),
                **({"published_gb": published.DUMPED_GB,
                    "published_joules": published.SAVED_J / published.SAVED_ENERGY,
                    "published_joules_saved": published.SAVED_J,
                    "published_energy_saved_pct": 100 * published.SAVED_ENERGY} if bound else {})})
        return rows

    def _reckoned(self, codec, bound, sizes):
        """Computes what compressing and writing so many bytes of each field takes, by the times
        and joules of the sweep."""
        rows = {(row.field, step): row
                for step in STEPS for row in self._at_full_clock(codec, bound, step)}
        longer, power = ([at(step, published.RULE[step])[0] for step in STEPS]
                         for at in (self.longer_at, self.power_at))

        def steps(what):
            return [sum(getattr(rows[field, step], what) * size / rows[field, step].raw_bytes
                        for field, size in sizes.items()) for step in STEPS]

        seconds = steps("seconds")
        plain = steps("joules") if self.in_joules else seconds
        whole = amounts.total(
            rows[field, step].energy.scaled(size / rows[field, step].raw_bytes)
            for step in STEPS for field, size in sizes.items()) if self.in_joules else None
        ruled = [one * more * less for one, more, less in zip(plain, longer, power)]
        return {"reckoned_seconds": sum(seconds),
                "reckoned_seconds_with_rule": sum(one * more for one, more in zip(seconds, longer)),
                **amounts.columns("reckoned_joules", whole),
                **amounts.columns("reckoned_joules_with_rule",
                                  amounts.sum_of(sum(ruled), None) if self.in_joules else None),
                "reckoned_energy_saved_pct": _percent(sum(plain), sum(ruled), of=sum(plain))}

    @property
    def in_joules(self):
        return all(row.energy_kind == "measured" and row.joules
                   for row in self.rows if row.step in STEPS)

    def label(self):
        """Says what the energy with the rule rests on."""
        time = sorted({self.longer_at(step, 0.5)[1] for step in STEPS})
        power = sorted({self.power_at(step, 0.5)[1] for step in STEPS})
        return ("time "
                f"measured{'' if time == ['measured'] else ', slowdown ' + ' and '.join(time)}; "
                f"power over clock {' and '.join(power)}"
                + (f" ({self.machine})" if "modelled" in power else ""))


def _sum(values):
    """None if there are none, or one of them is not known."""
    values = list(values)
    return sum(values) if values and None not in values else None


def _percent(one, other, of=None):
    """Returns by how much one is more than another, in percent of `of`, or else of the other. The
    result is None if either is not known."""
    return None if one is None or other is None else 100 * (one - other) / (of or other)


def _between(points, value):
    """On the line between the two points around a value; None outside of all."""
    points = sorted(points)
    for (x, y), (next_x, next_y) in zip(points, points[1:]):
        if x <= value <= next_x and next_x > x:
            return y + (next_y - y) * (value - x) / (next_x - x)
    return None


def _or_none(fitted, pairs):
    try:
        return fitted(*np.array(pairs).T) if pairs else None
    except ValueError:
        return None


def recovered(curve):
    """The fit of data made out of a published curve, at the clocks of the study: what the
    fitting itself does to it."""
    clocks = published.clocks_ghz()
    low, top = clocks.get(curve.data,
                          (min(c[0] for c in clocks.values()), max(c[1] for c in clocks.values())))
    clock = np.arange(low, top + 1e-9, published.STEP_MHZ / 1000)
    return fit.fit_power(clock, curve.power(clock))
