"""No mutable state outside of objects: no variables at file scope, in classes (static) or
hidden in functions (static)."""

import re

from sources import Outline, Problem

# (file, name) -> why it must be there
ALLOWED = {
    ("src/capi/instance.cpp", "last_error_text"):
        "diapause_last_error is per thread and needs no instance",
    ("src/capi/floats.cpp", "innermost_floats"):
        "the processor's floating-point environment is per thread, too",
    ("src/sys/signals.cpp", "table"):
        "a signal handler has no object to work on; the rule stands at the top of the file",
    ("src/sys/signals_test.cpp", "heard"):
        "what handlers of the test count in, for the same reason",
    ("src/process/freeze_test.cpp", "board"):
        "a function that is begun from outside has no object either",
    ("src/sys/real_kernel.cpp", "kernel"):
        "has no data members; every call goes to the machine's kernel",
}

_NO_VARIABLE = re.compile(
    r"^(using|typedef|friend|static_assert|namespace|class|struct|union|enum|extern|return|goto"
    r"|template (class|struct)|#)\b")
_LOCAL = re.compile(r"(?:^|[;{}])\s*((?:static|thread_local)\b[^;={(]*)", re.MULTILINE)


def _is_const(declaration):
    """Returns whether the declared thing itself cannot change; for a
    pointer, that is the pointer."""
    if re.search(r"\bconstexpr\b", declaration):
        return True
    if "*" in declaration:
        return re.search(r"\*\s*const\b[^*]*$", declaration) is not None
    return re.search(r"\bconst\b", declaration) is not None


def _name(declaration):
    words = re.findall(r"\w+", re.sub(r"\[.*?\]", "", declaration))
    return words[-1] if words else ""


def _declares_variable(statement):
    text = statement.text
    if _NO_VARIABLE.match(text) or "operator" in text:
        return None
    if statement.in_class and not re.match(r"(inline )?(static|thread_local)\b", text):
        return None  # a member: state of an object
    head = text.split("=")[0]
    if re.search(r"\(\s*\*\s*(const\s+)?\w+\s*\)", head):  # pointer to function
        return None if re.search(r"\*\s*const\b", head) else re.search(r"\*\s*(\w+)", head)[1]
    if "(" in head or len(re.findall(r"[\w:<>,]+", head)) < 2 or _is_const(head):
        return None
    return _name(head)


def check(tree):
    problems = []

    def report(path, line, name):
        if (path, name) not in ALLOWED:
            problems.append(Problem(path, line, f"'{name}' is mutable state outside of an object"))

    for path in tree.code(["src", "include"]):
        outline = Outline(tree.read(path))
        for statement in outline.statements:
            name = _declares_variable(statement)
            if name:
                report(path, statement.line, name)
        for function in outline.functions:
            for match in _LOCAL.finditer(function.body):
                if not _is_const(match[1]):
                    report(path, function.first_line, _name(match[1]))
    return problems
