"""Reads the files that jobs leave.

These are ledgers (docs/formats/ledger.md) and power traces (docs/formats/trace.md). Both are lines
of JSON that anybody may have written and that a crash may have cut: a damaged line is left out and
counted, text comes out without control characters, and numbers are finite. Only a file of another
schema is refused.
"""

from __future__ import annotations

import dataclasses
import json
import unicodedata

from diapause.files import Trouble, opened

LEDGER_SCHEMAS = (1, 2)
TRACE_SCHEMAS = (1,)
LONGEST_LINE = 16 << 20  # bytes; a longer one is damaged
LARGEST = 1e18  # nothing of a machine is more: not its bytes, joules or seconds
DOMAINS_OF_A_TRACE = 4096  # at most


class RecordError(Trouble):
    """A file that cannot be read at all; the text says which and why."""


def printable(text):
    """Without characters that could hide or reorder their neighbours on a screen.

    These are control and formatting characters, and surrogates.
    """
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c)[0] == "C" else c
                   for c in text)


# ---- fields of a line, or None where there is no such thing --------------------------------------


def number(line, key):
    value = line.get(key) if isinstance(line, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= LARGEST else None  # False for NaN


def duration(line, key):
    value = number(line, key)
    return value if value is not None and value >= 0 else None


def count(line, key):
    value = line.get(key) if isinstance(line, dict) else None
    return value if type(value) is int and 0 <= value < 1 << 64 else None


def text(line, key):
    value = line.get(key) if isinstance(line, dict) else None
    return printable(value) if isinstance(value, str) else None


# ---- the ledger ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """How far joules may be off, either way, by cause."""

    sampling_j: float  # samples are apart in time
    sensor_j: float | None  # the source itself; None: nobody knows, and the joules have no bound
    attribution_j: float  # who is charged


@dataclasses.dataclass(frozen=True)
class Joules:
    """One amount: known (`total` is a number), unknown, or absent for want of a source."""

    by_domain: dict[str, float]
    is_unknown: bool = False
    uncertainty: Uncertainty | None = None  # of the total; None: it is not told
    uncertainty_of: dict[str, Uncertainty] = dataclasses.field(default_factory=dict)  # by domain
    is_of_all_machines: bool = True  # otherwise those without a source are in no number

    @property
    def total(self):
        return self.by_domain.get("total")


@dataclasses.dataclass(frozen=True)
class Slowed:
    """By the governor: ratios of the base clock."""

    actuator: str
    asked: float
    obtained: float


@dataclasses.dataclass(frozen=True)
class Phase:
    version: int
    level: int  # 0: not of one level
    name: str
    start_unix_s: float | None
    seconds: float
    bytes: int
    joules: Joules
    slowed: Slowed | None


@dataclasses.dataclass(frozen=True)
class Source:
    domain: str
    name: str
    kind: str  # "measured", "modelled" or "replayed"


@dataclasses.dataclass(frozen=True)
class Processors:
    """Who used the processors of the job's machines, in seconds of processor time."""

    job_s: float
    others_s: float
    others_most_s: float  # on the machine on which others used most
    job_j: float | None  # the job's part of the whole by processor time; None without a total
    job_off_j: float | None  # its error, as processors draw more for one program than for another


@dataclasses.dataclass(frozen=True)
class Energy:
    incarnation: int
    end_unix_s: float
    seconds: float
    gap_s: float
    machines: int
    unmetered: int  # of them, those of whose energy nobody knows anything
    sources: tuple[Source, ...]
    total: str  # the domains that make it, with '+' between; empty: there is no source
    program: Joules
    whole: Joules
    phases: tuple[Phase, ...]
    ends_j: tuple[float, float] | None = None  # its two ends' parts of the whole's sampling error
    processors: Processors | None = None  # None: the line does not tell
    # The domains by whose meters a slow total is told apart in time; None: by none.
    told_apart_by: str | None = None
    left_out: tuple[str, ...] = ()  # accelerator boards of which no meter tells, in words
    # By domain, as ends_j.
    ends_of: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    hosts: str = ""  # a digest of the machines; empty: the line does not tell
    number: int | None = None  # in the start, from 1; older libraries write none
    is_last: bool = False  # it ends the start


@dataclasses.dataclass(frozen=True)
class Event:
    """A line of another kind: an open, checkpoint, restart, schedule, stop or close.

    `fields` are as they were read.
    """

    kind: str
    incarnation: int
    unix_s: float
    fields: dict


@dataclasses.dataclass
class Ledger:
    path: str
    lines: list[Energy | Event] = dataclasses.field(default_factory=list)
    damaged_lines: int = 0
    repeated_lines: int = 0  # that are there twice, and count once
    lost_lines: int = 0  # that the library could not write, as it says

    @property
    def energy(self):
        return [line for line in self.lines if isinstance(line, Energy)]

    def events(self, kind):
        return [line for line in self.lines if isinstance(line, Event) and line.kind == kind]


def _uncertainty(line):
    """Lines of schema 1 have that of the samples alone, so their energy has no bound."""
    parts = line.get("uncertainty")
    sampling_j = duration(line, "uncertainty_j") if parts is None else duration(parts, "sampling_j")
    if sampling_j is None:
        return None
    if parts is None:
        return Uncertainty(sampling_j, None, 0.0)
    return Uncertainty(sampling_j, duration(parts, "sensor_j"),
                       duration(parts, "attribution_j") or 0.0)


def _uncertainty_of(line):
    told = line.get("uncertainty_of")
    found = {}
    for domain, parts in (told if isinstance(told, dict) else {}).items():
        if not isinstance(parts, list) or len(parts) != 3:
            continue
        sampling_j, sensor_j, attribution_j = (duration({"part": part}, "part") for part in parts)
        if None not in (sampling_j, attribution_j):
            found[printable(domain)] = Uncertainty(sampling_j, sensor_j, attribution_j)
    return found


def _joules(line, is_of_all_machines):
    """As src/cli/ledger_joules.cpp has it: absent without a source, unknown without a number."""
    if not isinstance(line, dict) or "joules" not in line:
        return Joules({})
    domains = line["joules"]
    if not isinstance(domains, dict):
        return Joules({}, is_unknown=True)
    known = {printable(domain): number(domains, domain) for domain in domains}
    known = {domain: value for domain, value in known.items() if value is not None}
    return Joules(known, "total" in domains and "total" not in known, _uncertainty(line),
                  _uncertainty_of(line), is_of_all_machines)


def _slowed(line):
    slowed = line.get("slowed")
    actuator = text(slowed, "actuator")
    asked, obtained = number(slowed, "asked"), number(slowed, "obtained")
    return None if None in (actuator, asked, obtained) else Slowed(actuator, asked, obtained)


def _phase(line, is_of_all_machines):
    version, level, name = count(line, "version"), count(line, "level"), text(line, "phase")
    seconds, size = duration(line, "seconds"), count(line, "bytes")
    if None in (version, level, name, seconds, size) or level > 4:
        return None
    return Phase(version, level, name, duration(line, "start_unix_s"), seconds, size,
                 _joules(line, is_of_all_machines), _slowed(line))


def _texts(line, key):
    listed = line.get(key)
    return tuple(printable(one) for one in (listed if isinstance(listed, list) else [])
                 if isinstance(one, str))


def _sources(line):
    listed = line.get("sources")
    found = [(text(one, "domain"), text(one, "source"), text(one, "kind"))
             for one in (listed if isinstance(listed, list) else [])]
    return tuple(Source(*one) for one in found if None not in one)


def _ends_of(whole):
    told = whole.get("ends_of") if isinstance(whole, dict) else None
    found = {printable(domain): _ends({"ends_j": ends})
             for domain, ends in (told if isinstance(told, dict) else {}).items()}
    return {domain: ends for domain, ends in found.items() if ends}


def _ends(whole):
    ends = whole.get("ends_j") if isinstance(whole, dict) else None
    if not isinstance(ends, list) or len(ends) != 2:
        return None
    found = tuple(duration({"end": end}, "end") for end in ends)
    return None if None in found else found


def _processors(line):
    told = line.get("processors")
    if not isinstance(told, dict):
        return None
    job_s, others_s, others_most_s = (duration(told, key)
                                      for key in ("job_s", "others_s", "others_most_s"))
    if None in (job_s, others_s, others_most_s):
        return None
    job_j, off_j = number(told, "job_j"), duration(told, "job_attribution_j")
    return Processors(job_s, others_s, others_most_s,
                      *((None, None) if None in (job_j, off_j) else (job_j, off_j)))


def _energy(line, incarnation, unix_s):
    """The line, or None, and whether anything of it is damaged."""
    seconds, gap_s, total = duration(line, "seconds"), duration(line, "gap_s"), text(line, "total")
    listed = line.get("phases")
    if None in (seconds, gap_s, total) or not isinstance(listed, list) or \
            not {"whole", "program"} <= line.keys():
        return None, True
    unmetered = count(line, "unmetered") or 0
    phases = [_phase(one, unmetered == 0) for one in listed]
    machines = count(line, "machines")
    energy = Energy(incarnation, unix_s, seconds, min(gap_s, seconds),
                    1 if machines is None else machines, unmetered, _sources(line), total,
                    _joules(line["program"], unmetered == 0),
                    _joules(line["whole"], unmetered == 0),
                    tuple(one for one in phases if one), _ends(line["whole"]), _processors(line),
                    text(line, "told_apart_by"), _texts(line, "left_out"),
                    _ends_of(line["whole"]), text(line, "hosts") or "", count(line, "number"),
                    line.get("last") is True)
    return energy, None in phases


def _objects(path):
    """For each line its number, the object in it, and whether it is equal to an earlier line.

    Instead of the object it is None if there is none.
    """

    def refuse(_):
        raise ValueError  # NaN and Infinity are no JSON

    with opened(path) as file:
        number_of_line = 0
        seen = set()
        while line := file.readline(LONGEST_LINE + 1):
            number_of_line += 1
            whole = line
            while not whole.endswith(b"\n") and (whole := file.readline(LONGEST_LINE)):
                line = b""  # too long: its rest is read and forgotten
            try:
                found = json.loads(line.decode(), parse_constant=refuse)
            except (ValueError, RecursionError):
                found = None
            before = len(seen)
            seen.add(hash(line.rstrip(b"\n")))
            yield number_of_line, found if isinstance(found, dict) else None, len(seen) == before


def _refuse_other_schemas(path, number_of_line, line, known):
    schema = line.get("schema")
    if type(schema) is int and schema not in known:
        raise RecordError(f"{path}:{number_of_line}: schema {schema}, and this version reads "
                          f"{' and '.join(map(str, known))}: "
                          "take the report of the version of Diapause that wrote it")


def read_ledger(path):
    """All of the ledger. RecordError if it cannot be read or has another schema."""
    ledger = Ledger(printable(str(path)))
    try:
        for number_of_line, line, is_repeated in _objects(path):
            if is_repeated:
                ledger.repeated_lines += 1
                continue
            kind = text(line, "event")
            if kind is None:
                ledger.damaged_lines += 1
                continue
            _refuse_other_schemas(path, number_of_line, line, LEDGER_SCHEMAS)
            _take(ledger, line, kind)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    return ledger


def _take(ledger, line, kind):
    if kind == "lost":
        ledger.lost_lines += count(line, "lines") or 0
    if kind not in ("open", "checkpoint", "restart", "schedule", "stop", "close", "energy"):
        return
    incarnation, unix_s = count(line, "incarnation"), duration(line, "time_unix_s")
    if kind == "close" and incarnation is None:  # of an older library: of the start before it
        incarnation = 0
    if incarnation is None or unix_s is None:
        ledger.damaged_lines += 1
    elif kind != "energy":
        ledger.lines.append(Event(kind, incarnation, unix_s, line))
    else:
        energy, is_damaged = _energy(line, incarnation, unix_s)
        ledger.damaged_lines += is_damaged
        if energy:
            ledger.lines.append(energy)


# ---- power traces --------------------------------------------------------------------------------


@dataclasses.dataclass
class Trace:
    path: str
    host: str
    started_unix_s: float
    domains: list[Source]
    total: str
    total_kind: str
    total_domains: list[int]  # indexes
    accuracy: list[float | None]  # of each domain: a share; None: nobody knows
    seconds: list[float] = dataclasses.field(default_factory=list)  # since the start, of each row
    # By row and domain: joules since the start, and the seconds that they stand for.
    joules: list[list[float]] = dataclasses.field(default_factory=list)
    covered_s: list[list[float]] = dataclasses.field(default_factory=list)
    # How far the joules may be off because samples are apart; None in a row that does not tell.
    off_j: list[list[float] | None] = dataclasses.field(default_factory=list)
    damaged_lines: int = 0


def _trace_head(path, line):
    if line is None or line.get("what") != "diapause power trace":
        raise RecordError(f"{path}: is no power trace; `diapause power record` makes them")
    _refuse_other_schemas(path, 1, line, TRACE_SCHEMAS)
    listed = line.get("domains")
    total = line.get("total")
    domains = [Source(text(one, "domain") or "other", text(one, "source") or "",
                      text(one, "kind") or "modelled")
               for one in (listed if isinstance(listed, list) else [])]
    started = duration(line, "started_unix_s")
    if started is None or not 0 < len(domains) <= DOMAINS_OF_A_TRACE or not isinstance(total, dict):
        raise RecordError(f"{path}: the first line of this power trace is damaged")
    indexes = total.get("domains")
    parts = [i for i in (indexes if isinstance(indexes, list) else []) if type(i) is int
             and 0 <= i < len(domains)]
    accuracy = [duration(one, "accuracy")
                for one in (listed if isinstance(listed, list) else [])]
    return Trace(printable(str(path)), text(line, "host") or "?", started, domains,
                 text(total, "name") or "",
                 text(total, "kind") or "modelled", parts, accuracy)


def _row(line, key, length):
    values = line.get(key)
    if not isinstance(values, list) or len(values) != length:
        return None
    numbers = [number({"value": value}, "value") for value in values]
    return None if None in numbers else numbers


def read_trace(path):
    """All rows of the trace. RecordError if it cannot be read, is none, or has another schema."""
    try:
        lines = _objects(path)
        trace = _trace_head(path, next(lines, (1, None, False))[1])
        for _, line, _ in lines:
            seconds = duration(line, "t")
            joules, covered = (_row(line or {}, key, len(trace.domains)) for key in ("j", "c"))
            is_later = seconds is not None and (not trace.seconds or seconds > trace.seconds[-1])
            if not is_later or joules is None or covered is None:
                trace.damaged_lines += 1
                continue
            trace.seconds.append(seconds)
            trace.joules.append(joules)
            trace.covered_s.append(covered)
            off = _row(line, "o", len(trace.domains))
            trace.off_j.append(None if off is None or min(off) < 0 else off)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    return trace
