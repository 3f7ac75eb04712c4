"""The tree under test, and a reading of C and C++ good enough for house rules: the
sources are clang-format'ed."""

import dataclasses
import os
import re
from pathlib import Path

CODE_FOLDERS = ("include", "src", "bindings", "drop-in", "apps", "examples", "tests", "bench",
                "fuzz")
CODE_SUFFIXES = (".h", ".hpp", ".c", ".cpp")


@dataclasses.dataclass(frozen=True)
class Problem:
    path: str
    line: int
    text: str
    hard: bool = True

    def __str__(self):
        return f"{self.path}:{self.line}: {'error' if self.hard else 'warning'}: {self.text}"


class Tree:
    """The files below a root. Paths are relative to it, with '/'."""

    def __init__(self, root):
        self.root = Path(root)

    def files(self, suffixes, folders=None):
        found = []
        for top in folders if folders is not None else (".",):
            for folder, children, names in os.walk(self.root / top):
                children[:] = [c for c in children if c not in ("build", "__pycache__")
                               and not c.startswith(".")]
                found += [Path(folder, n).relative_to(self.root).as_posix()
                          for n in names if n.endswith(suffixes)]
        return sorted(found)

    def code(self, folders=CODE_FOLDERS):
        return self.files(CODE_SUFFIXES, folders)

    def python(self):
        """Modules, and scripts without a suffix whose first line names Python."""
        return [path for path in self.files(("",))
                if path.endswith(".py") or "." not in Path(path).name and self._runs_python(path)]

    def _runs_python(self, path):
        with (self.root / path).open("rb") as file:
            return re.match(rb"#!.*\bpython", file.readline(200)) is not None

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def folders(self, path):
        top = self.root / path
        return sorted(p.name for p in top.iterdir() if p.is_dir()) if top.is_dir() else []


_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""  # comments
    r"""|R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)\""""  # raw strings
    r"""|"(?:\\.|[^"\\\n])*\""""
    r"""|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'""",  # not the ' of 1'000
    re.DOTALL | re.VERBOSE,
)


def blank(text, strings=True):
    """The text with comments, and string and character literals if asked, replaced by spaces;
    lines stay where they are."""

    def spaces(match):
        if not strings and not match.group().startswith("/"):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return _TOKEN.sub(spaces, text)


def without_preprocessor(code):
    """Blanks preprocessor lines with their continuations."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  code, flags=re.MULTILINE)


@dataclasses.dataclass
class Function:
    header: str
    first_line: int
    last_line: int
    body: str

    @property
    def name(self):
        test = re.match(r"(TEST\w*)\s*\(\s*([\w, ]*)\)", self.header)
        found = re.search(r"([\w:~]+|operator\S+?)\s*\(", self.header)
        return f"{test[1]}({test[2]})" if test else found[1] if found else "function"


@dataclasses.dataclass
class Statement:
    text: str
    line: int
    in_class: bool


_SCOPE_WORDS = re.compile(r"^(?:inline\s+)?(namespace|class|struct|union|enum|extern)\b")


def _plain(header):
    """A declaration without what may stand before it or confuses: labels,
    attributes, template heads."""
    header = re.sub(r"\[\[.*?\]\]|\b(?:alignas|__attribute__)\s*\(+.*?\)+", " ", header,
                    flags=re.DOTALL)
    header = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", " ", header)
    header = re.sub(r"\s+", " ", header).strip()
    while header.startswith("template <"):
        depth, end = 0, 0
        for end, char in enumerate(header):
            depth += (char == "<") - (char == ">")
            if char == ">" and depth == 0:
                break
        header = header[end + 1 :].strip()
    return header


class Outline:
    """Functions with bodies and statements outside of them, from the braces."""

    def __init__(self, text):
        self.functions = []
        self.statements = []
        self._code = without_preprocessor(blank(text))
        self._stack = []  # kind of every open brace: namespace, class, function, init, inner
        self._body_start = 0  # where the function or initialiser begins that is being read
        self._begin_declaration(0)
        for position, char in enumerate(self._code):
            self._step(position, char)

    def _step(self, position, char):
        inside_body = "function" in self._stack or "init" in self._stack
        if char == "{":
            self._open(position, inside_body)
        elif char == "}" and self._stack:
            self._close(position)
        elif inside_body:
            return
        elif char in "()":
            self._parens += 1 if char == "(" else -1
        elif char == ";" and self._parens <= 0:
            self._end_statement(position)

    def _begin_declaration(self, position):
        self._start = position
        self._skipped = []  # (begin, end) of initialisers in it
        self._parens = 0

    def _declaration(self, end):
        text = self._code[self._start : end]
        for begin, stop in self._skipped:
            text = text.replace(self._code[begin:stop], " ", 1)
        return text

    def _line(self, position):
        while position < len(self._code) and self._code[position].isspace():
            position += 1
        return self._code.count("\n", 0, position) + 1

    def _open(self, position, inside_body):
        header = _plain(self._declaration(position))
        kind = "inner"
        if not inside_body:
            kind = self._kind(header, self._code[position - 1 : position])
        if kind in ("function", "init"):
            self._body_start = position
        elif kind in ("namespace", "class"):
            self._begin_declaration(position + 1)
        self._stack.append(kind)

    def _kind(self, header, before):
        scope = _SCOPE_WORDS.match(header)
        if self._parens > 0 or re.match(r"[\w>\]]", before):
            # This is value{1}; there is a space before the brace of a body.
            return "init"
        if scope and "(" not in header and "=" not in header:
            return "namespace" if scope[1] in ("namespace", "extern") else "class"
        return "function" if "(" in header and not header.endswith("=") else "init"

    def _close(self, position):
        kind = self._stack.pop()
        if kind == "function":
            header = _plain(self._code[self._start : self._body_start])
            last_line = self._code.count("\n", 0, position) + 1
            body = self._code[self._body_start : position + 1]
            self.functions.append(Function(header, self._line(self._start), last_line, body))
        elif kind == "init":
            self._skipped.append((self._body_start, position + 1))
        if kind in ("function", "namespace", "class"):
            self._begin_declaration(position + 1)

    def _end_statement(self, position):
        text = _plain(self._declaration(position))
        if text:
            in_class = "class" in self._stack
            self.statements.append(Statement(text, self._line(self._start), in_class))
        self._begin_declaration(position + 1)
