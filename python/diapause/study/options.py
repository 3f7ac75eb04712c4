"""Reads the options that all studies that start programs understand, as
src/cli/study_options.cpp gives them."""

from __future__ import annotations

import argparse
import pathlib

from diapause.study.programs import Launcher


def add_common(parser, ranks, repetitions):
    """`ranks`: a number, or a list for studies that go over several."""
    many = isinstance(ranks, tuple)
    parser.add_argument("--command", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--launch", default="mpirun -n {ranks}")
    parser.add_argument("--ranks", type=whole_numbers if many else whole_number, default=ranks)
    parser.add_argument("--ranks-per-node", type=whole_number)
    parser.add_argument("--repetitions", type=whole_number, default=repetitions)
    parser.add_argument("--directory", type=pathlib.Path)


def launcher(arguments, ranks):
    return Launcher(arguments.command.resolve(), arguments.launch, ranks, arguments.ranks_per_node)


def directory(arguments):
    """The parent of what the runs keep in a global directory."""
    return (arguments.directory or arguments.output).resolve()


def settings(arguments):
    """Those that results depend on, for runs.Plan."""
    left_out = ("command", "encoder", "output", "dry_run")
    return {name: str(value) if isinstance(value, pathlib.Path) else value
            for name, value in vars(arguments).items() if name not in left_out}


def whole_number(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def whole_numbers(text):
    return tuple(whole_number(one) for one in text.split(","))


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return value


def positives(text):
    return tuple(positive(one) for one in text.split(","))


def clocks(text):
    found = positives(text)
    if max(found) > 1:
        raise argparse.ArgumentTypeError(
            f"'{text}': ratios of the base clock are above 0 and at most 1")
    return found
