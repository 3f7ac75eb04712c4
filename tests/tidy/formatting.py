"""All C and C++ is as clang-format-14 leaves it."""

import re
import subprocess

from sources import Problem

TOOL = "clang-format-14"
_MESSAGE = re.compile(r"^(.+?):(\d+):\d+: error:", re.MULTILINE)


def check(tree):
    files = tree.code()
    done = subprocess.run([TOOL, "--dry-run", "-Werror", *files], cwd=tree.root,
                          capture_output=True, text=True)
    first_lines = {}
    for path, line in _MESSAGE.findall(done.stderr):
        first_lines.setdefault(path, int(line))
    if done.returncode != 0 and not first_lines:
        return [Problem(".clang-format", 1, done.stderr.strip())]
    return [Problem(path, line, "not formatted; run `make format`")
            for path, line in first_lines.items()]


def fix(tree):
    subprocess.run([TOOL, "-i", *tree.code()], cwd=tree.root, check=True)
