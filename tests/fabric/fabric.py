#!/usr/bin/env python3
"""Runs programs that use InfiniBand verbs in a machine with software adapters.

    fabric.py TEST --cache DIRECTORY --diapause COMMAND --programs DIRECTORY
"""

import argparse
import pathlib
import shlex
import sys
import tempfile

import machine

SKIPPED = 77
LIMIT_S = 400
FOLDER = pathlib.Path(__file__).parent


class Failed(Exception):
    pass


def run_script(arguments, name, **settings):
    """Runs guest.sh and then the script `name` in the machine, with shell variables of these
    settings. Fails with all that was written unless its status is 0."""
    booted = machine.Machine(arguments.cache)
    with tempfile.TemporaryDirectory(prefix="diapause-fabric-") as share:
        variables = {"diapause": arguments.diapause, "programs": arguments.programs} | settings
        text = "set -eu\n" + "".join(f"{key}={shlex.quote(str(value))}\n"
                                     for key, value in variables.items())
        text += (FOLDER / "guest.sh").read_text() + (FOLDER / name).read_text()
        (pathlib.Path(share) / "script").write_text(text)
        status, output = booted.run(share, LIMIT_S)
    if status != 0:
        raise Failed(f"{name} ended with status {status}:\n{output}")
    return output


def packaged(arguments):
    """The ping-pongs that Debian packages go from adapter to adapter."""
    output = run_script(arguments, "packaged.sh")
    for name in ("rc", "ud", "srq"):
        if f"{name}: passed" not in output:
            raise Failed(f"no ping-pong of {name}:\n{output}")


def checkpoints(arguments):
    """A job whose messages are on their way is checkpointed and goes on, and is killed and
    restarted on other adapters."""
    output = run_script(arguments, "checkpoints.sh", messages=20000, rounds=2, checkpoints=3)
    if "passed: " not in output:
        raise Failed(output)
    print(output)


TESTS = {test.__name__: test for test in (packaged, checkpoints)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("test", choices=TESTS)
    for name in ("--cache", "--diapause", "--programs"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    try:
        TESTS[arguments.test](arguments)
    except machine.Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
