#!/usr/bin/env python3
"""The help, docs/command-line.md and the man page tell of the same verbs and options."""

import argparse
import importlib
import os
import pathlib
import re
import sys

import support
from support import CommandTest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
VERBS = ["list", "show", "verify", "prune", "inject", "run", "jobs", "history", "export", "launch",
         "checkpoint", "restart", "energy", "report", "predict", "plan", "simulate", "power",
         "study"]
# Each with what is typed to get at it.
ACTIONS = ([[verb] for verb in VERBS]
           + [["power", what] for what in ("record", "align", "calibrate", "restore")]
           + [["study", what] for what in ("compress", "levels", "messages", "throttle", "writes",
                                           "flush", "failures", "transparent")])


# These leave their options to the Python package, which has the defaults.
STUDIES_IN_PYTHON = ("levels", "messages", "throttle", "writes", "flush", "failures", "transparent")


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def as_typed(value):
    """A default of the Python package as a user would type it."""
    if isinstance(value, tuple):
        return ",".join(as_typed(one) for one in value)
    return value if isinstance(value, str) else f"{value:.12g}"


def defaults(study):
    """The options of a study in the Python package that have a default, with these
    defaults as they are typed."""
    sys.path.insert(0, str(DOCS.parent / "python"))
    try:
        module = importlib.import_module(f"diapause.study.{study}")
    finally:
        sys.path.pop(0)
    parser = argparse.ArgumentParser(add_help=False)
    module.add_options(parser)
    return {action.option_strings[-1]: as_typed(parser.get_default(action.dest))
            for action in parser._actions
            if parser.get_default(action.dest) not in (None, False)}


class DocumentsTest(CommandTest):
    def help(self, *verb):
        return self.diapause(*verb, "--help")[0]

    def test_the_help_names_all_verbs(self):
        listed = re.findall(r"^  (\w+) ", self.help().partition("Subcommands:")[2], re.MULTILINE)
        self.assertEqual(listed, VERBS)

    def test_every_help_has_examples_and_exit_statuses(self):
        for action in ACTIONS:
            with self.subTest(action):
                self.assert_in_order(["Examples:", f"diapause {' '.join(action)}", "Exit status:"],
                                     self.help(*action))

    def test_documents_tell_of_every_option_and_of_no_other(self):
        offered = options(self.help()).union(*(options(self.help(*action)) for action in ACTIONS))
        self.assertEqual(options((DOCS / "command-line.md").read_text()), offered)
        # The options of the verbs have pages of their own (tests/packaging). This one also shows
        # words of others.
        told = options((DOCS / "diapause.1").read_text().replace("\\-", "-"))
        self.assertLessEqual(told, offered | {"--cpu-freq"})

    def test_documents_show_every_synopsis_as_code(self):
        text = (DOCS / "command-line.md").read_text()
        self.assertEqual(re.findall(r"^diapause .*", text, re.MULTILINE), [])
        for verb in set(VERBS) - {"study"}:  # whose parts have a section each
            self.assertRegex(text, rf"\n## {verb}\n\n    diapause {verb} ")

    def test_the_overview_tells_every_variable_and_status(self):
        page = (DOCS / "diapause.1").read_text()
        told = (DOCS / "command-line.md").read_text()
        for name in set(re.findall(r"DIAPAUSE_RUN_\w+_FILE", told)):
            self.assertIn(f".B {name}\n", page)
        statuses = page.partition(".SH EXIT STATUS")[2].partition(".SH ENVIRONMENT")[0]
        self.assertIn(".BR export :", statuses.partition(".B 2\n")[2].partition(".B 3\n")[0])
        for verb in ("run", "launch", "restart"):
            self.assertIn(verb, statuses.partition(".PP")[2])
        for verb in ("verify", "export"):
            self.assertIn("\n  2  ", self.help(verb))

    def test_a_wrong_word_is_refused_on_standard_error(self):
        for arguments in ([], ["lisst"], ["list", "--bogus"], ["show"], ["show", "heat", "newest"]):
            with self.subTest(arguments):
                out, err = self.diapause(*arguments, status=3)
                self.assertEqual(out, "")
                self.assertIn("diapause: ", err)

    def test_a_wrong_verb_is_named_with_the_one_that_was_meant(self):
        for words, meant in ((["lisst"], "list"), (["histroy", "heat"], "history"),
                             (["power", "recrd"], "record")):
            with self.subTest(words):
                _, err = self.diapause(*words, status=3)
                self.assertIn('there is no verb '
                              f'"{" ".join(words[:2 if words[0] == "power" else 1])}"; did you '
                              f'mean {meant}?',
                              err)
        self.assertIn('there is no verb "foo". The verbs are list, show,',
                      self.diapause("foo", status=3)[1])

    def test_the_help_tells_the_defaults_of_the_code(self):
        run, power = self.help("run"), self.help("power")
        for text in ("--restarts N [3]", "--delay S [0]", "--stall S [0]", "--linger S [30]",
                     "--global PATH [diapause]", f"--memory PATH [/dev/shm/diapause-{os.getuid()}]",
                     "--local PATH [none]"):
            self.assertIn(text, run)
        for text in ("--interval S [1]", "--meters NAMES [auto]", "--period-ms N [100]",
                     "--profile PROFILE [generic]"):
            self.assertIn(text, power)

    def test_the_help_of_studies_tells_the_defaults_of_the_python_package(self):
        for study in STUDIES_IN_PYTHON:
            text = " ".join(self.help("study", study).split())
            expected = {name: value
                        for name, value in defaults(study).items() if name in options(text)}
            self.assertIn("--repetitions", expected)
            for name, value in expected.items():
                with self.subTest(study=study, option=name):
                    self.assertRegex(text, rf"{name} \S+ {re.escape(f'[{value}]')}")

    def test_a_wrong_configuration_is_refused(self):
        (self.scratch / "bad.toml").write_text("[memory]\npaht = 'x'\n")
        self.assertIn("paht", self.diapause("list", "--config", "bad.toml", status=3)[1])
        self.assertIn("absent.toml", self.diapause("list", "--config", "absent.toml", status=3)[1])


def use_python_that_draws():
    """The first Python in PATH may lack what the studies import; the command would not
    take that one either."""
    sys.path.insert(0, str(DOCS.parent / "python"))
    import start

    start.use_python_that_has(start.NEEDED_BY_STUDIES)


if __name__ == "__main__":
    use_python_that_draws()
    support.main()
