"""Keeps field-failures.md honest: every line names tests, and they exist."""

import pathlib
import re

from harness import expect

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
NAME = re.compile(r"`([A-Za-z_]\w*\.\w+)`")
TEST_MACRO = re.compile(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", re.MULTILINE)


def tests_of_googletest():
    files = [*ROOT.glob("src/*/*_test.cpp"), *ROOT.glob("tests/*/*_test.cpp")]
    return {".".join(match) for path in files for match in TEST_MACRO.findall(path.read_text())}


def functions_of(path, prefix):
    return {prefix + name
            for name in re.findall(r"^def (\w+)\(\s*site[,)]", path.read_text(), re.MULTILINE)}


def unknown_names(text, own_tests):
    known = tests_of_googletest() | {"behaviour." + name for name in own_tests}
    for script in ("cluster.py", "batch.py"):
        known |= functions_of(HERE.parent / "cluster" / script, "cluster.")
    known |= {"tidy." + path.stem for path in (HERE.parent / "tidy").glob("*.py")}
    return sorted({name for name in NAME.findall(text) if name not in known})


def check(own_tests):
    text = (HERE / "field-failures.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")
            and not line.startswith("| what")]
    expect(len(rows) > 20, f"only {len(rows)} lines in field-failures.md")
    for row in rows:
        expect(NAME.search(row), f"no test is named in: {row}")
    expect(not unknown_names(text, own_tests),
           f"there are no tests {unknown_names(text, own_tests)}")
    expect(unknown_names("`behaviour.no_such_test`", own_tests), "any name passes")
