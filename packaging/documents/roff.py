"""Text as manual pages want it written."""

import re


def escape(text):
    """A text that comes out as it is, also at the beginning of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"^(?=[.])", r"\\&", text, flags=re.MULTILINE)


def prose(text):
    """Does the same for sentences, in which hyphens are hyphens and `names` stand in italics."""
    parts = text.split("`")
    marked = [escape(part) if turn % 2 == 0 else f"\\fI{escape(part)}\\fR"
              for turn, part in enumerate(parts)]
    joined = "".join(marked) if len(parts) % 2 else escape(text)
    return re.sub(r"(?<=[a-z])\\-(?=[a-z])", "-", joined)


def title(name, section, version, manual):
    return f'.TH {escape(name.upper())} {section} "" "Diapause {version}" "{manual}"'


def lower_first(text):
    """A sentence as the end of a line "name - what it does"."""
    is_word = text[1:2].islower() or text[1:2] == " "
    return text[0].lower() + text[1:] if is_word else text


def verbatim(lines):
    return [".nf", *(escape(line) for line in lines), ".fi"]


def see_also(names):
    """`names` are pairs of a page and its section."""
    lines = [f".BR {escape(name)} ({section})," for name, section in names]
    lines[-1] = lines[-1].rstrip(",")
    return [".SH SEE ALSO", *lines]
