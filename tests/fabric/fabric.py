#!/usr/bin/env python3
"""Runs programs that use InfiniBand verbs in a machine with software adapters.

    fabric.py TEST --cache DIRECTORY --diapause COMMAND --programs DIRECTORY [--heat PROGRAM]
"""

import argparse
import operator
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

import machine

SKIPPED = 77
LIMIT_S = 400
STRESS_S = 1500
FOLDER = pathlib.Path(__file__).parent


class Failed(Exception):
    pass


def run_script(arguments, name, limit_s=LIMIT_S, clock_counts=False, **settings):
    """Runs guest.sh and then the script `name` in the machine, with shell variables of these
    settings. Fails with all that was written unless its status is 0."""
    booted = machine.Machine(arguments.cache)
    with tempfile.TemporaryDirectory(prefix="diapause-fabric-") as share:
        variables = {"diapause": arguments.diapause, "programs": arguments.programs} | settings
        text = "set -eu\n" + "".join(f"{key}={shlex.quote(str(value))}\n"
                                     for key, value in variables.items())
        text += (FOLDER / "guest.sh").read_text() + (FOLDER / name).read_text()
        (pathlib.Path(share) / "script").write_text(text)
        status, output = booted.run(share, limit_s, clock_counts)
    if status != 0:
        raise Failed(f"{name} ended with status {status}:\n{output}")
    return output


def symbols(arguments):
    """Programs that were linked with the packaged librdmacm find all of it in ours."""
    def symbols_of(path):
        output = subprocess.run(["nm", "-D", "--defined-only", path], check=True,
                                capture_output=True, text=True).stdout
        return {line.split()[-1] for line in output.splitlines()}

    libraries = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True,
                               text=True).stdout
    packaged_one = re.search(r"librdmacm\.so\.1 .*=> (\S+)", libraries)
    if packaged_one is None:
        raise machine.Unavailable("there is no librdmacm")
    ours = pathlib.Path(arguments.diapause).parent / "../lib/diapause/verbs/librdmacm.so.1"
    missing = symbols_of(packaged_one[1]) - symbols_of(ours)
    if missing:
        raise Failed(f"librdmacm.so.1 lacks {', '.join(sorted(missing))}")


def packaged(arguments):
    """The ping-pongs that Debian packages go from adapter to adapter."""
    output = run_script(arguments, "packaged.sh")
    for name in ("rc", "ud", "srq"):
        if f"{name}: passed" not in output:
            raise Failed(f"no ping-pong of {name}:\n{output}")


def run_pingpongs(arguments, kinds, nodes):
    output = run_script(arguments, "pingpongs.sh", limit_s=STRESS_S, iterations=10000, nodes=nodes,
                        kinds=" ".join(kind.replace(" ", "+") for kind in kinds))
    for name in kinds:
        if f"{name}: passed" not in output.splitlines():
            raise Failed(output)


def pingpongs(arguments):
    """They are checkpointed on their way, killed, and restarted on other adapters."""
    run_pingpongs(arguments, ("rc", "rc -N", "ud", "srq"), nodes=1)


def pingpongs_of_nodes(arguments):
    """The same of two on two emulated nodes. The second begins to use verbs when nobody else of
    its node has done so, and after the first was checkpointed."""
    run_pingpongs(arguments, ("rc", "ud"), nodes=2)


def run_connections(arguments, kinds, nodes):
    tools = machine.unpacked(arguments.cache, "rdmacm-utils") / "usr/bin"
    output = run_script(arguments, "connections.sh", limit_s=STRESS_S, tools=tools, nodes=nodes,
                        iterations=3000, checkpoints=3, kinds=" ".join(kinds))
    for name in kinds:
        if f"{name}: passed" not in output.splitlines():
            raise Failed(output)


def connections(arguments):
    """Programs that connect by rdma_cm are checkpointed while they wait and on their way, killed,
    and restarted on other adapters."""
    run_connections(arguments, ("strangers", "rping", "rping_again", "rdma_server", "ucmatose",
                                "udaddy"), nodes=1)


def connections_of_nodes(arguments):
    """The same of two on two emulated nodes."""
    run_connections(arguments, ("rping_again", "rdma_server"), nodes=2)


def libfabric(arguments):
    """Ranks of Open MPI that use verbs by libfabric, and connect by rdma_cm."""
    output = run_script(arguments, "libfabric.sh", limit_s=STRESS_S, heat=arguments.heat,
                        iterations=24000)
    if "passed" not in output.splitlines():
        raise Failed(output)


def cost(arguments):
    """No test: prints what the library of Diapause costs a message in this machine, by packaged
    programs that measure latency and rate, of which each runs with it and without it in turn."""
    tools = machine.unpacked(arguments.cache, "perftest") / "usr/bin"
    libraries = [machine.unpacked(arguments.cache, package) / "usr/lib/x86_64-linux-gnu"
                 for package in ("libibumad3", "libpci3")]
    output = run_script(arguments, "cost.sh", limit_s=STRESS_S, clock_counts=True, tools=tools,
                        libraries=":".join(map(str, libraries)), rounds=7)
    times = {}
    for program, with_or_without, microseconds in re.findall(
            r"(.+): (with|without|with_thread) ([\d.]+)", output):
        times.setdefault(program, {}).setdefault(with_or_without, []).append(float(microseconds))
    if not times or any(not {"with", "without"} <= one.keys() for one in times.values()):
        raise Failed(output)
    for program, one in times.items():
        print(f"{program}: {statistics.median(one['with'])} us a message")
        for other in ("without", "with_thread"):
            ratios = map(operator.truediv, one["with"], one.get(other, []))
            if other in one:
                print(f"  {statistics.median(ratios):.4f} times as long as {other}, "
                      f"{statistics.median(one[other])} ({min(one[other])} to {max(one[other])})")


def run_checkpoints(arguments, options, **settings):
    output = run_script(arguments, "checkpoints.sh", options=options, **settings)
    if "passed: " not in output:
        raise Failed(output)
    print(f"exchange {options}\n{output}")


def checkpoints(arguments):
    """A job whose messages are on their way is checkpointed and goes on, and is killed and
    restarted on other adapters."""
    run_checkpoints(arguments, "", messages=6000, rounds=2, checkpoints=3)


def short(arguments):
    """The same in half a minute."""
    run_checkpoints(arguments, "", messages=3000, rounds=1, checkpoints=2)


def nodes(arguments):
    """The same of two processes on two emulated nodes."""
    run_checkpoints(arguments, "", messages=6000, rounds=2, checkpoints=3, nodes=2)


def extended(arguments):
    """The same of threads that post by ibv_wr_* to two adapters of their process."""
    run_checkpoints(arguments, "threads extended", messages=6000, rounds=2, checkpoints=3)


def refusals(arguments):
    """What cannot be checkpointed is refused by name."""
    output = run_script(arguments, "refusals.sh")
    if "passed" not in output.splitlines():
        raise Failed(output)
    print(output)


def stress(arguments):
    """The same, hundreds of times."""
    for options, messages in (("", 80000), ("threads extended", 50000)):
        run_checkpoints(arguments, options, limit_s=STRESS_S, messages=messages, rounds=10,
                        checkpoints=12)


TESTS = {test.__name__: test
         for test in (symbols, short, packaged, pingpongs, pingpongs_of_nodes, connections,
                      connections_of_nodes, libfabric, checkpoints, nodes, extended, refusals,
                      stress, cost)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("test", choices=TESTS)
    for name in ("--cache", "--diapause", "--programs"):
        parser.add_argument(name, required=True)
    parser.add_argument("--heat", help="the program of apps/ without checkpoints of its own")
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
