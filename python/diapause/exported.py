"""The directory that `diapause export` has made of a version: arrays, files, and what the
version is. Needs NumPy."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import urllib.parse

_OF_A_RANK = re.compile(r"(.+)\.r(\d+)\.npy")


def about(folder):
    """Returns what `diapause show --json` says."""
    return json.loads((pathlib.Path(folder) / "version.json").read_text())


def arrays(folder):
    """(path, name of the region, rank, mapped array) in the order of names; the rank is None
    for a global array."""
    import numpy

    for path in sorted(pathlib.Path(folder).glob("*.npy")):
        of_rank = _OF_A_RANK.fullmatch(path.name)
        name = of_rank[1] if of_rank else path.name.removesuffix(".npy")
        yield (path, urllib.parse.unquote(name), int(of_rank[2]) if of_rank else None,
               numpy.load(path, mmap_mode="r"))


def files(folder):
    """{rank: directory with the files that it has in the version}"""
    return {int(path.name[1:]): path for path in sorted(pathlib.Path(folder).glob("files/r*"))}


def written(folder, path, module):
    """Has `write(folder, path)` of the module fill a file, which appears at the path when it is
    whole. Removes the directory, also if there is not what the module needs."""
    path = pathlib.Path(path)
    try:
        write = importlib.import_module(module).write
        handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            os.close(handle)
            write(folder, new)
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise
    finally:
        shutil.rmtree(folder)
    return path
