"""Models clocks that are lowered while a checkpoint is flushed behind the program: joules and the
program's slowdown over the clock. The code is pure.

A flush of T seconds at the base clock takes T (phi / r + 1 - phi) at the ratio r, because a share
phi of it scales with the clock. It must be over before the next checkpoint. The core that flushes
draws, beyond an idle package, d r^b + s: d is the part of a busy core's power that the clock
changes, of the form P(f) = a f^b + c. The loss of the program depends on where the flush runs:

* On a core of its own the program keeps its clock. It loses to the traffic of the flush, which has
  as many bytes at any clock. The saving is an upper bound, because a curve of a whole package does
  not tell what a core draws that waits at a low clock.
* On cores that the program computes on, those are slowed, and ranks that wait for each other
  all go at the pace of the slowest: while the flush lasts, the program's rate is 1 / (psi / r +
  1 - psi), where a share psi of its time scales with the clock. All of the node draws power for
  the time that this takes longer.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from diapause import amounts, look

# Published fits end at half of the clock, and the governor goes no lower.
RATIOS = tuple(round(float(one), 3) for one in np.linspace(1.0, 0.5, 21))
# This is assumed for a processor whose power over the clock is not published, as the profile of the
# cluster of throttled checkpoints does.
ASSUMED_DYNAMIC = 0.6
ASSUMED_EXPONENT = 3.0


@dataclasses.dataclass(frozen=True)
class Node:
    """Watts of a profile."""

    name: str
    cores: int
    idle_w: float  # idle power of the packages
    busy_w: float  # more with all cores busy at the base clock
    rest_w: float  # power of everything else, busy
    dynamic: float  # share of the power of the curve that depends on the clock, at the base clock
    exponent: float
    is_of_one_core: bool  # whether the curve is of a package with one core busy
    is_published: bool  # or assumed

    @property
    def watts(self):
        return self.idle_w + self.busy_w + self.rest_w

    @property
    def core_w(self):
        return self.busy_w / self.cores

    @property
    def dynamic_w(self):
        """Returns the part of a core's power that its clock changes; it is never more than the core
        adds to an idle package."""
        if self.is_of_one_core:
            return min(self.core_w, (self.idle_w + self.core_w) * self.dynamic)
        return min(self.core_w, (self.idle_w + self.busy_w) * self.dynamic / self.cores)

    def flush_w(self, ratio):
        """Returns what a core that flushes draws beyond an idle package."""
        return (self.dynamic_w * np.asarray(ratio, float) ** self.exponent + self.core_w
                - self.dynamic_w)


def node_of(name, parameters, cores, is_published):
    """From the parameters of a profile by key, as `diapause power --json` tells them; and whether
    its curve is a published one."""
    sums = {"idle_w": 0.0, "busy_w": 0.0}
    rest_w = 0.0
    for key, value in parameters.items():
        parts = key.split(".")
        if parts[0] != "domain" or parts[2] not in sums:
            continue
        if parts[1] == "package":
            sums[parts[2]] += value
        else:
            rest_w += value
    base_ghz = parameters.get("clock.base_ghz")
    for section, is_of_one_core in (("phase.write", True), ("frequency", False)):
        if base_ghz and f"{section}.a" in parameters:
            a, b, c = (parameters[f"{section}.{key}"] for key in "abc")
            return Node(name, cores, sums["idle_w"], sums["busy_w"], rest_w,
                        1 - c / (a * base_ghz**b + c), b, is_of_one_core, is_published)
    return Node(name, cores, sums["idle_w"], sums["busy_w"], rest_w, ASSUMED_DYNAMIC,
                ASSUMED_EXPONENT, False, False)


@dataclasses.dataclass(frozen=True)
class Flush:
    seconds: float  # at the base clock
    phi: float  # share that scales with the clock
    interval_s: float  # until the next checkpoint begins
    # This share of the program scales with the clock where it shares cores with the flush.
    psi: float = 1.0

    def takes(self, ratio):
        return self.seconds * (self.phi / np.asarray(ratio, float) + 1 - self.phi)

    @property
    def least_ratio(self):
        """At which it is over when the next checkpoint begins; None: it is not
        even at the base clock."""
        spare = self.interval_s / self.seconds - (1 - self.phi)
        if self.interval_s < self.seconds:
            return None
        return min(1.0, self.phi / spare) if self.phi > 0 else 0.0

    def lost_s(self, ratio):
        """Returns by how much the program takes longer for each flush where it
        computes on the slowed cores."""
        pace = 1 / (self.psi / np.asarray(ratio, float) + 1 - self.psi)
        return self.takes(ratio) * (1 - pace)


def rows_of(node, flush, ratios=RATIOS):
    """A row for each clock: what a flush takes and draws, and what that does to the run from one
    checkpoint to the next."""
    whole_j = node.watts * flush.interval_s + float(flush.takes(1) * node.flush_w(1))
    rows = []
    for ratio in ratios:
        seconds, watts, lost_s = (float(one) for one in (flush.takes(ratio), node.flush_w(ratio),
                                                         flush.lost_s(ratio)))
        more_j = seconds * watts - float(flush.takes(1) * node.flush_w(1))
        rows.append({"machine": node.name, "ratio": ratio, "curve": "published" if node.is_published
                     else "assumed", "in_time": flush.least_ratio is not None
                     and ratio >= flush.least_ratio, "flush_s": seconds, "marginal_w": watts,
                     "flush_j": seconds * watts, "own_core_program_pct": 0.0,
                     "own_core_energy_pct": 100 * more_j / whole_j,
                     "shared_cores_program_pct": 100 * lost_s / flush.interval_s,
                     "shared_cores_energy_pct": 100 * (more_j + lost_s * node.watts) / whole_j,
                     "energy_bound": amounts.NO_BOUND})
    return rows


def best(rows, column):
    """The row with the least energy of those in time; None if none is."""
    known = [row for row in rows if row["in_time"]]
    return min(known, key=lambda row: row[column]) if known else None


def answer(node, flush):
    """Says in a sentence whether lower clocks during flushes pay on that machine."""
    rows = rows_of(node, flush)
    own, shared = best(rows, "own_core_energy_pct"), best(rows, "shared_cores_energy_pct")
    if own is None:
        return (f"{node.name}: a flush is not over before the next checkpoint, so it must not be "
                "slowed.")
    saved_j = rows[0]["flush_j"] - own["flush_j"]
    text = (f"{node.name}: on a core of its own a flush uses least at {own['ratio']:g} of the "
            f"clock, at most ≈ {look.rounded(saved_j, 'J')} less than the "
            f"≈ {look.rounded(rows[0]['flush_j'], 'J')} at the base clock (of a model without a "
            f"bound), which is {-own['own_core_energy_pct']:.2f} % of the node's energy from one "
            "checkpoint to the next; ")
    if own["ratio"] >= 1:
        text = f"{node.name}: on a core of its own a flush uses least at the base clock; "
    if shared["ratio"] >= 1:
        return text + "on cores that the program computes on every lower clock costs energy."
    return text + (f"on cores that the program computes on {shared['ratio']:g} is best and saves "
                   f"{-shared['shared_cores_energy_pct']:.2f} %, while the program takes "
                   f"{shared['shared_cores_program_pct']:.2f} % longer.")
