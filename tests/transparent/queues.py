"""Message queues of POSIX, which are not restored."""

from support import Job, must, until

QUEUE = """
import ctypes, os, sys, time
library = ctypes.CDLL(None, use_errno=True)
gate = os.environ["TRANSPARENT_GATE"]

def wait_for(name):
    while not os.path.exists(gate + name): time.sleep(0.01)

queue = library.mq_open(b"/diapause-queue", os.O_RDWR | os.O_CREAT, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
print("open", flush=True)
wait_for(".close")
os.close(queue)
print("closed", flush=True)
wait_for(".unlink")
assert library.mq_unlink(b"/diapause-queue") == 0
print("gone", flush=True)
wait_for("")
print("ends", flush=True)
"""


def queues(place, options):
    """A queue is named and no checkpoint is taken, whether a process has it open or not."""
    del options
    job = Job(place, "launch", "--name", "job", "--", "python3", "-c", QUEUE)

    def must_refuse(*words):
        status, _, errors = place.verb("checkpoint", "job")
        must(status == 3 and all(word in errors for word in words), f"{status} {errors}")
        return errors

    job.wait_for_lines(1)
    must_refuse("open on the POSIX message queue /diapause-queue",
                "has the POSIX message queue /diapause-queue")
    place.gate.with_name(place.gate.name + ".close").touch()
    job.wait_for_lines(2)
    errors = must_refuse("has the POSIX message queue /diapause-queue")
    must("descriptor" not in errors, errors)
    place.gate.with_name(place.gate.name + ".unlink").touch()
    job.wait_for_lines(3)
    job.checkpoint()
    job.kill()
    job = Job(place, "restart", "job")
    job.checkpoint()
    place.gate.touch()
    until(lambda: "ends" in job.output(), "the restarted job does not end")
    status, errors = job.wait()
    must(status == 0, f"ended with {status}: {errors}")


TESTS = {"queues": queues}
