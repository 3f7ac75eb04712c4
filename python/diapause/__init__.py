"""Checkpoints of Python programs, and what the checkpoints of a job cost.

    import diapause

    with diapause.open("mycode", comm) as run:
        run.protect("field", field)
        for step in run.steps(1000):
            compute(field)

instance   checkpoints of a running program: `open`, Instance
memory     where the values of an object lie
library    the shared libraries as they are
failures   exceptions

versions   versions on disk as arrays, without the job: `open_version`

The rest reads what a job left behind, and needs matplotlib (pip install diapause[plots]):

records    reads ledgers and power traces
account    adds up who used the energy
timeline   power over time, and phases beside it
pictures   draws
page       puts tables and pictures into one HTML file
files      writes them
commands   what can be typed
study      compression, beside the published study
"""

import os
from typing import Any, Optional

from diapause.failures import (AgainError, ArgumentError, BusyError, CommError, ConfigError, CorruptError,
                               DeniedError, DiapauseError, FullError, InputOutputError, InternalError, MismatchError,
                               NoMemoryError, NotFoundError, OffError, WaitTimeoutError)
from diapause.instance import (CAPTURED, CHANGING, CONSTANT, LATTICE, NEWEST, STABLE, SZ3, ZFP, Instance, StoredRegion)
from diapause.library import CheckpointInfo, Progress, RestartInfo, StopInfo

__all__ = [
    "open", "open_version", "Instance", "StoredRegion", "CheckpointInfo", "Progress", "RestartInfo", "StopInfo", "NEWEST", "CAPTURED",
    "CHANGING", "STABLE", "CONSTANT", "LATTICE", "SZ3", "ZFP", "AgainError", "DiapauseError", "ArgumentError",
    "BusyError", "CommError", "ConfigError", "CorruptError", "DeniedError", "FullError", "InputOutputError", "InternalError", "MismatchError",
    "NoMemoryError", "NotFoundError", "OffError", "WaitTimeoutError",
]


def open_version(job: str, version: "int | None" = None, **options: Any) -> Any:
    """A version on disk as a mapping of region names to NumPy arrays, without the job that took it: every byte is checked,
    and the arrays are mapped and read-only. The newest that is complete, if no number is given. Use it in a `with`.
    `options`: `config`, `memory`, `local`, `global_` as of the command `diapause`, which this needs; `directory`, where the
    arrays are to be kept."""
    from diapause.versions import StoredVersion

    return StoredVersion(job, version, **options)


def open(name: str, comm: Optional[Any] = None, config: "str | os.PathLike | None" = None) -> Instance:
    """Opens the checkpoints `name` (letters, digits, '.', '_', '-', at most 64) for this process, or on all ranks of an
    mpi4py communicator. `config` is the path of a TOML file; without it $DIAPAUSE_CONFIG counts, or the defaults.
    Collective. The log goes to the logger `diapause`."""
    return Instance(name, comm, config)
