"""Starts `diapause study encode` for each field and codec, and gathers what it prints."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import subprocess

from diapause.files import Trouble

CODECS = ("raw", "shuffle+lz4", "shuffle+zstd", "lattice", "zfp", "sz3")
LOSSLESS = CODECS[:3]
STEPS = 3  # compress, write, decompress
BOUNDS = (1e-1, 1e-2, 1e-3, 1e-4)
# Of the base clock. The two of the published rule are among them.
CLOCKS = (1.0, 0.875, 0.85, 0.7, 0.55, 0.4)


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
        """What a field takes at least."""
        return self.seconds * STEPS * len(self.clocks) * (1 if codec in LOSSLESS
                                                          else len(self.bounds))


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
    joules: float | None  # of the node, or of what there is of it
    energy_of: str
    energy_kind: str  # "measured", "modelled"; empty: there is no source
    rms_error: float = 0.0  # over all finite values
    value_range: float = 0.0  # of them
    seconds_scatter: float = 0.0  # standard deviation of one pass

    @property
    def psnr_db(self):
        """Peak signal to noise: the range of the values over the root mean square of their errors; None if there are none."""
        return 20 * math.log10(self.value_range / self.rms_error) if self.rms_error > 0 and self.value_range > 0 else None

    @property
    def clock_is_emulated(self):
        return self.clock_by == "emulated"


def _row(field, plan, line):
    return Row(field.name, str(field.values.dtype), "x".join(map(str, field.values.shape)),
               line["codec"], line["bound"], line["step"], line["asked"], line["obtained"],
               plan.actuator, line["seconds"], line["passes"],
               line["raw_bytes"], line["stored_bytes"], line["raw_bytes"] / line["stored_bytes"],
               line["greatest_error"], line["blocks"], line["lossless_blocks"], line["joules"],
               line["energy_of"], line["energy_kind"],
               line["rms_error"], line["value_range"], line["seconds_scatter"])


def _join(values):
    return ",".join(map(str, values))


def rows_of(field, codec, plan):
    """All rows of a field and a codec. SweepError if the command fails, as for a codec that the build has not."""
    file = plan.directory / "field.raw"
    field.values.tofile(file)
    done = subprocess.run(
        [plan.encoder, "study", "encode", file, "--type", str(field.values.dtype), "--dims",
         _join(field.values.shape), "--codecs", codec, "--bounds", _join(plan.bounds), "--clocks",
         _join(plan.clocks), "--actuator", plan.actuator,
         "--directory", plan.directory, "--seconds", str(plan.seconds), "--repetitions",
         str(plan.repetitions)], capture_output=True, text=True)
    file.unlink()
    if done.returncode != 0:
        raise SweepError(f"{field.name}: {done.stderr.strip().removeprefix('diapause: ')}")
    return [_row(field, plan, json.loads(line)) for line in done.stdout.splitlines()]
