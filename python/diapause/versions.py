"""Versions on disk as NumPy arrays, without the job that took them. Needs NumPy and the command `diapause`."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping

from diapause.failures import NotFoundError

_OF_A_RANK = re.compile(r"(.+)\.r(\d+)\.npy")


def _command():
    beside = pathlib.Path(__file__).resolve().parents[4] / "bin/diapause"  # where the package is installed with the command
    named = os.environ.get("DIAPAUSE_COMMAND") or shutil.which("diapause") or (str(beside) if beside.exists() else None)
    if named is None:
        raise NotFoundError("there is no command 'diapause' in PATH, and DIAPAUSE_COMMAND does not name it")
    return named


class StoredVersion(Mapping):
    """The regions of a version by name: a global array, or {rank: array} where the ranks' pieces make up none.

    Every byte was checked when the version was opened. The arrays are mapped and read-only, and last as long as this object is
    open; close it, or use it in a `with`."""

    def __init__(self, job, version=None, directory=None, **places):
        """`places`: config, memory, local, global_, as of the command. `directory`: where the arrays are kept; else among
        the temporary files, and gone at the end."""
        import numpy

        self._scratch = None
        if directory is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="diapause-version-")
            directory = pathlib.Path(self._scratch.name) / "arrays"
        words = [_command(), "export", job, *([] if version is None else [str(version)]), "--to", str(directory)]
        for name, path in places.items():
            words += [f"--{name.rstrip('_')}", str(path)]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            self.close()
            raise NotFoundError(done.stderr.strip())
        self.about = json.loads((pathlib.Path(directory) / "version.json").read_text())
        self._regions = {}
        for path in sorted(pathlib.Path(directory).glob("*.npy")):
            array = numpy.load(path, mmap_mode="r")
            of_rank = _OF_A_RANK.fullmatch(path.name)
            if of_rank:
                self._regions.setdefault(of_rank[1], {})[int(of_rank[2])] = array
            else:
                self._regions[path.name.removesuffix(".npy")] = array

    @property
    def number(self):
        return self.about["version"]

    def __getitem__(self, name):
        return self._regions[name]

    def __iter__(self):
        return iter(self._regions)

    def __len__(self):
        return len(self._regions)

    def close(self):
        self._regions = {}
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
