"""Plans of runs: what is done stays done, and what was measured with other
settings is not mixed in."""

import contextlib
import csv
import io
import pathlib
import tempfile
import unittest

from diapause import files
from diapause.study import runs


class PlanTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.output = pathlib.Path(scratch.name) / "out"
        self.done = []

    def plan(self, fails=(), **settings):
        def run(name):
            def do(directory):
                self.assertEqual(list(directory.iterdir()), [])
                (directory / "leftover").touch()
                if name in fails:
                    raise files.Trouble(name)
                self.done.append(name)
                return {"name": name}

            return runs.Run(name, f"run {name}", 30.0, do)

        return runs.Plan(self.output, settings, [run("a"), run("b"), run("c")])

    def carry_out(self, plan):
        with contextlib.redirect_stderr(io.StringIO()) as progress:
            return plan.carry_out(), progress.getvalue()

    def test_an_interrupted_plan_goes_on_with_the_run_that_failed(self):
        with self.assertRaisesRegex(files.Trouble, "b"):
            self.carry_out(self.plan(fails=["b"]))
        self.assertEqual(self.done, ["a"])
        results, progress = self.carry_out(self.plan())
        self.assertEqual(self.done, ["a", "b", "c"])
        self.assertEqual(results, {name: {"name": name} for name in "abc"})
        self.assertIn("1/3, 60 s left: run b", progress)
        self.assertEqual([path.name for path in self.output.iterdir()], ["runs"])

    def test_a_plan_shows_what_is_left_and_how_long_it_takes(self):
        shown = io.StringIO()
        with self.assertRaises(files.Trouble):
            self.carry_out(self.plan(fails=["b"]))
        self.plan().show(shown)
        self.assertEqual(shown.getvalue().splitlines(),
                         ["    done  run a", "    30 s  run b", "    30 s  run c",
                          "2 of 3 runs to do, about 60 s"])

    def test_results_of_other_settings_are_not_mixed_in(self):
        self.carry_out(self.plan(ranks=(2, 4)))
        self.carry_out(self.plan(ranks=(2, 4)))
        with self.assertRaisesRegex(files.Trouble, r"ranks was \[2, 4\] and is \[2\]"):
            self.carry_out(self.plan(ranks=(2,)))

    def test_a_damaged_result_is_named(self):
        self.carry_out(self.plan())
        (self.output / "runs/b.json").write_text('{"name"')
        with self.assertRaisesRegex(files.Trouble, "b.json"):
            self.carry_out(self.plan())

    def test_a_table_has_the_columns_of_all_rows_and_nothing_for_what_is_not_known(self):
        text = runs.csv_of([{"a": 1, "b": None}, {"a": 0, "c": "x,y"}]).decode()
        self.assertEqual(list(csv.reader(io.StringIO(text))),
                         [["a", "b", "c"], ["1", "", ""], ["0", "", "x,y"]])
