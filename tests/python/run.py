#!/usr/bin/env python3
"""Runs a test of the package with a Python that has what it needs, as the command
`diapause` would find it."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import start  # noqa: E402  from there

if __name__ == "__main__":
    start.use_python_that_has(start.NEEDED_BY_STUDIES)
    import unittest

    unittest.main(module=sys.argv[1].removesuffix(".py"), argv=sys.argv[:1] + sys.argv[2:],
                  verbosity=2)
