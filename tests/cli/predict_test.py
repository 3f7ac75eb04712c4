#!/usr/bin/env python3
"""predict: the published runs, and what is asked wrongly."""

import csv
import json
import pathlib

import support
from support import CommandTest

TABLES = pathlib.Path(__file__).resolve().parents[2] / "python/diapause/study/published"


class PredictTest(CommandTest):
    def predict(self, *arguments, status=0):
        return self.diapause("predict", *arguments, status=status)

    def told(self, machine, app, *arguments):
        return json.loads(self.predict("--machine", machine, "--app", app, "--json", *arguments)[0])

    def test_published_runs_lie_within_what_is_told(self):
        with open(TABLES / "fti2018_table17_hdc_kaveri.csv", newline="") as file:
            base, *rows = csv.DictReader(file)
        off = []
        for row in rows:
            told = self.told("cooper-kaveri", "heat", "--schedule",
                             row["configuration"])["runtime_s"]
            self.assertEqual(told["original"], float(base["runtime_s"]))
            off.append(abs(
                told["percent"] - float(row["runtime_pct"])) * told["original"] / 100 / told["off"])
        self.assertLess(sorted(off)[len(off) // 2], 1)

    def test_the_change_is_shown_with_how_far_it_may_be_off(self):
        out = self.predict("--machine", "theta-xc40", "--app", "heat")[0]
        self.assertRegex(out,
                         r"runtime +1076\.0+ s +10\d\d\.?\d* \+- \d\.\d s +1\.\d+ \+- 0\.3\d? %")
        self.assertIn("fit to table 5", out)

    def test_the_parts_of_the_bound_are_shown_apart_and_together(self):
        told = self.told("theta-xc40", "heat", "--bytes", "4GB")
        for key in ("runtime_s", "node_w", "node_j"):
            one = told[key]
            self.assertAlmostEqual(sum(one["off_by"].values()), one["off"], msg=key)
            change = one["off_by"]["fit"] + one["off_by"]["bytes"]
            self.assertAlmostEqual(one["percent_off"], 100 * change / one["original"], msg=key)
            self.assertGreater(one["off_by"]["bytes"], 0, key)
        self.assertEqual(told["runtime_s"]["off_by"]["meter"], 0)
        self.assertAlmostEqual(told["node_j"]["off_by"]["meter"],
                               0.1 * told["node_j"]["predicted"])
        self.assertEqual(told["off_by_covers"].keys(), one["off_by"].keys())
        out = self.predict("--machine", "theta-xc40", "--app", "heat")[0]
        self.assert_in_order(["OFF BY AT MOST", "FIT", "BYTES", "METER", "TOGETHER",
                              "energy of a node", "fit: ", "bytes: ", "meter: "], out)
        self.assertRegex(
            out, r"energy of a node +32\d\d00 J +323000 \+- 34000 J +0\.\d+ \+- 0\.\d+ %")

    def test_more_bytes_cost_more(self):
        runs = [self.told("theta-xc40", "heat", "--bytes", size)["runtime_s"]["predicted"]
                for size in ("2GB", "20GB")]
        self.assertLess(runs[0], runs[1])

    def test_the_error_grows_with_bytes_that_were_not_fitted(self):
        theta = ("theta-xc40", "heat", "--bytes")
        fitted, more = (self.told(*theta, size) for size in ("2.048GB", "20.48GB"))
        for key in ("runtime_s", "node_j"):
            added = more[key]["predicted"] - fitted[key]["predicted"]
            self.assertGreater(more[key]["off"], fitted[key]["off"] + added)

    def test_a_run_that_never_ends_is_refused(self):
        out, error = self.predict("--machine", "theta-xc40", "--app", "heat", "--schedule",
                                  "ckp(1,0,0,0)", "--bytes", "300GB", status=3)
        self.assertEqual(out, "")
        self.assertIn("with checkpoints of 3e+11 bytes the run has not ended", error)

    def test_a_schedule_of_which_nothing_is_due_changes_nothing(self):
        told = self.told("theta-xc40", "heat", "--schedule", "ckp(0,0,0,1000)")
        for key in ("runtime_s", "node_w", "node_j"):
            self.assertEqual(told[key]["percent"], 0, key)

    def test_what_is_wrong_is_named(self):
        for words, what in ((("--machine", "theta-xc40", "--app", "cg"), "it has heat, stream"),
                            (("--machine", "generic", "--app", "heat"), "no section [app.*]"),
                            (("--machine", "nowhere.toml", "--app", "heat"), "nowhere.toml"),
                            (("--machine", "theta-xc40", "--app", "heat", "--schedule", "ckp(1)"),
                             "ckp(3,5,7,11)"),
                            (("--machine", "theta-xc40", "--app", "heat", "--schedule",
                              "ckp(0.5,5,7,11)"), "they are whole"),
                            (("--machine", "theta-xc40", "--app", "heat", "--bytes", "many"),
                             "many")):
            with self.subTest(words):
                self.assertIn(what, self.predict(*words, status=3)[1])


if __name__ == "__main__":
    support.main()
