#!/usr/bin/env python3
"""The programs in apps/, killed and run again.

apps.py TEST --programs DIR --mpiexec COMMAND --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "behaviour"))

from harness import exit_status_of, killed_and_continued, parser_of  # noqa: E402  from there


def conjugate_gradients_that_are_killed_end_the_same(site):
    killed_and_continued(site, lambda name, iterations, result: ("cg", name, 8, iterations, result))


def particles_that_are_killed_end_the_same(site):
    """Each rank has from 20 to 800 of them, another number in each checkpoint."""
    killed_and_continued(site, lambda name, steps, result: ("particles", name, 300, steps, result))


def main():
    tests = {test.__name__: test for test in (conjugate_gradients_that_are_killed_end_the_same,
                                              particles_that_are_killed_end_the_same)}
    site = parser_of(__doc__, tests).parse_args()
    return exit_status_of(tests[site.test], site)


if __name__ == "__main__":
    sys.exit(main())
