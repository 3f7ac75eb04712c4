"""Does what users of NumPy do: checkpoints of an array, and copies of one between files.

    from_python.py checkpoint MIB       prints the seconds that a checkpoint of level 1 blocks,
                                        after three that warm up
    from_python.py keep NAME MIB        leaves a checkpoint of level 1 of the job NAME
    from_python.py write FILE.npy MIB   writes the array of such a checkpoint
    from_python.py copy FILE.npy FILE.h5
"""

import sys
import time

WARM_UPS = 3


def array(mib):
    import numpy

    return numpy.random.default_rng(1).random((int(mib), 1 << 17))


def checkpoint(mib):
    import diapause

    with diapause.open("bench") as run:
        run.protect("data", array(mib))
        for version in range(1, WARM_UPS + 2):
            start_s = time.perf_counter()
            run.checkpoint(version, 1)
            blocked_s = time.perf_counter() - start_s
            run.wait(version, 1, 600)
    print(blocked_s)


def keep(name, mib):
    import diapause

    with diapause.open(name) as run:
        run.protect("data", array(mib))
        run.checkpoint(1, 1)


def write(path, mib):
    import numpy

    numpy.save(path, array(mib))


def copy(source, target):
    import h5py
    import numpy

    with h5py.File(target, "w") as out:
        out.create_dataset("data", data=numpy.load(source))


if __name__ == "__main__":
    {"checkpoint": checkpoint, "keep": keep, "write": write,
     "copy": copy}[sys.argv[1]](*sys.argv[2:])
