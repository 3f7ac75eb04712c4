"""Checkpoints of Python programs, and what the checkpoints of a job cost.

    import diapause

    with diapause.open("mycode", comm) as run:
        run.protect("field", field)
        for step in run.steps(1000):
            compute(field)

These modules are for programs that take checkpoints:

instance   `Instance`, which `diapause.open` returns
arguments  checks of arguments
attributes arrays that the program may replace
states     dictionaries that are pickled
memory     address, type and size of the values of an object
library    the functions of the shared libraries
failures   exceptions
versions   versions on disk as arrays, without the program: `open_version`

The other modules read what a job has left, and need matplotlib (pip install diapause[plots]):

records    reads ledgers and power traces
account    attributes energy to the program and to phases
timeline   puts power and phases on one time axis
pictures   draws them
page       puts tables and pictures into one HTML file
files      writes files
commands   defines the options
study      repeats published studies
"""

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from diapause.failures import (AgainError, ArgumentError, BusyError, CommError, ConfigError,
                               CorruptError, DeniedError, DiapauseError, FullError,
                               InputOutputError, InternalError, MismatchError, NoMemoryError,
                               NotFoundError, OffError, WaitTimeoutError)
from diapause.instance import (CAPTURED, CHANGING, CONSTANT, LATTICE, NEWEST, STABLE, SZ3, ZFP,
                               Instance, StoredRegion)
from diapause.library import CheckpointInfo, Progress, RestartInfo, StopInfo

if TYPE_CHECKING:  # open_version imports it when it is called
    from diapause.versions import StoredVersion

__all__ = [
    "open", "open_version", "Instance", "StoredRegion", "CheckpointInfo", "Progress", "RestartInfo",
    "StopInfo", "NEWEST", "CAPTURED", "CHANGING", "STABLE", "CONSTANT", "LATTICE", "SZ3", "ZFP",
    "AgainError", "DiapauseError", "ArgumentError", "BusyError", "CommError", "ConfigError",
    "CorruptError", "DeniedError", "FullError", "InputOutputError", "InternalError",
    "MismatchError", "NoMemoryError", "NotFoundError", "OffError", "WaitTimeoutError",
]


Path = Union[str, "os.PathLike[str]"]


def open_version(job: str, version: "int | None" = None, *, directory: "Path | None" = None,
                 config: "Path | None" = None, memory: "Path | None" = None,
                 local: "Path | None" = None, global_: "Path | None" = None,
                 dtypes: "Optional[Mapping[str, Any]]" = None) -> "StoredVersion":
    """Opens a version on disk as a mapping of region names to NumPy arrays, without the program
    that took it. Every byte is checked, and the arrays are mapped and read-only. Without a number
    it opens the newest complete version. Use it in a `with` block. The command `diapause` must be
    installed. `config`, `memory`, `local` and `global_` are its options, and `directory` is a
    directory for the arrays. `dtypes` gives the NumPy types of regions whose elements are stored as
    bytes, such as complex numbers: {"waves": "complex128"}. A damaged version is a CorruptError."""
    from diapause.versions import StoredVersion

    return StoredVersion(job, version, directory=directory, config=config, memory=memory,
                         local=local, global_=global_, dtypes=dtypes)


def open(name: str, comm: Optional[Any] = None, config: "Path | None" = None) -> Instance:
    """Opens an instance for this process, or on all ranks of an mpi4py communicator. `name` is 1 to
    64 letters, digits, '.', '_' and '-'. `config` is the path of a TOML file; without it the file
    of $DIAPAUSE_CONFIG counts, if that is set. Messages go to the logger `diapause`. Collective."""
    return Instance(name, comm, config)
