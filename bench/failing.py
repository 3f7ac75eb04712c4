"""A program that is started again after each failure, at times that were drawn before: what its
schedule costs in all."""

import random
import signal
import subprocess
import time

from diapause.study import killing


def gaps(mtbf_s, seed):
    """Seconds from each start to the failure that ends it, if the program is not done before."""
    draws = random.Random(seed)
    while True:
        yield draws.expovariate(1 / mtbf_s)


def seconds_until_done(command, environment, failures):
    """Returns the seconds of all starts together, from the first to the end of the last, and
    how many starts failed."""
    begin, failed = time.monotonic(), 0
    for gap_s in failures:
        with killing.started([str(word) for word in command], environment, stderr=subprocess.PIPE,
                             text=True) as launcher:
            try:
                said = launcher.communicate(timeout=gap_s)[1]
            except subprocess.TimeoutExpired:
                killing.end(launcher)
                said = launcher.communicate()[1]
        if launcher.returncode == 0:
            return time.monotonic() - begin, failed
        if launcher.returncode != -signal.SIGKILL:
            raise RuntimeError(f"{command[0]}: exit status {launcher.returncode}\n{said[-2000:]}")
        failed += 1
