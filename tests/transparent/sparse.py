"""Files on disks that take less room there than they are long."""

import os
import subprocess

from support import Job, Scenario, Skipped, must

MOST_BYTES = 256 << 20

# A file is mapped, and filled where it was empty when the checkpoint is taken.
MAPPED = """
import mmap, os, time
with open("large", "w+b") as large:
    large.truncate(1 << 30)
    memory = mmap.mmap(large.fileno(), 0, {kind}, {protection})
    large.seek(5 << 20)
    large.write(b"kept")
    os.utime("large")
print("ready", flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
print(memory[5 << 20:(5 << 20) + 4], any(memory[7 << 20:9 << 20]), flush=True)
"""
SHARED = MAPPED.format(kind="mmap.MAP_SHARED", protection="mmap.PROT_READ | mmap.PROT_WRITE")


def must_know_holes(place):
    """Other file systems are read as a whole."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", place.work], capture_output=True, text=True,
                          check=True).stdout.strip()
    if kind not in ("ext2/ext3", "xfs", "tmpfs"):
        raise Skipped(f"{kind} does not tell where files have holes")


def must_be_sparse(path, bytes_long=1 << 30):
    found = os.stat(path)
    must(found.st_size == bytes_long and found.st_blocks * 512 < MOST_BYTES,
         f"{path} has {found.st_size} bytes and takes {found.st_blocks * 512}")


def sparse(place, options):
    """Files of all kinds keep their holes, and no image holds these."""
    must_know_holes(place)
    scenario = Scenario(place, [place.own_copy(options.programs / "sparse")])
    scenario.all()
    must(place.image_bytes() < MOST_BYTES, f"images have {place.image_bytes()} bytes")


def filled_holes(place, options):
    """What was written to a hole after the checkpoint is undone, and a file that is gone is made
    with its holes."""
    del options
    must_know_holes(place)
    large = place.work / "large"
    for is_gone in (False, True):
        place.gate.unlink(missing_ok=True)
        job = Job(place, "launch", "--name", "job", "--", "python3", "-c", SHARED)
        job.wait_for_lines(1)
        job.checkpoint("--level", "4")
        job.kill()
        with open(large, "r+b") as file:
            file.seek(7 << 20)
            file.write(b"x" * (2 << 20))
        if is_gone:
            large.unlink()
        job = Job(place, "restart", "job")
        place.gate.touch()
        status, errors = job.wait()
        must(status == 0 and "b'kept' False" in job.output(), f"{status} {job.output()}{errors}")
        must_be_sparse(large)
        must(place.image_bytes() < MOST_BYTES, f"images have {place.image_bytes()} bytes")
        large.unlink()


TESTS = {"sparse": sparse, "filled_holes": filled_holes}
