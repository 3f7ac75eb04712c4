"""Shared by the tests of the command: programs of the build, and checkpoints to look at."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["DIAPAUSE_TEST_BUILD"])
DIAPAUSE = BUILD / "src/diapause"
MINIMAL = BUILD / "examples/minimal"
HEAT = BUILD / "apps/heat/heat"
FILES = BUILD / "examples/files"
MPIEXEC = os.environ.get("DIAPAUSE_TEST_MPIEXEC")

LIMIT_S = 120


def environment(**settings):
    """Returns the caller's environment, without settings of Diapause except these. The tests look
    at what programs leave at their end."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("DIAPAUSE_")}
    return plain | {"DIAPAUSE_FINISH_KEEP": "all"} | {key: str(value)
                                                      for key, value in settings.items()}


class Tiers:
    """A memory and a global tier in a directory of their own."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.memory = self.root / "memory"
        self.global_ = self.root / "global"

    def settings(self):
        return {"DIAPAUSE_MEMORY_PATH": self.memory, "DIAPAUSE_GLOBAL_PATH": self.global_}

    def copy(self, root):
        """With links instead of files: own() a file before changing it."""
        shutil.copytree(self.root, root, copy_function=os.link)
        return Tiers(root)

    def files(self, pattern):
        return sorted(self.root.glob(pattern))

    def file(self, pattern):
        found = self.files(pattern)
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]


class CommandTest(unittest.TestCase):
    """Each test has an empty directory, removed afterwards."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="diapause-cli-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def diapause(self, *arguments, tiers=None, status=0, limit_s=LIMIT_S, **settings):
        """Runs the command, which must end with that status; returns (standard
        output, standard error)."""
        settings = (tiers.settings() if tiers else {}) | settings
        done = subprocess.run([DIAPAUSE, *map(str, arguments)], cwd=self.scratch,
                              env=environment(**settings),
                              capture_output=True, text=True, timeout=limit_s)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def report(self, *arguments, tiers, status=0):
        """The JSON document that the command prints."""
        document = json.loads(self.diapause(*arguments, "--json", tiers=tiers, status=status)[0])
        self.assertEqual(document["schema"], 1)
        return document

    def assert_in_order(self, parts, text):
        position = 0
        for part in parts:
            found = text.find(part, position)
            self.assertGreaterEqual(found, 0, f"'{part}' is not where it should be in:\n{text}")
            position = found + len(part)


def own(path):
    """Makes a file that is shared with other tests this test's own."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    return path


def flip(path, offset, bit=0):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    own(path).write_bytes(data)


def main():
    unittest.main(verbosity=2, argv=sys.argv[:1] + sys.argv[1:])
