"""What can be typed. The command `diapause` finds the files of a job and starts this."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile

TROUBLE = 3  # the exit status of the command `diapause` for all that is not done

MISSING = """\
diapause: {python} has no module '{module}', which draws the pictures. Install it:
  apt install python3-matplotlib     for the Python of Debian or Ubuntu, /usr/bin/python3
  pip install matplotlib             for another one, that is then the first `python3` in PATH"""


def _name_of(path):
    """What to call a job: its folder, or the file where that has a name of its own."""
    path = pathlib.Path(path)
    return path.resolve().parent.name if path.name == "ledger.jsonl" else path.stem


def parser():
    made = argparse.ArgumentParser(prog="diapause", description=__doc__)
    verbs = made.add_subparsers(required=True, metavar="VERB")
    report = verbs.add_parser("report", help="one HTML page about the energy of a job")
    report.add_argument("ledger")
    report.add_argument("-o", "--output", required=True, metavar="FILE")
    report.add_argument("--compare", action="append", default=[], metavar="LEDGER")
    report.add_argument("--trace", action="append", default=[], metavar="FILE")
    report.add_argument("--pictures", metavar="DIRECTORY")
    report.set_defaults(run=_report)
    return made


def _written(path, data):
    """Under its name only when it is whole."""
    path = pathlib.Path(path)
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(new, 0o666 & ~_umask())
        os.replace(new, path)
    except OSError:
        os.unlink(new)
        raise
    return path


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _accounts(paths):
    """(name, account) of each ledger."""
    from diapause import account, records

    named = []
    for path in paths:
        ledger = records.read_ledger(path)
        if not ledger.energy:
            raise records.RecordError(f"{path} has no energy line yet: let the job close its instance, or run it again if "
                                      "an older version of the library wrote this")
        named.append((records.printable(_name_of(path)), account.Account(ledger)))
    return named


def _report(arguments):
    from diapause import look, records, report

    name, account = _accounts([arguments.ledger])[0]
    traces = [records.read_trace(path) for path in arguments.trace]
    data, figures = report.page_of(name, account, _accounts(arguments.compare), traces)
    print(_written(arguments.output, data))
    if arguments.pictures:
        folder = pathlib.Path(arguments.pictures)
        folder.mkdir(parents=True, exist_ok=True)
        for key, figure in figures.items():
            print(_written(folder / f"{key}.png", look.saved(figure, "png")))


def main():
    from diapause import records

    arguments = parser().parse_args()
    try:
        arguments.run(arguments)
    except ModuleNotFoundError as missing:
        print(MISSING.format(python=sys.executable, module=missing.name), file=sys.stderr)
        return TROUBLE
    except (records.RecordError, OSError) as error:
        print(f"diapause: {error}", file=sys.stderr)
        return TROUBLE
    return 0
