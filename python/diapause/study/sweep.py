"""Starts `diapause study encode` for each field and codec, and gathers what it prints."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import subprocess

from diapause import amounts
from diapause.files import Trouble
from diapause.study import published

CODECS = ("raw", "shuffle+lz4", "shuffle+zstd", "lattice", "zfp", "sz3")
LOSSLESS = CODECS[:3]
STEPS = 3  # compress, write, decompress
BOUNDS = (1e-1, 1e-2, 1e-3, 1e-4)
# These are ratios of the base clock. The two of the published rule are among them.
CLOCKS = (1.0, 0.875, 0.85, 0.7, 0.55, 0.4)
# A plan tells its time by this rate, before anything is measured.
DUMPED_BYTES_PER_S = 1e8


class SweepError(Trouble):
    """The text is that of the command."""


@dataclasses.dataclass(frozen=True)
class Plan:
    encoder: pathlib.Path  # the command `diapause`
    actuator: str
    clocks: tuple[float, ...]
    bounds: tuple[float, ...]
    directory: pathlib.Path
    seconds: float
    repetitions: int = 1

    def seconds_of(self, codec):
        """Returns the least time of a field."""
        return self.seconds * STEPS * len(self.clocks) * self._methods(codec)

    def seconds_of_dump(self, codec, size_bytes):
        """About what a field takes."""
        return (size_bytes / DUMPED_BYTES_PER_S * (1 if self.actuator == "none" else 2)
                * self._methods(codec))

    def _methods(self, codec):
        return 1 if codec in LOSSLESS else len(self.bounds)


@dataclasses.dataclass(frozen=True)
class Row:
    """One step of one field, codec and bound at one clock; the columns of measurements.csv."""

    field: str
    type: str
    shape: str
    codec: str
    bound: float  # 0: without loss
    step: str  # "compress" (with the check of every value), "write" or "decompress"
    clock_asked: float  # of the base clock
    clock_obtained: float
    clock_by: str  # the actuator, or "none"
    seconds: float
    passes: int  # over which it is the mean
    raw_bytes: int
    stored_bytes: int
    ratio: float
    greatest_error: float
    blocks: int
    lossless_blocks: int  # in which the lossy codec gave way
    joules: float | None  # of the node, or of the parts that are measured
    energy_of: str
    energy_kind: str  # "measured", "modelled"; empty: there is no source
    rms_error: float = 0.0  # over all finite values
    value_range: float = 0.0  # of them
    seconds_scatter: float = 0.0  # standard deviation of one pass
    # How far the joules may be off, by cause; None: there are no joules, or there is no bound.
    sampling_j: float | None = None
    sensor_j: float | None = None
    attribution_j: float | None = None

    @property
    def psnr_db(self):
        """Peak signal to noise: the range of the values over the root mean square of their errors;
        None if there are none."""
        return (20 * math.log10(self.value_range / self.rms_error)
                if self.rms_error > 0 and self.value_range > 0 else None)

    @property
    def energy(self):
        """With its bounds; None without a source."""
        return _energy(self)

    @property
    def clock_is_emulated(self):
        return self.clock_by == "emulated"


@dataclasses.dataclass(frozen=True)
class Dump:
    """Copies of a field compressed and then written to a file, by one codec and bound,
    with or without the rule."""

    field: str
    codec: str
    bound: float
    with_rule: bool
    clock_by: str
    raw_bytes: int  # of all copies
    compress_s: float
    compress_clock: float  # obtained, of the base clock
    write_s: float  # with the sync at the end
    write_clock: float
    joules: float | None  # of both steps
    energy_kind: str
    sampling_j: float | None = None  # as in Row
    sensor_j: float | None = None
    attribution_j: float | None = None

    @property
    def seconds(self):
        return self.compress_s + self.write_s

    @property
    def measured(self):
        """The energy, with its bounds; None unless a counter measured it at a real clock."""
        is_real = not self.with_rule or self.clock_by != "emulated"
        return _energy(self) if self.energy_kind == "measured" and is_real else None


def _energy(row):
    parts = {name: getattr(row, name) for name in amounts.PARTS}
    return amounts.sum_of(row.joules, None if parts["sampling_j"] is None else parts)


def _parts(line):
    """The three parts of a line of the command, in the order of amounts.PARTS."""
    parts = line.get("uncertainty") or {}
    return [parts.get(name) for name in amounts.PARTS]


def _row(field, plan, line):
    return Row(field.name, str(field.values.dtype), "x".join(map(str, field.values.shape)),
               line["codec"], line["bound"], line["step"], line["asked"], line["obtained"],
               plan.actuator, line["seconds"], line["passes"], line["raw_bytes"],
               line["stored_bytes"], line["raw_bytes"] / line["stored_bytes"],
               line["greatest_error"], line["blocks"], line["lossless_blocks"], line["joules"],
               line["energy_of"], line["energy_kind"], line["rms_error"], line["value_range"],
               line["seconds_scatter"], *_parts(line))


def _join(values):
    return ",".join(map(str, values))


def _encoded(field, codec, plan, clocks, *more):
    """The lines that the command prints. SweepError if it fails, as for a codec
    that the build has not."""
    file = plan.directory / "field.raw"
    field.values.tofile(file)
    done = subprocess.run([plan.encoder, "study", "encode", file, "--type", str(field.values.dtype),
                           "--dims", _join(field.values.shape), "--codecs", codec, "--bounds",
                           _join(plan.bounds), "--clocks", _join(clocks), "--actuator",
                           plan.actuator, "--directory", plan.directory, "--seconds",
                           str(plan.seconds), "--repetitions", str(plan.repetitions), *more],
                          capture_output=True, text=True)
    file.unlink()
    if done.returncode != 0:
        raise SweepError(f"{field.name}: {done.stderr.strip().removeprefix('diapause: ')}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows_of(field, codec, plan):
    """All rows of a field and a codec."""
    return [_row(field, plan, line) for line in _encoded(field, codec, plan, plan.clocks)]


def dumps_of(field, codec, plan, size_bytes):
    """The dumps of so many bytes of a field, or a little more, without the rule and, if there
    is an actuator, with it."""
    made = []
    for with_rule in (False, True) if plan.actuator != "none" else (False,):
        clocks = tuple(published.RULE[step] if with_rule else 1.0 for step in ("compress", "write"))
        made += [Dump(field.name, codec, line["bound"], with_rule, plan.actuator,
                      line["copies"] * line["raw_bytes"],
                      *(line[key] for key in ("compress_s", "compress_clock", "write_s",
                                              "write_clock", "joules", "energy_kind")),
                      *_parts(line))
                 for line in _encoded(field, codec, plan, clocks, "--dump-bytes", str(size_bytes))]
    return made
