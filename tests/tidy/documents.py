"""Links in documents, and names of documents in the sources, lead somewhere."""

import posixpath
import re

from sources import Problem

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+(\S+)",
                   re.MULTILINE)
_DOCUMENT = re.compile(r"\bdocs/[\w./-]+\.md\b")


def _prose(text):
    """The document without code, in which brackets are no links."""
    text = re.sub(r"^(```|~~~).*?^\1", lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                  flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", lambda m: " " * len(m.group()), text)


def anchors(text):
    """Anchors of the headings, as code hosts make them: lower case, spaces to
    '-', punctuation dropped."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def _link_problem(tree, path, link):
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return None
    file, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
    if target.startswith("../"):
        return f"link {link} leads out of the tree"
    if not (tree.root / target).exists():
        return f"link {link}: there is no {target}"
    if anchor and target.endswith(".md") and anchor not in anchors(_prose(tree.read(target))):
        return f"link {link}: {target} has no such heading"
    return None


def check(tree):
    problems = []
    for path in tree.files((".md",)):
        text = _prose(tree.read(path))
        for match in _LINK.finditer(text):
            problem = _link_problem(tree, path, match[1] or match[2])
            if problem:
                problems.append(Problem(path, text.count("\n", 0, match.start()) + 1, problem))
    for path in tree.code(["include", "src", "apps"]):
        text = tree.read(path)
        for match in _DOCUMENT.finditer(text):
            if not (tree.root / match.group()).exists():
                line = text.count("\n", 0, match.start()) + 1
                problems.append(Problem(path, line, f"names {match.group()}, which is not there"))
    return problems
