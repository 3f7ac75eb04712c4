"""clang-tidy-14 over src/ with the flags of the build; .clang-tidy says which checks and why."""

import concurrent.futures
import json
import re
import subprocess
from pathlib import Path

from sources import Problem

TOOL = "clang-tidy-14"
JOBS = 2
_MESSAGE = re.compile(r"^(/.+?):(\d+):\d+: (?:warning|error): (.*)$", re.MULTILINE)


def _distinct(problems):
    """One of each; a header's problems come with every file that includes it, and errors of
    compilation come twice."""
    return sorted(set(problems), key=str)


def _run(tree, build, path):
    command = [TOOL, "--quiet", "-p", str(build), str(tree.root / path)]
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    problems = []
    for file, line, text in _MESSAGE.findall(done.stdout):
        file = Path(file).resolve()
        if file.is_relative_to(tree.root.resolve()):
            problems.append(Problem(file.relative_to(tree.root.resolve()).as_posix(), int(line),
                                    text))
    if done.returncode != 0 and not problems:
        problems.append(Problem(path, 1,
                                f"{TOOL} failed: {(done.stderr or done.stdout).strip()[-500:]}"))
    return problems


def check(tree, build):
    database = Path(build) / "compile_commands.json"
    compiled = {Path(entry["file"]).resolve() for entry in json.loads(database.read_text())}
    files = [p for p in tree.code(["src"]) if p.endswith(".cpp") and not p.endswith("_test.cpp")]
    files = [p for p in files if (tree.root / p).resolve() in compiled]
    if not files:
        return [Problem("src", 1, f"none of its files is in {database}")]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        found = pool.map(lambda path: _run(tree, build, path), files)
    return _distinct(problem for problems in found for problem in problems)
