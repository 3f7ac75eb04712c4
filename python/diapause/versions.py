"""Versions on disk as NumPy arrays, without the program that took them. This needs NumPy and
the command `diapause`."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from diapause import exported
from diapause.arguments import name_of, path_of, whole_number
from diapause.failures import ARGUMENT, CORRUPT, NOT_FOUND, NotFoundError, failure
from diapause.library import NEWEST


_DAMAGED = 2  # exit status of `diapause export`


def _command():
    # The package may be installed together with the command.
    beside = pathlib.Path(__file__).resolve().parents[4] / "bin/diapause"
    named = (os.environ.get("DIAPAUSE_COMMAND") or shutil.which("diapause")
             or (str(beside) if beside.exists() else None))
    if named is None:
        raise NotFoundError(
            "there is no command 'diapause' in PATH, and DIAPAUSE_COMMAND does not name it")
    return named


def _with_type(name, array, dtypes):
    """The array with the type that the caller has given for its bytes, if there is one."""
    import numpy

    if name not in dtypes:
        return array
    wanted = numpy.dtype(dtypes[name])
    if array.dtype != numpy.uint8 or wanted.hasobject:
        raise failure(ARGUMENT, f"dtypes: region '{name}' has elements of {array.dtype}, which "
                      f"{wanted} cannot stand for")
    shape = array.shape
    if wanted.itemsize != 1:
        shape, last = shape[:-1], shape[-1]
        if last != wanted.itemsize:
            raise failure(ARGUMENT, f"dtypes: the elements of region '{name}' have {last} bytes, "
                          f"and those of {wanted} {wanted.itemsize}")
    return array.view(wanted).reshape(shape)


class StoredVersion(Mapping):
    """The regions of a version by name. A value is a global array, or {rank: array} if the blocks
    of the ranks make up none.

    `files` is {rank: directory} with the files of the ranks. `number` is the number of the version.

    Every byte was checked when the version was opened. The arrays are mapped and read-only, and
    valid as long as this object is open. Close it, or use it in a `with` block."""

    about: "dict[str, Any]"
    files: "dict[int, pathlib.Path]"

    def __init__(self, job: str, version: "int | None" = None, *, directory=None, config=None,
                 memory=None, local=None, global_=None,
                 dtypes: "Mapping[str, Any] | None" = None):
        """`dtypes` gives the NumPy type of regions whose elements have none here and come as bytes:
        {"waves": "complex128", "mask": bool}. `config`, `memory`, `local` and `global_` are the
        options of the command. `directory` is a directory for the arrays; by default they lie in a
        temporary one, which `close` removes."""
        name_of("job", job)
        words = [] if version is None else [str(whole_number("version", version, 0, NEWEST - 1))]
        for name, path in (("config", config), ("memory", memory), ("local", local),
                           ("global_", global_)):
            if path is not None:
                words += [f"--{name.rstrip('_')}", os.fsdecode(path_of(name, path))]
        self._scratch = None
        if directory is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="diapause-version-")
            directory = pathlib.Path(self._scratch.name) / "arrays"
        directory = os.fsdecode(path_of("directory", directory))
        command = [_command(), "export", job, *words, "--to", directory]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            self.close()
            status = CORRUPT if done.returncode == _DAMAGED else NOT_FOUND
            raise failure(status, done.stderr.strip())
        self.about = exported.about(directory)
        self.files = exported.files(directory)
        self._regions = {}
        for _, name, rank, array in exported.arrays(directory):
            array = self._typed(name, array, dtypes)
            if rank is None:
                self._regions[name] = array
            else:
                self._regions.setdefault(name, {})[rank] = array

    def _typed(self, name, array, dtypes):
        try:
            return array if dtypes is None else _with_type(name, array, dtypes)
        except BaseException:
            self.close()
            raise

    @property
    def number(self) -> int:
        return self.about["version"]

    def __repr__(self) -> str:
        return (f"<diapause.StoredVersion {self.number} of {self.about['job']}: "
                f"{', '.join(self._regions)}>")

    def __getitem__(self, name: str) -> Any:
        return self._regions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._regions)

    def __len__(self) -> int:
        return len(self._regions)

    def close(self) -> None:
        self._regions = {}
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def __enter__(self) -> StoredVersion:
        return self

    def __exit__(self, *_) -> None:
        self.close()
