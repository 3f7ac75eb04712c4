"""Who may include whom (docs/decisions/0004), who may name <mpi.h>, and who may ask the kernel."""

import fnmatch
import re

from sources import Problem, blank

ALLOWED = {
    "base": "",
    "sys": "base",
    "format": "base",
    "codec": "base format",
    "config": "base",
    "redundancy": "base format",
    "model": "base",
    "simulate": "base model redundancy",
    "policy": "base config model",
    "capture": "base sys format config policy",
    "store": "base sys format codec config",
    "energy": "base sys config",
    "governor": "base sys config policy",
    "comm": "base sys",
    "process": "base sys format",
    "fabric": "base sys",
    "engine":
        "base sys format codec config redundancy model policy capture store energy governor comm",
    "library":
        "engine base sys format codec config model policy capture store energy governor comm",
    "agent": "process fabric engine base sys format codec config policy capture store energy "
             "governor comm",
    "capi": "library engine comm base sys config diapause",
    "cli": "agent base sys format store codec energy governor policy config redundancy model "
           "simulate diapause",
}

# The rooms of a folder, in their order: a room includes only rooms before it, so that there is no
# circle.
ROOMS = {
    "engine": {
        "job": "",
        "encoding": "",
        "accounting": "job encoding",
        "recovery": "job",
        "node": "job encoding accounting recovery",
        "restart": "job accounting recovery",
        "host": "job node",
    },
}

# Written as users would write them: they see the public headers and nothing else of src/ or
# include/.
USERS = ("bindings/", "drop-in/", "apps/", "examples/", "tests/behaviour/", "tests/install/",
         "tests/languages/")

MPI_HEADERS = ("mpi.h", "diapause/diapause_mpi.h")
MPI_PLACES = {
    "mpi.h": ("src/comm/*", "include/diapause/diapause_mpi.h"),
    "diapause/diapause_mpi.h": ("src/capi/mpi*.cpp",),
}

KERNEL_HEADERS = re.compile(
    r"(?:unistd|fcntl|dirent|poll|sched|signal|pthread|dlfcn|pwd|grp|spawn|termios|ftw|glob|syscall"
    r"|liburing|numa)\.h"
    r"|(?:sys|linux|asm|net|netinet|arpa)/.*|csignal|filesystem|fstream")
# file pattern -> header pattern -> why it is no way around src/sys
KERNEL_EXCEPTIONS = {
    "*": {"sys/types.h": "names of types only"},
    "src/sys/*": {"*": "the folder whose business it is"},
    "src/process/*": {"*": "asks the kernel of other processes: ptrace, namespaces, /proc"},
    "src/fabric/*": {"*": "lives in other programs, and shares memory with them"},
    "src/*_test.cpp": {"*": "tests prepare and look at the files and processes they talk about"},
    "src/base/log.cpp": {
        "unistd.h": "the one write to standard error, with nothing below it to report to"},
}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(text):
    """(header, whether it is in <>, line) of every #include."""
    code = blank(text, strings=False)
    return [(m[2], m[1] == "<", code.count("\n", 0, m.start()) + 1)
            for m in _INCLUDE.finditer(code)]


def _kernel_exception(path, header):
    return any(
        fnmatch.fnmatch(path, files) and any(fnmatch.fnmatch(header, h) for h in headers)
        for files, headers in KERNEL_EXCEPTIONS.items()
    )


def _folder_problem(path, header, folders):
    """Returns why a header of another folder must not be seen by this file. Of `sys/`, those in ""
    are ours and those in <> are not."""
    target = header.split("/")[0]
    if target not in folders and target != "diapause":
        return None
    if path.startswith(USERS):
        return (None if target == "diapause"
                else f"includes {header}: a user's program sees include/diapause only")
    if not path.startswith("src/"):
        return None
    own = path.split("/")[1]
    if own not in ALLOWED:
        return f"folder src/{own} has no line in the table of tests/tidy/layering.py"
    if target == own or target in ALLOWED[own].split():
        return None
    return f"includes {header}: {own} may include {ALLOWED[own] or 'nothing'}"


def _room_problem(path, header):
    """A header of another room of the same folder that this file must not see."""
    parts, target = path.split("/"), header.split("/")
    rooms = ROOMS.get(target[0])
    if rooms is None or parts[0] != "src" or parts[1] != target[0]:
        return None
    if len(parts) < 4 or parts[2] not in rooms:
        return f"lies in no room of src/{parts[1]} that the table of tests/tidy/layering.py knows"
    own = parts[2]
    if len(target) > 2 and (target[1] == own or target[1] in rooms[own].split()):
        return None
    return (
        f"includes {header}: {parts[1]}/{own} may include {rooms[own] or 'nothing'} of {parts[1]}")


def _place_problem(path, header, system):
    """<mpi.h> or a kernel header where it does not belong."""
    if not path.startswith(("src/", "include/")):
        return None
    if header in MPI_HEADERS and not any(fnmatch.fnmatch(path, p) for p in MPI_PLACES[header]):
        return f"includes {header}: only {', '.join(MPI_PLACES[header])} may"
    if system and KERNEL_HEADERS.fullmatch(header) and not _kernel_exception(path, header):
        return (f"includes <{header}>: only src/sys and src/process ask the kernel (exceptions: "
                "tests/tidy/layering.py)")
    return None


def check(tree):
    problems = []
    folders = set(tree.folders("src")) | set(ALLOWED)
    for path in tree.code():
        for header, system, line in includes(tree.read(path)):
            ours = None if system and header.startswith("sys/") else _folder_problem(
                path, header, folders)
            for text in (ours, _room_problem(path, header), _place_problem(path, header, system)):
                if text:
                    problems.append(Problem(path, line, text))
    return problems
