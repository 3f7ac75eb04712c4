"""Manual pages of the verbs: diapause-list(1) and so on.

A page has what the help says, and what docs/diapause.1 tells about the verb in its DESCRIPTION.
"""

import re

import roff


def descriptions(overview):
    """Returns what the overview, as roff, says about each verb: {"power restore": lines}."""
    text = overview.partition(".SH DESCRIPTION\n")[2].partition("\n.SH ")[0]
    found = {}
    for entry in re.split(r"^\.TP\n", text, flags=re.MULTILINE)[1:]:
        name, _, body = entry.partition("\n")
        found[name.removeprefix(".B ").replace("\\-", "-")] = body.rstrip("\n").split("\n")
    return found


def _value(text):
    return f"\\fI{roff.escape(text)}\\fR"


def _synopsis(verb):
    lines = [".SH SYNOPSIS", f".B {roff.escape(' '.join(['diapause', *verb.words]))}"]
    lines.append("[\\fIOPTIONS\\fR]")
    if verb.verbs:
        lines.append(_value("VERB") if verb.needs_verb else f"[{_value('VERB')}]")
    for argument in verb.arguments:
        text = _value(argument.value)
        lines.append(text if argument.required else f"[{text}]")
    return lines


def _option(option):
    names = f"{option.short}, {option.long}" if option.short else option.long
    line = f"\\fB{roff.escape(names)}\\fR"
    if option.value:
        line += f" {_value(option.value)}"
    text = roff.prose(option.text)
    if option.default:
        text += f" [{roff.escape(option.default)}]"
    return [".TP", line, text]


def _options(verb):
    lines = [".SH OPTIONS", "Defaults stand in brackets."]
    for title, options in verb.options.items():
        if title != "Options":
            lines.append(f".SS {roff.prose(title)}")
        for option in options:
            lines += _option(option)
    return lines


def _statuses(verb):
    lines = [".SH EXIT STATUS"]
    for status in verb.statuses:
        number = re.match(r"(\d+)  +(.*)", status)
        lines += ([".TP", f".B {number[1]}", roff.prose(number[2])] if number
                  else [".PP", roff.prose(status)])
    return lines


def page_name(verb):
    return "-".join(["diapause", *verb.words])


def _neighbours(verb, verbs):
    """The command, the verb above, and those below."""
    found = [("diapause", 1)]
    if len(verb.words) > 1:
        found.append((f"diapause-{verb.words[0]}", 1))
    return found + [(page_name(other), 1) for other in verbs
                    if len(other.words) > len(verb.words)
                    and other.words[:len(verb.words)] == verb.words]


def page(verb, verbs, told, version):
    """The page of a verb as text; `told` is what descriptions() gives."""
    name = page_name(verb)
    lines = [roff.title(name, 1, version, "User Commands"), ".SH NAME",
             f"{roff.escape(name)} \\- {roff.prose(roff.lower_first(verb.summary))}",
             *_synopsis(verb)]
    lines += [".SH DESCRIPTION", *told.get(" ".join(verb.words), [roff.prose(verb.summary) + "."])]
    for note in verb.notes:
        lines += [".PP", *(roff.prose(line) for line in note)]
    if verb.arguments:
        lines.append(".SH ARGUMENTS")
    for argument in verb.arguments:
        lines += [".TP", _value(argument.value), roff.prose(argument.text)]
    lines += _options(verb)
    if verb.statuses:
        lines += _statuses(verb)
    if verb.examples:
        lines += [".SH EXAMPLES", *roff.verbatim(verb.examples)]
    return "\n".join(lines + roff.see_also(_neighbours(verb, verbs))) + "\n"


def pages(verbs, overview, version):
    """File name -> text, for every verb, and for the overview with this version."""
    told = descriptions(overview)
    found = {f"{page_name(verb)}.1": page(verb, verbs, told, version)
             for verb in verbs if verb.words}
    unknown = set(told) - {" ".join(verb.words) for verb in verbs}
    if unknown:
        raise ValueError(
            f"docs/diapause.1 describes verbs that are not there: {', '.join(sorted(unknown))}")
    names = [(name.removesuffix(".1"), 1) for name in found]
    head, _, rest = overview.partition("\n")
    if not head.startswith(".TH "):
        raise ValueError("docs/diapause.1 does not begin with .TH")
    body = rest.rstrip("\n").split("\n")
    title = roff.title("diapause", 1, version, "User Commands")
    found["diapause.1"] = (
        "\n".join([title, *body, *roff.see_also([*names, ("diapause", 3)])]) + "\n")
    return found
