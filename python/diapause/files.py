"""Writes files, and says what keeps a command from its end."""

from __future__ import annotations

import os
import pathlib
import tempfile


class Trouble(Exception):
    """What ends a command: its text says which file or number is wrong, and what to do."""


def written(path, data):
    """Writes the bytes under their name only when they are whole; returns the path."""
    path = pathlib.Path(path)
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(new, 0o666 & ~_umask())
        os.replace(new, path)
    except OSError:
        os.unlink(new)
        raise
    return path


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
