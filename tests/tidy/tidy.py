#!/usr/bin/env python3
"""The house rules as a test.

tidy.py RULE [--build DIR] [--fix]    prints what breaks the rule; exit status 1 if anything does
"""

import argparse
import sys
from pathlib import Path

import analysis
import calls
import disturbance
import documents
import formatting
import headers
import layering
import limits
import state
from sources import Tree

RULES = {
    "layering": layering.check,
    "limits": limits.check,
    "state": state.check,
    "calls": calls.check,
    "disturbance": disturbance.check,
    "documents": documents.check,
    "format": formatting.check,
    "headers": headers.check,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rule", choices=[*RULES, "analysis"])
    parser.add_argument("--build", type=Path,
                        help="build folder with compile_commands.json, for the rule `analysis`")
    parser.add_argument("--fix", action="store_true",
                        help="with the rule `format`: rewrite the files")
    arguments = parser.parse_args()
    tree = Tree(Path(__file__).resolve().parents[2])
    if arguments.fix:
        if arguments.rule != "format":
            parser.error("--fix goes with the rule `format`")
        formatting.fix(tree)
    if arguments.rule == "analysis" and not arguments.build:
        parser.error("the rule `analysis` needs --build")
    problems = (analysis.check(tree, arguments.build) if arguments.rule == "analysis"
                else RULES[arguments.rule](tree))
    for problem in problems:
        print(problem)
    broken = sum(problem.hard for problem in problems)
    print(f"{arguments.rule}: {broken} errors, {len(problems) - broken} warnings")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
