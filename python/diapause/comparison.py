"""Says how much more time, power and energy a job took than another, and whether that can be told.

The rules are those of `diapause energy --baseline` (src/cli/energy_comparison.hpp), for one
baseline.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Change:
    percent: float  # (value - baseline) / baseline
    off: float | None  # either way, in percentage points; None: nothing tells

    @property
    def text(self):
        text = f"{self.percent:+.1f} %"
        if self.off is None:
            return text
        is_told_apart = abs(self.percent) > self.off
        return f"{text} ± {self.off:.1f} %" + ("" if is_told_apart else ": not told apart")


def _change(value, baseline, off_share=None):
    if value is None or not baseline:
        return None
    off = None if off_share is None else off_share * abs(value / baseline) * 100
    return Change((value - baseline) / baseline * 100, off)


def share_machines(one, other):
    """Whether the lines tell that both ran on the same machines, and on no others."""
    return len(one.hosts) == 1 and one.hosts == other.hosts and "" not in one.hosts


def _share_sources(one, other):
    def names(account):
        return {(source.domain, source.name) for source in account.sources_of_total()}

    return (one.total, one.kind, names(one)) == (other.total, other.kind, names(other))


def _meter_error(account, needs_sensor):
    """As a share of the energy; None if it is not told of all the energy, or nobody knows it."""
    parts, joules = account.whole.parts_j, account.whole.complete
    if parts is None or joules is None or not joules > 0:
        return None
    sampling_j, sensor_j, _ = parts
    if not needs_sensor:
        return sampling_j / joules
    return None if sensor_j is None else (sampling_j + sensor_j) / joules


def _missing_share(account):
    """The energy of gaps, as a share: they may have had up to twice the mean power of the rest."""
    if not account.gap_s > 0:
        return 0.0
    return 2 * account.gap_s / account.covered_s if account.covered_s > 0 else 1.0


def _complete_watts(account):
    return account.watts if account.whole.complete is not None else None


def changes(job, baseline):
    """Of runtime, mean power and energy; each is None where it cannot be compared."""
    needs_sensor = not (share_machines(job, baseline) and _share_sources(job, baseline))
    errors = [_meter_error(account, needs_sensor) for account in (job, baseline)]
    off = None if None in errors else sum(errors)
    missing = _missing_share(job) + _missing_share(baseline)
    joules = _change(job.whole.complete, baseline.whole.complete,
                     None if off is None else off + missing)
    return (_change(job.runtime_s, baseline.runtime_s),
            _change(_complete_watts(job), _complete_watts(baseline), off),
            None if off is None and missing > 0 else joules)
