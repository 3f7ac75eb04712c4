#!/usr/bin/env python3
"""The programs in apps/, killed and run again.

apps.py TEST --programs DIR --mpiexec COMMAND --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "behaviour"))

from harness import exit_status_of, killed_and_continued  # noqa: E402  from there


def conjugate_gradients_that_are_killed_end_the_same(site):
    killed_and_continued(site, lambda name, iterations, result: ("cg", name, 8, iterations, result))


def main():
    tests = {test.__name__: test for test in (conjugate_gradients_that_are_killed_end_the_same,)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", choices=tests, metavar="test")
    for folder in ("--programs", "--work"):
        parser.add_argument(folder, type=pathlib.Path)
    parser.add_argument("--mpiexec")
    site = parser.parse_args()
    site.work.mkdir(parents=True, exist_ok=True)
    site.work, site.programs = site.work.resolve(), site.programs.resolve()
    return exit_status_of(tests[site.test], site)


if __name__ == "__main__":
    sys.exit(main())
