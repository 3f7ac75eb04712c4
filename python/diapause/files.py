"""Opens and writes files, and says what keeps a command from its end."""

from __future__ import annotations

import os
import pathlib
import stat
import tempfile


class Trouble(Exception):
    """Ends a command. Its text says which file or number is wrong, and what to do."""


def opened(path):
    """A regular file, to read its bytes; Trouble for a pipe, a terminal or a device, because they
    might be waited for without end."""

    def without_waiting(path, flags):
        return os.open(path, flags | os.O_NONBLOCK)

    file = open(path, "rb", opener=without_waiting)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Trouble(f"{path} is not a regular file")
    return file


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
