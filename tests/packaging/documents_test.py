#!/usr/bin/env python3
"""Manual pages, completions and the environment module of a build."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["DIAPAUSE_TEST_BUILD"])
DOCUMENTS = BUILD / "packaging/documents"
LIMIT_S = 300


def output(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                          timeout=LIMIT_S,
                          check=False, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def help_of(*words):
    return output(BUILD / "src/diapause", *words, "--help")


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def verbs(*words):
    """All that can be typed, as lists of words."""
    listed = re.findall(r"^  (\w+) ",
                        help_of(*words).partition("Subcommands:")[2].partition("\n\n")[0],
                        re.MULTILINE)
    return [found for name in listed for found in [(*words, name), *verbs(*words, name)]]


class PagesTest(unittest.TestCase):
    def test_every_verb_has_a_page_with_its_options_and_no_other(self):
        typed = verbs()
        self.assertIn(("power", "record"), typed)
        names = {f"diapause-{'-'.join(words)}.1" for words in typed} | {"diapause.1"}
        self.assertEqual({path.name for path in (DOCUMENTS / "man1").iterdir()}, names)
        for words in typed:
            with self.subTest(words):
                page = (DOCUMENTS / f"man1/diapause-{'-'.join(words)}.1").read_text().replace(
                    "\\-", "-")
                listed = page.partition(".SH OPTIONS")[2].partition(".SH EXIT STATUS")[0]
                heads = re.sub(r"\\f[BIR]", "",
                               "\n".join(re.findall(r"^\.TP\n(.*)", listed, re.MULTILINE)))
                offered = help_of(*words).partition("Options:")[2].partition("\nExamples:")[0]
                heads_of_help = "\n".join(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", offered,
                                                     re.MULTILINE))
                self.assertEqual(options(heads), options(heads_of_help))

    def test_every_function_has_a_page(self):
        for header in ("diapause.h", "diapause_mpi.h"):
            text = re.sub(r"/\*.*?\*/", "", (REPOSITORY / "include/diapause" / header).read_text(),
                          flags=re.DOTALL)
            declared = set(re.findall(r"^DIAPAUSE_(?:API|INLINE)\s[^;({]*?\b(diapause_\w+)\s*\(",
                                      text, re.MULTILINE))
            self.assertGreater(len(declared), 5)
            for name in declared:
                page = (DOCUMENTS / f"man3/{name}.3").read_text()
                if page.startswith(".so man3/"):
                    page = (DOCUMENTS / page.split()[1]).read_text()
                self.assertRegex(page, rf"\n\\fB[^\n]*\b{name}\(", name)

    def test_the_statuses_are_in_the_page_of_the_library(self):
        page = (DOCUMENTS / "man3/diapause.3").read_text().replace("\\-", "-")
        self.assertIn("DIAPAUSE_ERR_AGAIN = -15", page)

    def test_readers_take_the_pages_without_a_warning(self):
        if not shutil.which("man"):
            self.skipTest("man is not there")
        pages = sorted(DOCUMENTS.glob("man?/*"))
        # One call for all of one section: a page that is broken is named in what is said.
        for section in ("man1", "man3"):
            with self.subTest(section):
                done = subprocess.run(["man", "--warnings=w", "-l",
                                       *(page for page in pages if page.parent.name == section)],
                                      env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100"},
                                      cwd=DOCUMENTS, text=True, capture_output=True,
                                      timeout=LIMIT_S, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        whole = [page for page in pages if not page.read_text().startswith(".so ")]
        named = {line.partition(": ")[0] for line in output("lexgrog", *whole).splitlines()}
        self.assertEqual(named, {str(page) for page in whole})


class CompletionTest(unittest.TestCase):
    def complete(self, *words, **settings):
        """Returns what bash offers for the last word."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _diapause; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        environment = os.environ | {"PATH": f"{BUILD / 'src'}:{os.environ['PATH']}"} | settings
        offered = output("bash", "-c", script, "bash", DOCUMENTS / "bash/diapause", "diapause",
                         *words, env=environment)
        return offered.split()

    def test_verbs_options_and_values_are_offered(self):
        self.assertEqual(self.complete("re"), ["restart", "report"])
        self.assertEqual(self.complete("power", "re"), ["record", "restore"])
        self.assertEqual(self.complete("list", "--me"), ["--memory"])
        self.assertEqual(self.complete("study", "levels", "--ra"), ["--ranks", "--ranks-per-node"])
        self.assertEqual(self.complete("run", "--", "li"), [])
        with tempfile.TemporaryDirectory(prefix="diapause-completion-") as folder:
            (pathlib.Path(folder) / "heat.toml").touch()
            (pathlib.Path(folder) / "heat.d").mkdir()
            self.assertEqual(self.complete("list", "--global", f"{folder}/h"), [f"{folder}/heat.d"])
            self.assertEqual(sorted(self.complete("list", "--config", f"{folder}/h")),
                             [f"{folder}/heat.d", f"{folder}/heat.toml"])

    def test_names_of_jobs_are_offered(self):
        with tempfile.TemporaryDirectory(prefix="diapause-completion-") as folder:
            places = {"DIAPAUSE_MEMORY_PATH": f"{folder}/memory",
                      "DIAPAUSE_GLOBAL_PATH": f"{folder}/global"}
            stopped = subprocess.run([BUILD / "examples/minimal"], env=os.environ | places,
                                     timeout=LIMIT_S, check=False, capture_output=True, text=True)
            self.assertEqual(stopped.returncode, 3, stopped.stderr)
            self.assertEqual(self.complete("show", "mi", **places), ["minimal"])

    def test_zsh_takes_its_script(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not there")
        output("zsh", "-n", DOCUMENTS / "zsh/_diapause")


class ModuleTest(unittest.TestCase):
    def test_loading_it_sets_the_paths_of_the_prefix_that_it_lies_in(self):
        program = shutil.which("modulecmd") or "/usr/lib/x86_64-linux-gnu/modulecmd.tcl"
        if not pathlib.Path(program).exists():
            self.skipTest("Environment Modules are not there")
        with tempfile.TemporaryDirectory(prefix="diapause-module-") as folder:
            output("cmake", "--install", BUILD, "--prefix", f"{folder}/first", "--component",
                   "site")
            prefix = pathlib.Path(folder).resolve() / "moved"
            (pathlib.Path(folder) / "first").rename(prefix)
            plain = {"PATH": os.environ["PATH"], "MODULEPATH": str(prefix / "share/modulefiles")}
            script = output(program, "bash", "load", "diapause", env=plain)
            asked = ('eval "$1"; printf "%s\\n" "$DIAPAUSE_ROOT" "${PATH%%:*}" "$MANPATH" '
                     '"${CMAKE_PREFIX_PATH%%:*}"')
            told = output("bash", "-c", asked, "bash", script, env=plain).splitlines()
        self.assertEqual(told, [str(prefix), f"{prefix}/bin", f"{prefix}/share/man:", str(prefix)])


if __name__ == "__main__":
    unittest.main()
