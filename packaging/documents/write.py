#!/usr/bin/env python3
"""Writes the manual pages and the completions of a build.

write.py --command BUILD/src/diapause --source TREE --version 0.1.0 --output FOLDER

makes FOLDER/man1, FOLDER/man3, FOLDER/bash/diapause and FOLDER/zsh/_diapause anew.
"""

import argparse
import shutil
import sys
from pathlib import Path

import command_help
import completion
import section1
import section3

HEADERS = ("diapause.h", "diapause_mpi.h")


def documents(command, source, version, with_mpi):
    """Path below the output -> text."""
    verbs = command_help.ask(command)
    overview = (source / "docs/diapause.1").read_text()
    headers = {name: (source / "include/diapause" / name).read_text()
               for name in HEADERS if with_mpi or not name.endswith("_mpi.h")}
    found = {f"man1/{name}": text
             for name, text in section1.pages(verbs, overview, version).items()}
    found |= {f"man3/{name}": text for name, text in section3.pages(headers, version).items()}
    return found | {"bash/diapause": completion.bash(verbs), "zsh/_diapause": completion.zsh(verbs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--mpi", action="store_true", help="also the functions of diapause_mpi.h")
    arguments = parser.parse_args()
    try:
        made = documents(arguments.command, arguments.source, arguments.version, arguments.mpi)
    except (command_help.HelpError, ValueError) as error:
        sys.exit(f"packaging/documents: {error}")
    shutil.rmtree(arguments.output, ignore_errors=True)
    for name, text in made.items():
        path = arguments.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
