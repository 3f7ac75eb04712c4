"""Started by the command `diapause`, with whatever Python is the first in PATH.

The packages of a distribution are for its own Python only: where the first one has not what is
needed, that one is tried.
"""

import importlib.util
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"
NEEDED = ("numpy", "matplotlib")
NEEDED_BY = {"study-compress": (*NEEDED, "scipy"), "export-vti": ("numpy",),
             "export-h5": ("numpy", "h5py")}
NEEDED_BY_STUDIES = NEEDED_BY["study-compress"]


def use_python_that_has(modules):
    """Goes on, or starts again with the Python of the system."""
    lacks = any(importlib.util.find_spec(module) is None for module in modules)
    if lacks and os.path.exists(SYSTEM_PYTHON) and sys.executable != SYSTEM_PYTHON:
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])


def main():
    use_python_that_has(NEEDED_BY.get("".join(sys.argv[1:2]), NEEDED))
    from diapause.commands import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
