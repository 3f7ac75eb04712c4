"""The library must not do this to its program: print, exit, use functions that are not thread-safe.
And there are no notes to self."""

import re

from sources import Problem, blank

# Folders that become part of libdiapause; the command prints and exits, that is its business.
NOT_LIBRARY = ("src/cli/",)

FORBIDDEN = {
    r"\bstd::(cout|cerr|clog)\b": "the library speaks through its log sink",
    r"(?<![\w.>:])(?:std::)?(?:v?f?printf|puts|fputs|putchar|perror)\s*\(":
        "the library speaks through its log sink",
    r"\bfmt::(?:v?print|println)\s*\(": "the library speaks through its log sink",
    r"(?<![\w.>])(?<!\w::)(?:std::|::)?(?:exit|_exit|_Exit|quick_exit|abort|terminate)\s*\(":
        "the library never takes the program down",
    r"(?<![\w.>])(?<!\w::)(?:std::|::)?"
    r"(?:strerror|localtime|gmtime|ctime|asctime|strtok|rand|srand|setlocale)\s*\(":
        "not safe beside the program's other threads",
    r"(?<![\w.>])(?<!\w::)(?:std::|::)?"
    r"(?:ato[fil]|ato?ll|strto[dfl]d?|sto[dfil]|stoll?|stoull?|v?[fs]?scanf)\s*\(":
        "takes a number for another one in the locale of the program, or says nothing of one that "
        "is none: std::from_chars",
}

# (file, call) -> why it must be there
ALLOWED = {
    ("src/process/fill_behind.cpp", "::_exit"):
        "ends the process that guards a job while it is filled, and the one that starts it",
    ("src/process/keeper.cpp", "::_exit"):
        "ends process 1 of a job, which does nothing but bury, with the status of the command",
    ("src/sys/child.cpp", "::_exit"):
        "ends a child between fork and exec, where nothing else is possible",
    ("src/sys/remote_command.cpp", "::_exit"):
        "ends a child between fork and exec, or one that has served its connection",
    ("src/sys/lifeline.cpp", "::_exit"):
        "ends a process that does nothing else, which has left its work to its child",
    ("src/sys/supervisor.cpp", "::_exit"):
        "ends a child between fork and exec, where nothing else is possible",
}

_NOTE = re.compile(r"\b(TODO|FIXME|XXX)\b")


def _in_library(path):
    return (path.startswith("src/") and not path.endswith("_test.cpp")
            and not path.startswith(NOT_LIBRARY))


def check(tree):
    problems = []
    for path in tree.code():
        text = tree.read(path)
        for line, content in enumerate(text.splitlines(), 1):
            if _NOTE.search(content):
                problems.append(Problem(
                    path, line,
                    f"'{_NOTE.search(content)[1]}': do it, or write it down where people look"))
        if not _in_library(path):
            continue
        for line, content in enumerate(blank(text).splitlines(), 1):
            for pattern, why in FORBIDDEN.items():
                found = re.search(pattern, content)
                name = found.group().strip(" (") if found else None
                if name and (path, name) not in ALLOWED:
                    problems.append(Problem(path, line, f"{name}: {why}"))
    return problems
