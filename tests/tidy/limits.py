"""Sizes: of files, of functions, of lines, and of the README that every folder of src/ has."""

import ast

from sources import Outline, Problem

FILE_SOFT, FILE_HARD = 500, 1000
FUNCTION_SOFT, FUNCTION_HARD = 60, 100
COLUMNS = 100  # clang-format sees to the lines of C and C++
README_LEAST, README_MOST = 5, 25


def _too_long(path, line, what, length, soft, hard):
    if length > hard:
        return [Problem(path, line, f"{what} has {length} lines; the limit is {hard}")]
    if length > soft:
        return [Problem(path, line, f"{what} has {length} lines; more than {soft} wants a reason",
                        hard=False)]
    return []


def _long_lines(path, text):
    return [Problem(path, line, f"has {len(content)} columns; the limit is {COLUMNS}")
            for line, content in enumerate(text.splitlines(), 1) if len(content) > COLUMNS]


def _functions(text, is_python):
    if not is_python:
        return [(f.name, f.first_line, f.last_line) for f in Outline(text).functions]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(n.name, n.lineno, n.end_lineno) for n in ast.walk(ast.parse(text))
            if isinstance(n, kinds)]


def _readme_problems(tree):
    problems = []
    for folder in tree.folders("src"):
        path = f"src/{folder}/README.md"
        if not any(tree.code([f"src/{folder}"])):
            continue  # nothing to explain yet
        if not (tree.root / path).is_file():
            problems.append(Problem(
                path, 1, "missing: what lives here, what it may include, where to start reading"))
            continue
        length = tree.read(path).count("\n")
        if not README_LEAST <= length <= README_MOST:
            problems.append(
                Problem(path, 1, f"has {length} lines; {README_LEAST} to {README_MOST} are right"))
    return problems


def check(tree):
    problems = _readme_problems(tree)
    python = tree.python()
    for path in tree.code() + python:
        text = tree.read(path)
        problems += _too_long(path, 1, "file", text.count("\n"), FILE_SOFT, FILE_HARD)
        for name, first, last in _functions(text, path in python):
            problems += _too_long(path, first, name, last - first + 1, FUNCTION_SOFT, FUNCTION_HARD)
        if path in python:
            problems += _long_lines(path, text)
    return problems
