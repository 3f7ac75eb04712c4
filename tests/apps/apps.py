#!/usr/bin/env python3
"""The programs in apps/, killed and run again.

apps.py TEST --programs DIR --mpiexec COMMAND --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "behaviour"))

from harness import (FOREVER, Place, exit_status_of, expect,  # noqa: E402  from there
                     killed_and_continued, newest_version, parser_of)


def conjugate_gradients_that_are_killed_end_the_same(site):
    killed_and_continued(site, lambda name, iterations, result: ("cg", name, 8, iterations, result))


def particles_that_are_killed_end_the_same(site):
    """Each rank has from 20 to 800 of them, another number in each checkpoint."""
    killed_and_continued(site, lambda name, steps, result: ("particles", name, 300, steps, result))


def heat_that_cannot_continue_keeps_its_checkpoints(site):
    """They are of another size. To begin anew would remove them at the end."""
    with Place(site, ranks=2, level1={"every_calls": 5}) as place:
        run = place.start("heat", "--name", "kept", "--size", 64, "--iterations", FOREVER)
        run.wait_for(lambda: newest_version(place, "kept") > 20, "versions of a running job")
        run.kill("kept", rank=1)
        run.be_killed()
        images = place.files("memory", "r0.img")
        other = place.start("heat", "--name", "kept", "--size", 80, "--iterations", 20)
        expect(other.wait() != 0, "it began anew")
        said = other.stderr.read_text()
        expect("not beginning anew" in said and "field" in said, f"it said {said!r}")
        expect(images and place.files("memory", "r0.img") == images, "checkpoints are gone")


def main():
    tests = {test.__name__: test for test in (conjugate_gradients_that_are_killed_end_the_same,
                                              particles_that_are_killed_end_the_same,
                                              heat_that_cannot_continue_keeps_its_checkpoints)}
    site = parser_of(__doc__, tests).parse_args()
    return exit_status_of(tests[site.test], site)


if __name__ == "__main__":
    sys.exit(main())
