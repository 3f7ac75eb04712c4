"""Carries out verbs of the command. `diapause` finds the files of a job and starts this."""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import sys

from diapause import exported
from diapause.files import Trouble

TROUBLE = 3  # the exit status of the command `diapause` for all that is not done

STUDIES_OF_RUNS = ("study-failures", "study-flush", "study-levels", "study-messages",
                   "study-throttle", "study-transparent", "study-writes")

MISSING = """\
diapause: {python} has no module '{module}'. Install it:
  apt install python3-{module}     for the Python of Debian or Ubuntu, /usr/bin/python3
  pip install {module}             for another one, that is then the first `python3` in PATH"""


def _name_of(path):
    """Returns the name of a job: that of its folder, or of the file where that
    has a name of its own."""
    path = pathlib.Path(path)
    return path.resolve().parent.name if path.name == "ledger.jsonl" else path.stem


def _report_options(parser):
    """Adds the options that src/cli/report.cpp gives."""
    parser.add_argument("ledger")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    parser.add_argument("--compare", action="append", default=[], metavar="LEDGER")
    parser.add_argument("--trace", action="append", default=[], metavar="FILE")
    parser.add_argument("--pictures", metavar="DIRECTORY")


def _accounts(paths):
    """(name, account) of each ledger."""
    from diapause import account, records

    named = []
    for path in paths:
        ledger = records.read_ledger(path)
        if not ledger.energy:
            raise records.RecordError(f"{path} has no energy line yet: let the job close its "
                                      "instance, or run it again if an older version of the "
                                      "library wrote this")
        named.append((records.printable(_name_of(path)), account.Account(ledger)))
    return named


def _report(arguments):
    from diapause import files, look, records, report

    name, account = _accounts([arguments.ledger])[0]
    traces = [records.read_trace(path) for path in arguments.trace]
    data, figures = report.page_of(name, account, _accounts(arguments.compare), traces)
    print(files.written(arguments.output, data))
    if arguments.pictures:
        folder = pathlib.Path(arguments.pictures)
        folder.mkdir(parents=True, exist_ok=True)
        for key, figure in figures.items():
            print(files.written(folder / f"{key}.png", look.saved(figure, "png")))


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Trouble(message)


def run(words):
    """Does what the words say; Trouble says why it cannot."""
    verb, *words = words or [""]
    parser = _Parser(prog=f"diapause {verb}")
    if verb == "report":
        _report_options(parser)
        _report(parser.parse_args(words))
    elif verb in ("export-h5", "export-vti"):
        parser.add_argument("arrays")
        parser.add_argument("output")
        arguments = parser.parse_args(words)
        if verb == "export-h5":
            from diapause import h5

            places = h5.make_room(arguments.arrays, arguments.output)
            pathlib.Path(arguments.arrays, "places.json").write_text(json.dumps(places))
        else:
            print(exported.written(arguments.arrays, arguments.output, "diapause.vti"))
    elif verb == "study-compress":
        from diapause.study import command

        command.add_options(parser)
        command.run(parser.parse_args(words))
    elif verb == "power-align":
        from diapause import alignment

        parser.add_argument("meter")
        parser.add_argument("trace")
        parser.add_argument("--column")
        parser.add_argument("--within", type=float, default=600.0)
        arguments = parser.parse_args(words)
        alignment.run(arguments.meter, arguments.trace, arguments.column, arguments.within)
    elif verb in STUDIES_OF_RUNS:
        study = importlib.import_module(f"diapause.study.{verb.removeprefix('study-')}")
        study.add_options(parser)
        study.run(parser.parse_args(words))
    elif verb in ("plan", "simulation"):
        from diapause import plans

        parser.add_argument("numbers")
        parser.add_argument("-o", "--output", required=True, metavar="FILE")
        arguments = parser.parse_args(words)
        plans.draw(arguments.numbers, arguments.output)
    else:
        raise Trouble("the first word is report, export-h5, export-vti, plan, simulation, "
                      "study-compress or another study")


def main():
    try:
        run(sys.argv[1:])
    except ModuleNotFoundError as missing:
        print(MISSING.format(python=sys.executable, module=(missing.name or "").partition(".")[0]),
              file=sys.stderr)
        return TROUBLE
    except (Trouble, OSError) as error:
        print(f"diapause: {error}", file=sys.stderr)
        return TROUBLE
    return 0
