"""Manual pages of the C functions: diapause_open(3) and so on, from the comments of the headers.

Functions that follow one comment share a page; it bears the name of the first,
and the others lead to it.
"""

import dataclasses
import re

import roff

_PIECE = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<code>.+?)(?=/\*|\Z)", re.DOTALL)
_FUNCTION = re.compile(
    r"^(?:DIAPAUSE_API|DIAPAUSE_INLINE)\s+([^;{]*?\b(diapause_\w+)\s*\([^;{]*\))\s*;", re.MULTILINE)
_TYPE = re.compile(r"^typedef (?:enum|struct) (\w+) \{.*?^\} \w+;|^typedef [^;{]*\(\*(\w+)\)[^;]*;",
                   re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r" ---- (.*?) -+ ")


@dataclasses.dataclass
class Group:
    """Functions under one comment."""
    header: str
    section: str
    comment: list  # of lines
    functions: dict = dataclasses.field(default_factory=dict)  # name -> prototype

    @property
    def name(self):
        return next(iter(self.functions))


def _comment_lines(comment):
    return [re.sub(r"^ ?\*? ?", "", line).rstrip() for line in comment.strip().split("\n")]


def _public(text):
    """A header without what only compilers ask for."""
    return re.sub(r"^#.*(?:\\\n.*)*\n", "", text, flags=re.MULTILINE)


def groups(header, text):
    """The functions of a header, in its order."""
    found, section = [], ""
    group = None
    for piece in _PIECE.finditer(_public(text)):
        comment = piece["comment"]
        if comment is not None:
            marker = _SECTION.fullmatch(comment)
            section = marker[1] if marker else section
            group = Group(header, section, _comment_lines(comment))
            continue
        for prototype, name in _FUNCTION.findall(piece["code"]):
            if group is None:
                raise ValueError(f"{header}: {name} has no comment")
            if not group.functions:
                found.append(group)
            group.functions[name] = re.sub(r"\s+", " ", prototype)
    return found


def types(text):
    """Name -> definition, of all enumerations, structs and kinds of functions."""
    return {found[1] or found[2]: found[0] for found in _TYPE.finditer(text)}


def _paragraphs(lines):
    """Returns the paragraphs of a comment, each as a list of lines. Those of a list of
    points begin with "- "."""
    parts = [[]]
    for line in lines:
        if not line or line.lstrip().startswith("- "):
            parts.append([])
        if line:
            parts[-1].append(line.strip())
    return [part for part in parts if part]


def _description(lines):
    found = []
    for part in _paragraphs(lines):
        if part[0].startswith("- "):
            found += [".IP \\(bu 2", roff.prose(part[0][2:])]
            part = part[1:]
        else:
            found.append(".PP")
        found += [roff.prose(line) for line in part]
    return found[1:] if found and found[0] == ".PP" else found


def _first_sentence(lines):
    text = " ".join(lines)
    return re.split(r"[.:](?: |$)", text, maxsplit=1)[0].replace("`", "")


def _prototype(text):
    """With its arguments below one another where they do not fit into one line."""
    if len(text) < 76:
        return [text + ";"]
    head, _, arguments = text.partition("(")
    return [f"{head}({arguments.split(', ')[0]},",
            *(f"    {part}," for part in arguments.split(", ")[1:-1]),
            f"    {arguments.split(', ')[-1]};"]


_RETURN = ("0 (DIAPAUSE_OK) or a negative status, if the description says nothing else;\n"
           ".BR diapause_last_error (3)\nthen tells what failed and what to do. The statuses are "
           "in\n.BR diapause (3).")


def page(group, all_types, version):
    """The page of a group as text."""
    library = "diapause_mpi" if group.header.endswith("_mpi.h") else "diapause"
    lines = [roff.title(group.name, 3, version, "Library Functions"), ".SH NAME",
             f"{', '.join(group.functions)} \\- "
             f"{roff.prose(roff.lower_first(_first_sentence(group.comment)))}",
             ".SH SYNOPSIS", ".nf", f"\\fB#include <diapause/{group.header}>\\fR", ""]
    for prototype in group.functions.values():
        lines += [f"\\fB{roff.escape(line)}\\fR" for line in _prototype(prototype)] + [""]
    lines += [
        ".fi",
        f"Link with \\fB\\-l{library}\\fR: \\fBpkg-config \\-\\-cflags \\-\\-libs {library}\\fR",
        ".SH DESCRIPTION", *_description(group.comment)]
    if any(prototype.startswith("int ") for prototype in group.functions.values()):
        lines += [".SH RETURN VALUE", _RETURN]
    named = {name for prototype in group.functions.values()
             for name in re.findall(r"diapause_\w+", prototype)}
    shown = [definition for name, definition in all_types.items() if name in named]
    if shown:
        lines.append(".SH TYPES")
    for definition in shown:
        lines += roff.verbatim([*definition.split("\n"), ""])
    return "\n".join(lines + roff.see_also([("diapause", 3), ("diapause", 1)])) + "\n"


def _overview(all_groups, all_types, rules, version):
    lines = [roff.title("diapause", 3, version, "Library Functions"), ".SH NAME",
             "diapause \\- checkpoint/restart for parallel programs", ".SH SYNOPSIS", ".nf",
             "\\fB#include <diapause/diapause.h>\\fR", "\\fB#include <diapause/diapause_mpi.h>\\fR",
             ".fi", ".SH DESCRIPTION", *_description(rules), ".SH FUNCTIONS"]
    section = ""
    for group in all_groups:
        title = group.section if group.header == "diapause.h" else "on a communicator of MPI"
        if title != section:
            lines.append(f".SS {roff.prose(title[0].upper() + title[1:])}")
            section = title
        for name in group.functions:
            lines += [f".BR {name} (3)", ".br"]
    lines += [".SH TYPES"]
    for definition in all_types.values():
        lines += roff.verbatim([*definition.split("\n"), ""])
    return "\n".join(lines + roff.see_also([("diapause", 1)])) + "\n"


def pages(headers, version):
    """File name -> text. `headers`: name -> text, that of the whole promise first."""
    all_types = {name: found for text in headers.values() for name, found in types(text).items()}
    all_groups = [group for name, text in headers.items() for group in groups(name, text)]
    rules = _comment_lines(next(iter(headers.values())).partition("/*")[2].partition("*/")[0])
    found = {"diapause.3": _overview(all_groups, all_types, rules, version)}
    for group in all_groups:
        found[f"{group.name}.3"] = page(group, all_types, version)
        for other in list(group.functions)[1:]:
            found[f"{other}.3"] = f".so man3/{group.name}.3\n"
    return found
