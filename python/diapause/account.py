"""Adds up the energy lines of a ledger: the whole job, and its phases by level, version and name.

The rules are those of `diapause energy` (docs/energy-account.md); a test compares the two.
"""

from __future__ import annotations

import dataclasses

from diapause import look, records

# In the order in which they happen; what a later version of the library adds comes behind.
CHECKPOINT_PHASES = ("wait", "freeze", "dump", "connections", "capture", "drain", "keep", "partner",
                     "parity", "encode", "global", "publish")
RESTART_PHASES = ("inventory", "verify", "fetch", "rebuild", "restore")
PHASES = CHECKPOINT_PHASES + RESTART_PHASES

# A total of the domain before contains those behind it (src/energy/total.hpp).
PARTS_OF = {"package": ("core", "uncore"), "socket": ("package", "dram", "core", "uncore"),
            "psys": ("socket", "package", "dram", "core", "uncore", "other"),
            "module": ("socket", "package", "dram", "core", "uncore", "gpu"),
            "node": ("psys", "module", "socket", "package", "core", "uncore", "dram", "gpu", "disk",
                     "network", "other")}


@dataclasses.dataclass
class Sum:
    """Joules of which some may be missing, with the seconds and bytes that go with them."""

    times: int = 0
    seconds: float = 0.0
    joules: float = 0.0
    known: int = 0
    unknown: int = 0  # nobody knows
    absent: int = 0  # there was no source
    # Bounds of the error, which are added: phases of a kind are alike, and may all err in the same
    # way.
    sampling_j: float = 0.0
    sensor_j: float = 0.0
    attribution_j: float = 0.0
    estimates: int = 0  # how many of the known ones tell no bound of the error of their source
    without_uncertainty: int = 0  # how many do not tell theirs
    bytes_by_version: dict[int, int] = dataclasses.field(default_factory=dict)

    def add(self, joules):
        if joules.total is not None:
            self.joules += joules.total
            self.known += 1
            self.absent += not joules.is_of_all_machines
            self._add_uncertainty(joules.uncertainty)
        elif joules.is_unknown:
            self.unknown += 1
        else:
            self.absent += 1

    def _add_uncertainty(self, off):
        if off is None:
            self.without_uncertainty += 1
            return
        self.sampling_j += off.sampling_j
        self.attribution_j += off.attribution_j
        self.estimates += off.sensor_j is None
        self.sensor_j += off.sensor_j or 0.0

    def add_sum(self, more):
        """Of joules alone."""
        for name in ("joules", "known", "unknown", "absent", "sampling_j", "sensor_j",
                     "attribution_j", "estimates", "without_uncertainty"):
            setattr(self, name, getattr(self, name) + getattr(more, name))

    def scaled(self, factor):
        """So many times these joules, with their bounds."""
        return dataclasses.replace(self, **{
            name: getattr(self, name) * factor
            for name in ("joules", "sampling_j", "sensor_j", "attribution_j")})

    def add_phase(self, phase):
        self.times += 1
        self.seconds += phase.seconds
        self.add(phase.joules)
        # Phases of one version are about the same bytes: the most of them count.
        self.bytes_by_version[phase.version] = max(phase.bytes,
                                                   self.bytes_by_version.get(phase.version, 0))

    @property
    def is_partial(self):
        return self.known > 0 and self.unknown + self.absent > 0

    @property
    def complete(self):
        """None if any part of it is missing. Whoever divides or compares sums needs this one."""
        return self.joules if self.known and not self.is_partial else None

    @property
    def of_known(self):
        """The sum of the parts that are known; None if there are none."""
        return self.joules if self.known else None

    @property
    def bytes(self):
        return sum(self.bytes_by_version.values())

    @property
    def is_estimate(self):
        """Whether energy is known of which nobody knows how far it may be off."""
        return self.estimates + self.without_uncertainty > 0

    @property
    def parts_j(self):
        """By sampling, sensor or model (None: without a bound), attribution.

        None where not all tell them.
        """
        if not self.known or self.without_uncertainty:
            return None
        return self.sampling_j, None if self.estimates else self.sensor_j, self.attribution_j

    @property
    def uncertainty_j(self):
        """All three together; None without a bound."""
        return sum(self.parts_j) if self.parts_j and not self.is_estimate else None

    @property
    def bound(self):
        """What it is below, if its uncertainty is as large as the number; None otherwise."""
        off = self.uncertainty_j
        if not off or off < self.joules or self.is_partial:
            return None
        return max(self.joules + off, 0.0)


@dataclasses.dataclass(frozen=True)
class Lost:
    """What the program had done since the version was captured that a restart went back to."""

    incarnation: int  # that restored
    version: int
    seconds: float | None  # None: no line tells when the version was captured
    joules: Sum | None


@dataclasses.dataclass(frozen=True)
class Sharing:
    """What others have used of the job's machines."""

    others_percent: float  # of the processor time that was used
    job: Sum | None  # the job's part of the whole by processor time; None where not all lines tell


# On the mean, of a machine; its services use less.
MOST_PROCESSORS_OF_OTHERS = 0.5


def is_of_restart(phase):
    return phase.name in RESTART_PHASES


class Account:
    """Of one job, over all its starts."""

    def __init__(self, ledger):
        lines = ledger.energy
        self.ledger = ledger
        self.holes = dict(_holes(ledger.lines))
        self._before = _places_before(lines)
        self.open_ends = list(_open_ends(ledger.lines))
        closed = [end for end in self.open_ends if end.was_closed]
        self.missing_lines = sum(hole.lines for hole in self.holes.values()) + len(closed)
        self.missing_s = (sum(hole.seconds for hole in self.holes.values())
                          + sum(end.seconds or 0.0 for end in closed))
        self.runtime_s = sum(line.seconds for line in lines) + self.missing_s
        self.gap_s = sum(line.gap_s for line in lines) + self.missing_s
        self.covered_s = sum(line.seconds - line.gap_s
                             for line in lines if line.whole.total is not None)
        self.machines = max((line.machines for line in lines), default=0)
        self.unmetered = max((line.unmetered for line in lines), default=0)
        self.incarnations = sorted({line.incarnation for line in lines})
        self.sources = sorted({source for line in lines for source in line.sources},
                              key=dataclasses.astuple)
        self.hosts = {line.hosts for line in lines}
        totals = {line.total for line in lines if line.total}
        self.total = totals.pop() if len(totals) == 1 else "mixed" if totals else ""
        self.whole, self.program, self.all_phases = Sum(), Sum(), Sum()
        for line in lines:
            self.whole.add(line.whole)
            self.program.add(line.program)
        for sum_ in (self.whole, self.program):
            sum_.unknown += self.missing_lines
        self.phases = [phase for line in lines for phase in line.phases]
        for phase in self.phases:
            self.all_phases.add_phase(phase)
        self._let_ends_cancel(lines)
        self.by_domain = self._add_domains(lines)
        self.sharing = self._find_sharing(lines)
        self.lost = list(_lost(ledger.lines))

    def _let_ends_cancel(self, lines):
        """Where lines of a start adjoin, what one has too much, the next has too little."""
        told = [(place, line.ends_j) for place, line in enumerate(lines)
                if line.whole.total is not None]
        if self._lower_sampling(self.whole, told):
            self.program.sampling_j = min(self.program.sampling_j,
                                          self.whole.sampling_j + self.all_phases.sampling_j)

    def _lower_sampling(self, sum_, told):
        """Whether all lines that are known in `sum_` have told their ends.

        `told`: (place, ends) of these lines.
        """
        if not sum_.known or sum_.without_uncertainty or any(ends is None for _, ends in told):
            return False
        runs = {}  # the ends of lines without a hole between them, by the place of the last one
        for place, (begin, end) in told:
            before = None if place in self.holes else self._before[place]
            runs[place] = [runs.pop(before)[0] if before in runs else begin, end]
        sum_.sampling_j = min(sum_.sampling_j, sum(map(sum, runs.values())))
        return True

    def _add_domains(self, lines):
        """(sum of the whole, sum of its phases) of each domain that any line tells of."""
        sums, told = {}, {}
        for place, line in enumerate(lines):
            for domain in line.whole.by_domain.keys() - {"total"}:
                whole, phases = sums.setdefault(domain, (Sum(), Sum()))
                whole.add(_of_domain(line.whole, domain))
                for phase in line.phases:
                    phases.add(_of_domain(phase.joules, domain))
                told.setdefault(domain, []).append((place, line.ends_of.get(domain)))
        for domain, (whole, _) in sums.items():
            self._lower_sampling(whole, told[domain])
            whole.absent += len(lines) - len(told[domain])
            whole.unknown += self.missing_lines
        return dict(sorted(sums.items()))

    def _find_sharing(self, lines):
        """None where the machines are the job's alone, or where a line does not tell."""
        told = [line.processors for line in lines]
        if not told or None in told:
            return None
        job_s, others_s = sum(one.job_s for one in told), sum(one.others_s for one in told)
        others_most_s = sum(one.others_most_s for one in told)
        told_s = self.runtime_s - self.missing_s
        if not others_s > 0 or others_most_s < MOST_PROCESSORS_OF_OTHERS * told_s:
            return None
        with_joules = [one for one in told if one.job_j is not None]
        job = None
        if self.whole.known and self.whole.joules and len(with_joules) >= self.whole.known:
            job_j = sum(one.job_j for one in with_joules)
            off_j = sum(one.job_off_j for one in with_joules)
            share = job_j / self.whole.joules
            job = dataclasses.replace(self.whole, joules=job_j,
                                      sensor_j=self.whole.sensor_j * share,
                                      sampling_j=self.whole.sampling_j * share, attribution_j=off_j)
        return Sharing(100 * others_s / (job_s + others_s), job)

    @property
    def watts(self):
        if not self.whole.known or not self.covered_s > 0:
            return None
        return self.whole.joules / self.covered_s

    def sources_of_total(self):
        parts = self.total.split("+")
        return [source for source in self.sources if self.total == "mixed"
                or source.domain in parts]

    @property
    def kind(self):
        """`measured`, `modelled`, or both with "and" between; empty: there is no source."""
        return " and ".join(sorted({source.kind for source in self.sources_of_total()}))

    @property
    def is_emulated(self):
        """Whether clocks were only emulated: the powers of slowed phases are not real then."""
        return any(phase.slowed and phase.slowed.actuator == "emulated" for phase in self.phases)

    def percent(self, sum_):
        """Of the whole; None if anything of the two is missing."""
        whole, part = self.whole.complete, sum_.complete
        return part / whole * 100 if part is not None and whole is not None and whole > 0 else None

    def is_covered(self, domain):
        """Whether what the domain uses is in the total, itself or as a part of another."""
        return any(domain == name or domain in PARTS_OF.get(name, ())
                   for name in self.total.split("+")) and domain not in ("", "mixed")

    def share_text(self, sum_):
        """As "4.55 %", or "< 0.27 %" where no more than a bound is known; "-" where nothing is.

        "≥ 4.55 %" where something of the part is missing, and "≤ 4.55 %" where something of the
        whole is. The digits follow from what samples and charging leave open.
        """
        whole, part = self.whole.of_known, sum_.of_known
        if part is None or whole is None or not whole > 0:
            return "-"
        if self.whole.is_partial:
            most = (part if sum_.bound is None else sum_.bound) / whole * 100
            return "-" if sum_.is_partial or most >= 100 else f"≤ {self._part_text(sum_, most)}"
        if sum_.bound is not None:
            return look.below(min(sum_.bound / whole * 100, 100.0), "%")
        return ("≥ " if sum_.is_partial else "") + self._part_text(sum_, part / whole * 100)

    def _part_text(self, sum_, percent):
        if None in (sum_.parts_j, self.whole.parts_j):
            return look.rounded(percent, "%")
        off = sum_.sampling_j + sum_.attribution_j + percent / 100 * self.whole.sampling_j
        return look.to_the_digits_of(percent, off / self.whole.joules * 100, "%")

    def sums(self, key):
        """The phases added up by `key(phase)`."""
        sums = {}
        for phase in self.phases:
            sums.setdefault(key(phase), Sum()).add_phase(phase)
        return sums

    def by_phase(self):
        """By name, in the order in which they happen."""
        sums = self.sums(lambda phase: phase.name)
        order = {name: place for place, name in enumerate(PHASES)}
        return dict(sorted(sums.items(),
                           key=lambda item: (order.get(item[0], len(PHASES)), item[0])))

    def by_level(self):
        """By level, 0 for what is not of one; behind them "restart"."""
        sums = self.sums(lambda phase: "restart" if is_of_restart(phase) else phase.level)
        return dict(sorted(sums.items(), key=lambda item: (item[0] == "restart", str(item[0]))))

    def by_version(self):
        """By version and whether it is of a restart."""
        return dict(sorted(self.sums(lambda phase: (phase.version, is_of_restart(phase))).items()))


def _of_domain(joules, domain):
    """The joules of a domain as if they were the total.

    A part that has those of others only has them unknown.
    """
    value = joules.by_domain.get(domain)
    has_source = bool(joules.by_domain) or joules.is_unknown
    return records.Joules({} if value is None else {"total": value}, has_source and value is None,
                          joules.uncertainty_of.get(domain),
                          is_of_all_machines=joules.is_of_all_machines)


@dataclasses.dataclass(frozen=True)
class Hole:
    """Lines that are missing before another of their start."""

    lines: int  # at least
    seconds: float  # that they have told of


def _places_before(lines):
    """The place of the line before each, of the same start; None for the first of a start."""
    last, places = {}, []
    for place, line in enumerate(lines):
        places.append(last.get(line.incarnation))
        last[line.incarnation] = place
    return places


LEAST_HOLE_S = 1.0  # clocks are set meanwhile, and lines without numbers have only their times
MOST_LINES = 1_000_000_000  # of a hole: more is no count


def _holes(lines):
    """(place, hole) of each energy line that does not begin where the one before ends.

    The rules are those of LineSequence in C++.
    """
    opened_unix_s, last, place = {}, {}, -1
    for line in lines:
        if not isinstance(line, records.Energy):
            if line.kind == "open":
                opened_unix_s[line.incarnation] = line.unix_s
            continue
        place += 1
        begin, before = line.end_unix_s - line.seconds, last.get(line.incarnation)
        last[line.incarnation] = line
        if before is None:
            missing = 0 if line.number is None else line.number - 1
            end = opened_unix_s.get(line.incarnation, begin)
        else:
            end = before.end_unix_s
            missing = (int(begin - end > LEAST_HOLE_S) if None in (line.number, before.number)
                       else line.number - before.number - 1)
        if missing:  # less than 0: numbered anew, so that it does not adjoin
            yield place, Hole(min(max(0, missing), MOST_LINES),
                              max(0.0, begin - end) if missing > 0 else 0.0)


@dataclasses.dataclass(frozen=True)
class OpenEnd:
    """A start without a line that ends it. The rules are those of StartEnds in C++."""

    incarnation: int
    seconds: float | None  # until it was closed, or at most until it was killed; None: not known
    was_closed: bool


def _open_ends(lines):
    opened, told_to, closed, ended = {}, {}, {}, {}
    for line in lines:
        start, is_energy = line.incarnation, isinstance(line, records.Energy)
        if is_energy:
            told_to[start], ended[start] = line.end_unix_s, line.is_last
        elif line.kind == "open":
            opened[start] = line.unix_s
            told_to[start] = max(told_to.get(start, 0.0), line.unix_s)
            ended.setdefault(start, False)
        elif line.kind == "close" and start:
            closed[start] = line.unix_s
            ended.setdefault(start, False)
        elif line.kind == "close" and ended:
            ended[max(ended)] = True
    starts = sorted(ended)
    for start, following in zip(starts, [*starts[1:], None]):
        if ended[start]:
            continue
        until = closed.get(start, opened.get(following))
        known = until is not None and start in told_to
        yield OpenEnd(start, max(0.0, until - told_to[start]) if known else None, start in closed)


@dataclasses.dataclass
class _Stretch:
    """The program's part of an energy line, as far as its work was not lost yet."""

    line: records.Energy
    until_unix_s: float


def _lost(lines):
    """For each restart, in the order of the lines.

    Work that an earlier restart has lost is not lost again.
    """
    captured_unix_s = {}  # by version, then by incarnation
    stretches = []
    for line in lines:
        if isinstance(line, records.Energy):
            stretches.append(_Stretch(line, line.end_unix_s))
            for phase in line.phases:
                if phase.name == "capture" and phase.start_unix_s is not None:
                    captured = captured_unix_s.setdefault(phase.version, {})
                    captured[line.incarnation] = phase.start_unix_s + phase.seconds
            continue
        version = records.count(line.fields, "version")
        if line.kind == "restart" and version is not None:
            since = records.duration(line.fields, "captured_unix_s")
            before = [i for i in captured_unix_s.get(version, {}) if i < line.incarnation]
            if before:
                since = captured_unix_s[version][max(before)]
            yield (Lost(line.incarnation, version, None, None) if since is None
                   else _lost_since(since, line.incarnation, version, stretches))


def _lost_since(captured_unix_s, incarnation, version, stretches):
    seconds, joules = 0.0, Sum()
    for stretch in stretches:
        line = stretch.line
        begin = max(line.end_unix_s - line.seconds, captured_unix_s)
        lost_s = stretch.until_unix_s - begin
        if line.incarnation >= incarnation or not lost_s > 0:
            continue
        stretch.until_unix_s = begin
        total, off, share = line.program.total, line.program.uncertainty, lost_s / line.seconds
        # Of a part of a line's time the energy has no bound: nobody knows when it was used.
        joules.add(records.Joules({} if total is None else {"total": total * share},
                                  line.program.is_unknown,
                                  None if share < 1 else off,
                                  is_of_all_machines=line.program.is_of_all_machines))
        seconds += lost_s
    return Lost(incarnation, version, seconds, joules)
