"""Reads what `diapause VERB --help` says into a table of verbs, their options and their arguments.

Manual pages and completions are made of this table alone, so that they say what the command says. A
line that is not understood is an error: nothing is left out in silence.
"""

import dataclasses
import re
import subprocess

# Descriptions begin in this column of the help; names that are longer have a line of their own.
COLUMN = 28
_OPTION = re.compile(r"(?:(-\w),)?(--[a-z][a-z-]*)(?: ([^\[ ]+))?(?: \[(.*)\])?"
                     r"(?: Excludes: ((?:--[a-z-]+ ?)+))?")


class HelpError(Exception):
    pass


@dataclasses.dataclass
class Option:
    short: str    # "-o", or ""
    long: str     # "--output"
    value: str  # the word for its value, such as "FILE"; "" for a flag
    default: str  # "" if there is none to tell
    text: str


@dataclasses.dataclass
class Argument:
    value: str  # "JOB", or "-- COMMAND [ARGUMENTS...]"
    text: str
    required: bool


@dataclasses.dataclass
class Verb:
    words: list      # ["power", "record"]; [] for the command itself
    summary: str     # one sentence without its full stop
    arguments: list  # of Argument
    options: dict    # title of a group -> list of Option; "Options" is the first
    verbs: list      # names of the verbs below it
    needs_verb: bool # whether one of them must follow
    notes: list      # paragraphs, each a list of lines
    examples: list   # of lines
    statuses: list   # of lines

    def all_options(self):
        return [option for group in self.options.values() for option in group]


def _entries(lines):
    """Pairs of a name and its description. The description may begin in the line of the
    name or in the next one."""
    found = []
    for position, line in enumerate(lines):
        if line.startswith(" " * COLUMN):
            if not found:
                raise HelpError(f"a description without a name: {line!r}")
            found[-1][1].append(line.strip())
            continue
        follows = position + 1 < len(lines) and lines[position + 1].startswith(" " * COLUMN)
        is_whole = len(line) < COLUMN or line[COLUMN - 1] != " " or _OPTION.fullmatch(line.strip())
        if is_whole and len(line) >= COLUMN and not follows:
            raise HelpError(f"a name without a description: {line!r}")
        name, text = ((line.strip(), "") if is_whole
                      else (line[:COLUMN].strip(), line[COLUMN:].strip()))
        found.append((name, [text] if text else []))
    return [(name, " ".join(text)) for name, text in found]


def _option(name, text):
    matched = _OPTION.fullmatch(name)
    if not matched:
        raise HelpError(f"no option is understood in {name!r}")
    short, long, value, default, excluded = (part or "" for part in matched.groups())
    # The home of the memory tier bears the number of whoever asked.
    default = re.sub(r"(/dev/shm/diapause-)\d+", r"\1UID", default)
    if excluded:
        text += f". Not with {' or '.join(excluded.split())}"
    return Option(short, long, value, default, text)


def _arguments(entries, usage):
    """`usage` has the names in the same order, those that may be left out in brackets."""
    found = []
    for name, text in entries:
        word, _, value = name.partition(" ")
        if not re.search(rf"[\[ ]{re.escape(word)}\b", usage):
            raise HelpError(f"the argument {word!r} is not in {usage!r}")
        repeated = value.endswith(" ...")
        value = value.removesuffix(" ...")
        required = f"[{word}" not in usage or value.startswith("--")
        found.append(Argument(value + ("..." if repeated else ""), text, required))
    return found


def _paragraphs(lines):
    """Parts of a text between empty lines."""
    parts = [[]]
    for line in lines:
        if line.strip():
            parts[-1].append(line)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def read_help(words, text):
    """The verb `words` as its help describes it."""
    parts = _paragraphs(text.splitlines())
    head = parts.pop(0)
    usages = [line for line in head if line.startswith("Usage: ")]
    if len(usages) != 1:
        raise HelpError(f"the help of {words} has no usage")
    summary = " ".join(line for line in head if not line.startswith("Usage: ")).rstrip(".")
    needs_verb = " SUBCOMMAND" in usages[0]
    verb = Verb(list(words), summary, [], {}, [], needs_verb, [], [], [])
    for part in parts:
        title, lines = part[0].rstrip(":"), part[1:]
        is_section = (part[0].endswith(":") and lines
                      and all(line.startswith("  ") for line in lines))
        if not is_section:
            verb.notes.append([line.strip() for line in part])
        elif title == "Positionals":
            verb.arguments = _arguments(_entries(lines), usages[0])
        elif title == "Subcommands":
            verb.verbs = [name for name, _ in _entries(lines)]
        elif title == "Examples":
            verb.examples = [line.strip() for line in lines]
        elif title == "Exit status":
            verb.statuses = [line.strip() for line in lines]
        else:
            verb.options[title] = [_option(*entry) for entry in _entries(lines)]
    return verb


def ask(command, words=()):
    """The verb of that name and all below it, from the command's own help."""
    asked = [str(command), *words, "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise HelpError(f"{' '.join(asked)} ended with {done.returncode}: {done.stderr}")
    verb = read_help(words, done.stdout)
    found = [verb]
    for name in verb.verbs:
        found += ask(command, (*words, name))
    return found
