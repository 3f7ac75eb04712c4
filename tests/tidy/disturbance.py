"""Finds what makes a test fail for another reason than the code: names that several tests use, and
results that are not there."""

import re

from sources import Outline, Problem, blank

# (file, what stands there) -> why no other test meets it
ALLOWED = {
    ("src/config/settings_test.cpp", "/dev/shm"): "compared with, and nothing is made there",
    ("src/config/documentation_test.cpp", "/dev/shm"): "compared with, and nothing is made there",
    ("src/sys/file_test.cpp", "/dev/shm"): "looked at, and nothing is made there",
    ("src/sys/devices_test.cpp", "/dev/shm"): "below a directory of the test's own",
    ("tests/conformance/tier_test.cpp", "/tmp"): "a name that must be refused",
    ("tests/governor/node.cpp", "/dev/shm"):
        "where the directory of its own is made, on the next line",
    ("tests/behaviour/scenarios.py", "/dev/shm"):
        "the default tier, of a job that has the process in its name",
    ("tests/cluster/cluster.py", "/dev/shm"): "on machines of its own, with a memory of their own",
    ("tests/cluster/batch.py", "/dev/shm"): "on machines of its own, with a memory of their own",
}

_SHARED = re.compile(
    r"""["'](/tmp|/var/tmp|/dev/shm)\b|\b(TempDir|temp_directory_path|gettempdir|mktemp)\s*\(""")
_OWN = re.compile(r"XXXXXX|mkdtemp|TemporaryDirectory")
_WORKING_DIRECTORY = re.compile(
    r"""\b(?:[io]?fstream|fopen|create_director(?:y|ies)|mkdir)\b[ \w]*[({]\s*["'](?![/"'])""")
_EXPECTED = re.compile(r"EXPECT_(?:TRUE\((\w+)(?:\.has_value\(\))?\)|NE\((\w+), nullptr\))")


def _shared_names(path, text):
    for line, content in enumerate(text.splitlines(), 1):
        found = _SHARED.search(content)
        name = (found[1] or found[2]) if found else None
        if name and not _OWN.search(content) and (path, name) not in ALLOWED:
            yield Problem(
                path, line,
                f"{name}: a name that another test may use; take a directory of the test's own")
        if _WORKING_DIRECTORY.search(content):
            yield Problem(path, line, "a file in the working directory, which tests share")


def _absent_results(path, text):
    for function in Outline(text).functions:
        for match in _EXPECTED.finditer(function.body):
            name = match[1] or match[2]
            rest = function.body[match.end() :]
            if re.search(rf"\b{name} \?", rest):
                continue
            if re.search(
                    rf"(?:[(=,]|return)\s*\*{name}\b|\*\s*std::move\({name}\)"
                    rf"|std::move\(\*{name}\)|\b{name}->", rest):
                line = function.first_line + function.body.count("\n", 0, match.start())
                yield Problem(
                    path, line,
                    f"'{name}' is used although it may not be there: ASSERT_TRUE, or value_of()")


def check(tree):
    problems = []
    for path in tree.files((".cpp", ".hpp", ".py"), ("src", "tests")):
        is_test = (path.startswith("tests/") and not path.startswith("tests/tidy/")
                   or path.endswith("_test.cpp"))
        if not is_test:
            continue
        text = tree.read(path)
        is_python = path.endswith(".py")
        problems += _shared_names(path, text if is_python else blank(text, strings=False))
        if not is_python:
            problems += _absent_results(path, text)
    return problems
