"""A program that is started again after each failure, at times that were drawn before: what its schedule costs in all."""

import os
import pathlib
import random
import signal
import subprocess
import time


def gaps(mtbf_s, seed):
    """Seconds from each start to the failure that ends it, if the program is not done before."""
    draws = random.Random(seed)
    while True:
        yield draws.expovariate(1 / mtbf_s)


def _kill_ranks(launcher):
    """They are children of the launcher, which ends when they do."""
    children = pathlib.Path(
        f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text(encoding="ascii").split()
    for child in children:
        try:
            os.kill(int(child), signal.SIGKILL)
        except ProcessLookupError:
            pass  # it was done just now


def seconds_until_done(command, environment, failures):
    """Of all starts together, from the first to the end of the last, and how many starts failed."""
    begin, failed = time.monotonic(), 0
    for gap_s in failures:
        launcher = subprocess.Popen([str(word) for word in command], env=environment,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        try:
            said = launcher.communicate(timeout=gap_s)[1]
        except subprocess.TimeoutExpired:
            _kill_ranks(launcher)
            said = launcher.communicate()[1]
            failed += 1
            if launcher.returncode != 0:
                continue
        if launcher.returncode != 0:
            raise RuntimeError(f"{command[0]}: exit status {launcher.returncode}\n{said[-2000:]}")
        return time.monotonic() - begin, failed
