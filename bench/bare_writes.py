"""Writes to a file now and then, as a checkpoint would, but with nothing around it."""

import mmap
import os
import threading

BLOCK = 16 << 20


class BareWrites:
    """Writes so many MiB to the file by O_DIRECT, and syncs, whenever so many seconds are over,
    until it is left. The file is written over each time."""

    def __init__(self, path, mib, every_s):
        self.path = path
        self.mib = mib
        self.every_s = every_s
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.write)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.path.unlink()

    def write(self):
        block = mmap.mmap(-1, BLOCK)
        block.write(os.urandom(BLOCK))
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
        while not self.ended.wait(self.every_s):
            os.lseek(file, 0, os.SEEK_SET)
            for _ in range(max((self.mib << 20) // BLOCK, 1)):
                os.writev(file, [block])
            os.fsync(file)
        os.close(file)
