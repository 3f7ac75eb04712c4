#!/usr/bin/env python3
"""energy: who used the energy of a job, from ledgers written by hand."""

import csv
import json
import math
import os

import support
from support import CommandTest, Tiers

SOURCES = [{"domain": "node", "source": "hwmon node", "kind": "measured"}]


def phase(name, version, level, joules, start_unix_s=0):
    return {"phase": name, "version": version, "level": level, "beside": "nothing",
            "start_unix_s": start_unix_s, "seconds": 1.0, "bytes": 1024} | (
        {} if joules is ... else {"joules": joules and {"total": joules}})


def sampled(sampling_j):
    """Off by nothing else than what samples have missed."""
    return {"uncertainty": {"sampling_j": sampling_j, "sensor_j": 0.0, "attribution_j": 0.0}}


def line(seconds, program, phases, end=0, incarnation=1, gap_s=0.0):
    """Of a machine with a meter; the whole is what it must be."""
    whole = program + sum((p["joules"] or {"total": 0})["total"] for p in phases)
    return {"schema": 1, "event": "energy", "incarnation": incarnation, "time_unix_s": end,
            "machines": 1,
            "seconds": seconds, "gap_s": gap_s, "total": "node", "sources": SOURCES,
            "program": {"joules": {"total": program}}, "whole": {"joules": {"total": whole}},
            "phases": phases}


# 100 s and 11000 J: 110 W. Of them 9000 J are the program's, 1500 J a checkpoint's and 500 J a
# restart's.
RUN = [line(60.0, 6000.0, [phase("capture", 10, 0, 500.0, start_unix_s=1039),
                           phase("global", 10, 4, 1000.0)], end=1060),
       {"schema": 1, "event": "open", "incarnation": 2, "time_unix_s": 1065},
       {"schema": 1, "event": "restart", "incarnation": 2, "time_unix_s": 1066, "version": 10},
       line(40.0, 3000.0, [phase("restore", 10, 0, 500.0)], end=1106, incarnation=2)]
# 80 s and 8000 J: 100 W.
PLAIN = [line(80.0, 8000.0, [])]


class EnergyTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.tiers = Tiers(self.scratch)
        self.tiers.global_.mkdir(mode=0o700)

    def leave(self, lines, job="heat-0a1b2c3d"):
        (self.tiers.global_ / job).mkdir(mode=0o700)
        ledger = self.tiers.global_ / job / "ledger.jsonl"
        ledger.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n"
                                  for one in lines))
        return ledger

    def energy(self, *arguments, status=0):
        return self.diapause("energy", "heat", *arguments, tiers=self.tiers, status=status)

    def rows(self, head):
        return [" ".join(row.split()) for row in self.energy()[0].splitlines()
                if row.startswith(head)]

    def row(self, head):
        (row,) = self.rows(head)
        return row

    def test_program_and_phases_add_up_to_the_whole(self):
        self.leave(RUN)
        out = self.report("energy", "heat", tiers=self.tiers)
        self.assertEqual(out["whole"]["joules"], 11000)
        self.assertEqual(out["program"]["joules"] + sum(one["joules"] for one in out["phases"]),
                         11000)
        self.assertEqual((out["runtime_s"], out["watts"], out["incarnations"]), (100, 110, [1, 2]))

    def test_tables_tell_of_phases_levels_and_versions(self):
        self.leave(RUN)
        self.assertEqual(self.row("average power"), "average power ~ 110 W")
        self.assertEqual(self.row("capture"),
                         "capture 1 1.000 1.0 KiB ~ 500 J no bound no bound no bound 4.5 %")
        self.assertEqual(self.rows("level 4"),
                         ["level 4 1 1.000 1.0 KiB ~ 1000 J no bound no bound no bound 9.1 %",
                          "level 4 ~ 980000000 J no bound no bound no bound"])
        self.assertEqual(self.row("     10  checkpoint"),
                         "10 checkpoint 2.000 1.0 KiB ~ 1500 J no bound no bound no bound 14 %")
        self.assertEqual(self.row("     10  restart"),
                         "10 restart 1.000 1.0 KiB ~ 500 J no bound no bound no bound 4.5 %")
        self.assertIn("node (measured: hwmon node)", self.energy()[0])

    def test_uncertainty_and_the_clock_stand_with_the_energy(self):
        one = phase("global", 1, 4, 100.0) | sampled(2.5) | {
            "slowed": {"actuator": "emulated", "asked": 0.85, "obtained": 0.8}}
        self.leave([line(10.0, 900.0, [one])])
        self.assertEqual(self.row("global"),
                         "global 1 1.000 1.0 KiB 100.0 +- 2.5 J 2.5 J 0 J 0 J 10 %")
        self.assertIn("1 of 1 times global ran at 0.800 of the base clock or more (0.850 asked "
                      "for; actuator: emulated)", self.energy()[0])
        (told,) = self.report("energy", "heat", tiers=self.tiers)["phases"]
        self.assertEqual((told["uncertainty_j"], told["slowed"]["obtained"]), (2.5, 0.8))
        (row, _) = csv.DictReader(self.energy("--csv")[0].splitlines())
        self.assertEqual((row["uncertainty_j"], row["obtained"]), ("2.5", "0.8"))

    def test_the_three_parts_of_an_uncertainty_are_shown_apart_and_together(self):
        off = {"uncertainty": {"sampling_j": 2.0, "sensor_j": 25.0, "attribution_j": 4.0}}
        one = line(10.0, 900.0, [phase("global", 1, 4, 100.0) | off])
        one["whole"] |= {"uncertainty": {"sampling_j": 3.0, "sensor_j": 50.0, "attribution_j": 0.0},
                         "ends_j": [1.0, 2.0]}
        one["sources"] = [SOURCES[0] | {"accuracy": 0.05, "accuracy_source": "a data sheet"}]
        self.leave([one | {"schema": 2}])
        self.assertEqual(self.row("global"),
                         "global 1 1.000 1.0 KiB 100 +- 31 J 2.0 J 25 J 4.0 J 10.0 %")
        out = self.energy()[0]
        self.assertIn("all phases: 100 +- 31 J, off by at most: 2.0 J as samples are apart, 25 J "
                      "by the source itself, 4.0 J by who", out)
        self.assertEqual([self.row(f"  off by {what}").split(" ")[-2:]
                          for what in ("sampling", "the source", "who is charged")],
                         [["3.0", "J"], ["50", "J"], ["0", "J"]])
        self.assertEqual(self.row("whole job "), "whole job 1000 +- 50 J 3.0 J 50 J 0 J 100.0 %")
        (level,) = self.report("energy", "heat", tiers=self.tiers)["levels"]
        self.assertEqual(level["j_per_gb_uncertainty"],
                         {name: value / 1.024e-6 for name, value in off["uncertainty"].items()})
        self.assertIn("hwmon node node: off by up to 5 %: a data sheet", out)
        (told,) = self.report("energy", "heat", tiers=self.tiers)["phases"]
        self.assertEqual((told["uncertainty_j"], told["uncertainty"]), (31.0, off["uncertainty"]))
        (row, _) = csv.DictReader(self.energy("--csv")[0].splitlines())
        self.assertEqual((row["domain"], row["kind"], row["sensor_j"]), ("node", "measured", "25"))

    def test_an_estimate_without_a_bound_has_two_digits_and_says_so(self):
        one = line(10.0, 987.65, [])
        one["whole"] |= {"uncertainty": {"sampling_j": 3.0, "sensor_j": None, "attribution_j": 0.0},
                         "ends_j": [1.0, 2.0]}
        self.leave([one | {"schema": 2}])
        self.assertEqual(self.row("whole job "), "whole job ~ 990 J 3.0 J no bound 0 J 100.0 %")
        self.assertIn("estimates without a bound", self.energy()[0])
        self.assertNotIn("uncertainty_j", self.report("energy", "heat", tiers=self.tiers)["whole"])

    def test_what_is_no_more_than_its_uncertainty_is_said_to_be_below_their_sum(self):
        self.leave([line(10.0, 990.0, [phase("keep", 1, 1, 10.0) | sampled(15.0)])])
        self.assertEqual(self.row("keep"), "keep 1 1.000 1.0 KiB < 25 J 15 J 0 J 0 J < 2.5 %")
        (one,) = self.report("energy", "heat", tiers=self.tiers)["phases"]
        self.assertEqual((one["joules"], one["uncertainty_j"]), (10, 15))

    def test_bounds_of_versions_are_added(self):
        phases = [phase("keep", version, 1, 10.0) | sampled(5.0)
                  for version in range(1, 10)]
        self.leave([line(10.0, 910.0, phases)])
        self.assertEqual(self.row("keep"), "keep 9 9.000 9.0 KiB 90 +- 50 J 45 J 0 J 0 J 9.0 %")

    def test_work_that_was_lost_is_named(self):
        self.leave(RUN)  # captured at 1040: a third of 60 s and 6000 J
        self.assertIn("start 2 went back to version 10: 20.00 s and ~ 2000 J (without a bound) "
                      "of the program were for nothing, and what it did after its last line, 5.00 "
                      "s before this start",
                      self.energy()[0])

    def test_in_hindsight_the_schedule_is_compared_with_the_best(self):
        # Ten starts of 1000 s, of which nine fail; checkpoints of 5 s every 100 s; restarts of 20
        # s.
        lines = [line(10000.0, 1e6, [])]
        for start in range(10):
            begin = 1000.0 * start
            lines.append({"event": "open", "time_unix_s": begin, "ranks": 2, "nodes": 1})
            if start:
                lines.append({"event": "restart", "time_unix_s": begin + 20, "level": 1,
                              "seconds": 20.0, "sources": ["own node"] * 2})
            lines += [{"event": "checkpoint", "time_unix_s": begin + 100 * nth, "level_reached": 1,
                       "bytes_total": 1,
                       "blocked_s": 5.0, "phases": {"capture": 5.0}} for nth in range(1, 11)]
        lines.append({"event": "close", "time_unix_s": 10000.0})
        self.leave([{"schema": 1} | one for one in lines])
        told = self.report("energy", "heat", tiers=self.tiers)["hindsight"]
        rate, work_s = 9 / 10000, (10000 - 500 - 180) / 100

        def time_over_work(work_s):
            return math.exp(rate * 20) * math.expm1(rate * (work_s + 5)) / rate / work_s

        best = min(time_over_work(work_s) for work_s in range(50, 200))
        self.assertEqual((told["failures"], told["work_s"]), ("observed", work_s))
        self.assertAlmostEqual(told["time_over_work"], time_over_work(work_s), places=9)
        self.assertAlmostEqual(told["best"]["time_over_work"], best, places=5)
        self.assertAlmostEqual(told["more_time"], time_over_work(work_s) / best - 1, places=5)
        self.assertIn("in hindsight, with a failure every 19 min (of 9 failures: known to a factor "
                      "of 2.2)", self.energy()[0])

    def test_a_rate_of_one_failure_is_told_as_one(self):
        lines = [{"event": "open", "time_unix_s": 0, "ranks": 2, "nodes": 1}]
        lines += [{"event": "checkpoint", "time_unix_s": 40.0 * nth, "level_reached": 1,
                   "bytes_total": 1, "blocked_s": 5.0, "phases": {"capture": 5.0}}
                  for nth in range(1, 5)]
        lines += [{"event": "open", "time_unix_s": 160.0, "ranks": 2, "nodes": 1},
                  {"event": "restart", "time_unix_s": 171.23, "level": 1, "seconds": 10.0,
                   "sources": ["own node"]},
                  line(181.23, 1000.0, [], end=181.23)]
        self.leave([{"schema": 1, "incarnation": 1, "version": 1} | one for one in lines])
        out = self.energy()[0]
        self.assertIn("in hindsight, with a failure every 3 min (of 1 failure: known to a factor "
                      "of 40)", out)
        self.assertRegex(out, r"of work cost \d+ % of it in expectation")
        hindsight = self.report("energy", "heat", tiers=self.tiers)["hindsight"]
        self.assertEqual(hindsight["failures_observed"], 1)

    def test_in_hindsight_nothing_is_said_of_a_job_that_did_not_fail(self):
        self.leave(PLAIN)
        self.assertIsNone(self.report("energy", "heat", tiers=self.tiers)["hindsight"])
        self.assertIn("no failure came and none was told of", self.energy()[0])

    def test_a_baseline_gives_percent_of_it(self):
        self.leave(RUN)
        self.leave(PLAIN, job="plain-0a1b2c3d")
        percent = self.report("energy", "heat", "--baseline", "plain", tiers=self.tiers)["percent"]
        self.assertEqual(percent, {"runtime": 25, "watts": 10, "joules": 37.5})

    def metered(self, joules, sampling_j, seconds=10.0, source="rapl 0", host="a1"):
        off = {"sampling_j": sampling_j, "sensor_j": 0.05 * joules, "attribution_j": 0.0}
        return line(seconds, joules, []) | {
            "schema": 2, "hosts": host,
            "sources": [{"domain": "node", "source": source, "kind": "measured"}],
            "whole": {"joules": {"total": joules}, "uncertainty": off, "ends_j": [0.0, sampling_j]}}

    def test_what_meters_cannot_tell_apart_is_not_told_apart(self):
        self.leave([self.metered(1012.0, 20.0)])
        self.leave([self.metered(1000.0, 10.0)], job="plain-0a1b2c3d")
        out = self.energy("--baseline", "plain")[0]
        self.assertIn("+1.2 % +- 3.0 %: not told apart", out)
        self.assertIn("how far two runs of the same differ is in no change", out)
        self.leave([self.metered(900.0, 5.0)], job="other-0a1b2c3d")
        out = self.report("energy", "heat", "--baseline", "plain", "--baseline", "other",
                          tiers=self.tiers)
        self.assertEqual([one["whole"]["joules"]
                          for one in (out["baseline"], *out["more_baselines"])], [1000, 900])
        self.assertAlmostEqual(out["percent"]["joules"], 100 * (1012 / 950 - 1))
        self.assertGreater(out["percent_off"]["joules"], out["percent"]["joules"])
        self.assertEqual(out["percent_off"]["runtime"], 0)  # all took 10 s
        self.leave([self.metered(1000.0, 10.0, source="hwmon node")], job="board-0a1b2c3d")
        self.assertIn("+1.2 % +- 13.1 %: not told apart", self.energy("--baseline", "board")[0])

    def test_runs_on_other_machines_are_not_told_apart_by_samples_alone(self):
        self.leave([self.metered(1060.0, 0.0)])
        self.leave([self.metered(1000.0, 0.0, host="b2")], job="other-0a1b2c3d")
        out = self.energy("--baseline", "other")[0]
        self.assertIn("+6.0 % +- 10.6 %: not told apart", out)
        self.assertIn("the runs were on different machines", out)
        self.leave([self.metered(1000.0, 0.0)], job="same-0a1b2c3d")
        out = self.energy("--baseline", "same")[0]
        self.assertIn("+6.0 % +- 0.0 %", out)
        self.assertNotIn("machines,", out)
        self.leave([self.metered(1000.0, 0.0) | {"machines": 2}], job="two-0a1b2c3d")
        self.assertIn("beware: machines of the job: 1; of the baseline: 2",
                      self.energy("--baseline", "two")[0])

    def test_the_domains_of_a_total_are_told_with_their_shares(self):
        whole = {"joules": {"package": 240.0, "dram": 60.0, "gpu": 7.0, "core": 100.0,
                            "total": 300.0},
                 "uncertainty_of": {"package": [1.0, 11.0, 0.0], "dram": [1.0, None, 0.0]}}
        keep = phase("keep", 1, 1, 1.0) | {"joules": {"package": 30.0, "total": 40.0},
                                           "uncertainty_of": {"package": [1, 1, 1]}}
        sources = [{"domain": name, "source": f"powercap {name}", "kind": "measured"}
                   for name in ("package", "dram", "gpu")]
        self.leave([line(10.0, 1.0, []) | {"total": "package+dram", "sources": sources,
                                           "whole": whole, "phases": [keep]}])
        table = self.energy()[0].split("DOMAIN")[1].splitlines()[1:9]
        rows = [" ".join(row.split()) for row in table]
        for row in ("package measured whole job 240 +- 12 J 1.0 J 11 J 0 J 80 %",
                    "package measured its phases 30.0 +- 3.0 J 1.0 J 1.0 J 1.0 J 10 %",
                    "dram measured whole job ~ 60 J 1.0 J no bound 0 J 20 %",
                    "dram measured its phases unknown - - - -",
                    "gpu measured whole job ~ 7.0 J no bound no bound no bound not in the total"):
            self.assertIn(row, rows)
        out = self.report("energy", "heat", tiers=self.tiers)
        told = {one["domain"]: one for one in out["domains"]}
        package = told["package"]
        self.assertEqual((package["percent"], package["uncertainty_j"], package["sources"]),
                         (80, 12, ["powercap package"]))
        self.assertEqual((told["gpu"]["is_in_total"], "percent" in told["gpu"]), (False, False))
        self.assertEqual(told["package"]["phases"]["joules"], 30)
        for row in (*out["phases"], *out["levels"]):
            self.assertEqual((row["domain"], row["kind"], row["source"]),
                             ("package+dram", "measured", "powercap dram; powercap package"))
        part = self.energy("--domain", "cpu")[0]
        self.assertRegex(part, r"(?m)^energy +240 \+- 12 J$")

    def test_the_rest_of_a_modelled_node_is_in_its_total(self):
        whole = {"joules": {"package": 60.0, "other": 40.0, "total": 100.0}}
        for total, is_in_total in (("node", True), ("psys", True), ("package", False)):
            with self.subTest(total=total):
                self.leave([line(10.0, 1.0, []) | {"total": total, "whole": whole}],
                           job=f"of-{total}-0a1b2c3d")
                out = self.report("energy", f"of-{total}", tiers=self.tiers)
                other = {one["domain"]: one for one in out["domains"]}["other"]
                self.assertEqual(other["is_in_total"], is_in_total)
                self.assertEqual(other.get("percent"), 40 if is_in_total else None)

    def test_lines_that_are_missing_or_there_twice_are_told_and_bill_nothing(self):
        lines = [self.metered(1000.0, 5.0) | {"number": number, "time_unix_s": 1000.0 + 10 * number}
                 for number in range(1, 21)]
        ledger = self.leave(lines[:4] + lines[15:])
        out = self.report("energy", "heat", tiers=self.tiers)
        self.assertEqual((out["missing_lines"], out["runtime_s"], out["gap_s"]), (11, 200, 110))
        self.assertEqual(self.row("energy"), "energy >= 9000 +- 500 J")
        self.assertIn("at least 11 lines of the ledger are missing, of 110.000 s", self.energy()[0])
        ledger.write_text("".join(json.dumps(line) + "\n" for line in lines + lines + lines[3:5]))
        out = self.report("energy", "heat", tiers=self.tiers)
        self.assertEqual((out["whole"]["joules"], out["runtime_s"]), (20000, 200))
        self.assertEqual((out["missing_lines"], out["repeated_lines"]), (0, 22))
        self.assertIn("22 lines of the ledger are there twice, and count once", self.energy()[0])

    def test_a_ledger_that_was_cut_off_at_its_end_is_told(self):
        opened = {"schema": 2, "event": "open", "incarnation": 1, "time_unix_s": 1000.0}
        lines = [self.metered(1000.0, 5.0) | {"number": number, "time_unix_s": 1000.0 + 10 * number}
                 for number in range(1, 4)]
        closed = {"schema": 2, "event": "close", "incarnation": 1, "time_unix_s": 1030.0}
        ledger = self.leave([opened, *lines[:2], lines[2] | {"last": True}, closed])
        self.assertEqual(self.report("energy", "heat", tiers=self.tiers)["open_ends"], [])
        self.assertNotIn("start 1", self.energy()[0])
        ledger.write_text("".join(json.dumps(one) + "\n" for one in [opened, *lines[:2]]))
        self.assertEqual(self.report("energy", "heat", tiers=self.tiers)["open_ends"],
                         [{"incarnation": 1, "was_closed": False, "seconds": None}])
        self.assertIn("start 1 has no line that ends it", self.energy()[0])
        ledger.write_text("".join(json.dumps(one) + "\n" for one in [opened, *lines[:2], closed]))
        out = self.report("energy", "heat", tiers=self.tiers)
        self.assertEqual((out["missing_lines"], out["runtime_s"], out["gap_s"]), (1, 30, 10))
        self.assertIn("start 1 lacks its last energy lines: what it used in its last 10.00 s",
                      self.energy()[0])
        self.assertRegex(self.row("energy"), "^energy >= 2000")

    def test_lines_that_could_not_be_written_are_told(self):
        self.leave([*RUN, {"schema": 2, "event": "lost", "time_unix_s": 1200.0, "lines": 7}])
        self.assertIn("7 lines of the ledger could not be written", self.energy()[0])

    def test_energy_of_which_a_part_is_missing_is_neither_compared_nor_divided_by(self):
        half = self.metered(1000.0, 10.0)
        phases = [phase("global", 1, 4, 1500.0), phase("keep", 2, 1, 50.0)]
        unknown = line(10.0, 1.0, phases, end=10.0)
        self.leave([half | {"time_unix_s": 0.0},
                    unknown | {"whole": {"joules": {"total": None}},
                               "program": {"joules": {"total": None}}}])
        self.leave([self.metered(1000.0, 10.0),
                    self.metered(1000.0, 10.0) | {"time_unix_s": 10.0}], job="plain-0a1b2c3d")
        out = self.energy("--baseline", "plain")[0]
        self.assertIn("energy of one side is missing in part", out)
        self.assertRegex(out, r"(?m)^energy .* -$")
        percent = self.report("energy", "heat", "--baseline", "plain", tiers=self.tiers)["percent"]
        self.assertEqual(percent, {"runtime": 0, "watts": None, "joules": None})
        self.assertEqual(self.row("global"),
                         "global 1 1.000 1.0 KiB ~ 1500 J no bound no bound no bound -")
        self.assertEqual(self.row("keep"),
                         "keep 1 1.000 1.0 KiB ~ 50 J no bound no bound no bound <= 5.0 %")
        self.assertIn("to save at most ~ 1500 J (without a bound): set async.mode", out)
        self.assertNotIn("percent", self.report("energy", "heat", tiers=self.tiers)["phases"][0])

    def test_no_advice_saves_more_than_the_job_has_used(self):
        self.leave([line(100.0, -50.0, [phase("global", 1, 4, 200.0)])])
        (advice,) = self.report("energy", "heat", tiers=self.tiers)["advice"]
        self.assertEqual((advice["joules"], advice["percent"]), (150, 100))

    def test_nobody_shares_a_node_in_no_time(self):
        used = {"job_s": 0.0, "others_s": 0.0, "others_most_s": 0.0}
        self.leave([line(0.0, 0.0, []) | {"processors": used}])
        self.assertNotIn("nan", self.energy()[0])

    def test_a_part_of_the_machine_can_be_looked_at_alone(self):
        def of(package, dram):
            return {"joules": {"package": package, "dram": dram, "total": package + dram}}

        keep = phase("keep", 1, 1, 1.0) | of(30.0, 10.0)
        unknown = phase("global", 2, 4, 1.0) | {"joules": {"package": 5.0, "total": None}}
        sources = [{"domain": name, "source": f"powercap {name}", "kind": "measured"}
                   for name in ("package", "dram", "gpu")]
        self.leave([line(10.0, 1.0, [])
                    | {"total": "package+dram", "sources": sources, "whole": of(200.0, 100.0),
                       "program": of(165.0, 90.0), "phases": [keep, unknown]}])
        self.assertIn("of the dram alone: dram (measured: powercap dram)",
                      self.energy("--domain", "dram")[0])
        for part, whole, program, phases in (("cpu", 200, 165, [30, 5]),
                                             ("dram", 100, 90, [10, None])):
            out = json.loads(self.energy("--domain", part, "--json")[0])
            self.assertEqual((out["part"], out["whole"]["joules"], out["program"]["joules"]),
                             (part, whole, program))
            self.assertEqual([one["joules"] for one in out["phases"]], phases)
        self.assertIn("tells nothing of node alone; it has dram, package",
                      self.energy("--domain", "node", status=3)[1])
        self.assertIn("seen, and not in the total: gpu (measured: powercap gpu)", self.energy()[0])

    def test_what_is_uncertain_of_the_total_is_uncertain_of_a_part_that_is_all_of_it(self):
        one = self.metered(1000.0, 20.0)
        one["whole"]["joules"]["node"] = 1000.0
        one["program"]["joules"]["node"] = 1000.0
        self.leave([one])
        self.assertEqual(
            json.loads(self.energy("--domain", "node", "--json")[0])["whole"]["uncertainty_j"], 70)

    def test_joules_of_a_level_are_told_for_a_gb(self):
        sizes = [phase("global", version, 4, joules) | {"bytes": 2 * 10**9}
                 for version, joules in ((1, 30.0), (2, 50.0))]
        self.leave([line(10.0, 900.0, [phase("keep", 1, 1, 8.0) | {"bytes": 10**9}, *sizes])])
        self.assertEqual([(one["level"], one["versions"], one["bytes"], one["j_per_gb"]) for one in
                          self.report("energy", "heat", tiers=self.tiers)["levels"]],
                         [(1, 1, 10**9, 8), (4, 2, 4 * 10**9, 20)])
        self.assertTrue(self.rows("level 4")[1].startswith("level 4 ~ 20 J"))

    def test_advice_names_what_would_save_energy_and_how_much(self):
        self.leave([line(100.0, 700.0, [phase("global", 1, 4, 200.0), phase("wait", 1, 0, 95.0),
                                        phase("partner", 2, 2, 5.0)
                                        | {"beside": "program"}])])
        first, second = self.report("energy", "heat", tiers=self.tiers)["advice"]
        self.assertIn("async.mode", first["what"])
        self.assertEqual((first["joules"], first["percent"], first["is_at_most"]), (200, 20, True))
        self.assertEqual(second["joules"], 95)
        self.assertIn("to save at most ~ 200 J (without a bound) (at most 20 %): set async.mode",
                      self.energy()[0])

    def test_advice_tells_a_wait_for_room_from_one_for_other_ranks(self):
        self.leave([{"schema": 2, "event": "checkpoint", "incarnation": 1, "version": version,
                     "time_unix_s": 1.0, "waited_s": waited_s} for version, waited_s in
                    ((1, 0.0), (2, 3.0))] +
                   [line(100.0, 900.0, [phase("wait", 1, 0, 10.0), phase("wait", 2, 0, 30.0),
                                        phase("global", 2, 4, 60.0) | {"beside": "program"}])])
        room, ranks = self.report("energy", "heat", tiers=self.tiers)["advice"]
        self.assertIn("async.in_flight", room["what"])
        self.assertIn("waited for 3 s for versions in flight to make room", room["what"])
        self.assertEqual((room["joules"], room["is_at_most"]), (30, True))
        self.assertIn("waited for one another, for 1 s", ranks["what"])
        self.assertEqual(ranks["joules"], 10)

    def test_there_is_no_advice_where_nothing_is_to_be_saved(self):
        small = phase("global", 1, 4, 5.0)
        unsure = phase("wait", 1, 0, 40.0) | sampled(50.0)
        self.leave([line(100.0, 955.0, [small, unsure])])
        self.assertEqual(self.report("energy", "heat", tiers=self.tiers)["advice"], [])

    def test_advice_on_intervals_is_of_the_schedule_in_hindsight(self):
        lines = []
        for start in range(10):
            begin = 1000.0 * start
            lines.append({"event": "open", "time_unix_s": begin, "ranks": 2, "nodes": 1})
            if start:
                lines.append({"event": "restart", "time_unix_s": begin + 20, "level": 1,
                              "seconds": 20.0, "sources": ["own node"] * 2})
            lines += [{"event": "checkpoint", "time_unix_s": begin + at, "level_reached": 1,
                       "blocked_s": 5.0, "phases": {"keep": 5.0}}
                      for at in range(30, 1000, 10)]
        lines.append(line(10000.0, 1e6, [], end=10000.0))
        self.leave([{"schema": 1, "incarnation": 1, "version": 1} | one for one in lines])
        (advice,) = self.report("energy", "heat", tiers=self.tiers)["advice"]
        self.assertIn("of 9 failures", advice["how_sure"])
        self.assertGreater(advice["percent"], 10)
        self.assertNotIn("uncertainty_j", advice)

    def test_a_baseline_may_be_a_ledger_anywhere(self):
        self.leave(RUN)
        (self.scratch / "plain.jsonl").write_text(json.dumps(PLAIN[0]) + "\n")
        self.assert_in_order(["runtime", "+25.0 %", "average power", "+10.0 %", "energy",
                              "+37.5 %"],
                             self.energy("--baseline", "plain.jsonl")[0])

    def test_the_job_may_be_a_ledger_anywhere(self):
        (self.scratch / "copied.jsonl").write_text(json.dumps(PLAIN[0]) + "\n")
        out = self.report("energy", "copied.jsonl", tiers=self.tiers)
        self.assertEqual((out["ledger"], out["whole"]["joules"]), ("copied.jsonl", 8000))

    def test_csv_has_a_row_for_each_phase_of_a_version_and_one_for_the_program(self):
        self.leave(RUN)
        rows = list(csv.DictReader(self.energy("--csv")[0].splitlines()))
        self.assertEqual([row["phase"] for row in rows], ["capture", "global", "restore", ""])
        self.assertEqual(sum(float(row["joules"]) for row in rows), 11000)

    def test_no_cell_of_csv_is_a_formula(self):
        self.leave([one | {"total": "=1+2"} for one in PLAIN])
        (row,) = csv.DictReader(self.energy("--csv")[0].splitlines())
        self.assertEqual(row["domain"], "'=1+2")

    def test_what_nobody_knows_is_said_and_is_no_zero(self):
        self.leave([line(10.0, 900.0, [phase("keep", 1, 1, None)], gap_s=1.0)])
        self.assertIn("unknown", self.row("keep"))
        self.assertIn("no source knows anything of 1.000 s", self.energy()[0])
        (one,) = self.report("energy", "heat", tiers=self.tiers)["phases"]
        self.assertEqual((one["joules"], one["unknown"]), (None, 1))

    def test_machines_without_meters_are_said(self):
        self.leave([PLAIN[0] | {"machines": 4, "unmetered": 1}])
        self.assertIn("of 1 of 4 machines the energy is unknown", self.energy()[0])
        self.assertEqual(self.row("energy"), "energy >= ~ 8000 J")
        self.assertEqual(self.report("energy", "heat", tiers=self.tiers)["unmetered"], 1)

    def test_a_shared_node_is_said_to_be_one_with_the_part_of_the_job(self):
        used = {"job_s": 120.0, "others_s": 40.0, "others_most_s": 40.0, "job_j": 6000.0,
                "job_attribution_j": 900.0}
        self.leave([PLAIN[0] | {"processors": used}])
        self.assertIn(
            "whole nodes, shared with others: 25 % of the processor time was used by others",
            self.energy()[0])
        self.assertIn("the job's part is", self.energy()[0])
        shared = self.report("energy", "heat", tiers=self.tiers)["shared"]
        self.assertEqual((shared["is_shared"], shared["joules"]), (True, 6000))

    def leave_sacct(self, answer):
        """A sacct that gives this answer and notes how it was called; returns the PATH with it."""
        tools = self.scratch / "tools"
        tools.mkdir()
        (tools / "answer").write_text(answer)
        (tools / "sacct").write_text(
            f"#!/bin/sh\necho \"$*\" >> {tools}/calls\nexec cat {tools}/answer\n")
        (tools / "sacct").chmod(0o755)
        return f"{tools}:{os.environ['PATH']}"

    def start_of(self, job, incarnation):
        return {"schema": 2, "event": "open", "incarnation": incarnation, "time_unix_s": 1000,
                "slurm_job": job}

    def test_what_slurm_has_counted_stands_beside(self):
        self.leave([self.start_of("77", 1)] + RUN)
        path = self.leave_sacct("77|77|12000|120\n77.0|77.0|11990|110\n")
        self.assert_in_order(["by Slurm's accounting (ConsumedEnergy of 77): 12000", "in 120",
                              "100", "the ledger has 110", "(+10.0 %)"],
                             self.diapause("energy", "heat", tiers=self.tiers, PATH=path)[0])
        out = json.loads(self.diapause("energy", "heat", "--json", tiers=self.tiers, PATH=path)[0])
        self.assertEqual(out["slurm"], {"jobs": ["77"], "joules": 12000, "seconds": 120})

    def test_slurm_is_asked_once_for_all_starts(self):
        self.leave([self.start_of("77", 1), *RUN, self.start_of("78", 2),
                    self.start_of("-x", 3)])
        path = self.leave_sacct("77|77|12000|120\n78|78|3000|inf\n")
        out = json.loads(self.diapause("energy", "heat", "--json", tiers=self.tiers, PATH=path)[0])
        self.assertEqual(out["slurm"], {"jobs": ["77", "78"], "joules": 15000, "seconds": 120})
        (call,) = (self.scratch / "tools" / "calls").read_text().splitlines()
        self.assertIn("--jobs 77,78 ", call)

    def test_without_a_source_there_are_times_and_no_joules(self):
        bare = line(10.0, 0.0, []) | {"total": "", "sources": [], "program": {}, "whole": {},
                                      "phases": [phase("keep", 1, 1, ...)]}
        self.leave([bare])
        self.assertEqual(self.row("keep"), "keep 1 1.000 1.0 KiB - - - - -")
        self.assertEqual(self.row("runtime"), "runtime 10.00 s")
        self.assertNotIn("joules", self.report("energy", "heat", tiers=self.tiers)["whole"])

    def test_damaged_lines_are_left_out_and_counted(self):
        self.leave(['{"event": "ener', '{"event": 7}', "\0\xff", *RUN,
                    '{"event": "energy", "seconds": []}'])
        self.assertIn("4 lines are left out", self.energy()[0])
        self.assertEqual(self.report("energy", "heat", tiers=self.tiers)["whole"]["joules"], 11000)

    def test_a_long_ledger_is_read_to_its_end_without_a_line_that_is_too_long(self):
        self.leave([" " * (3 << 20), RUN[0], '"' + "x" * (17 << 20) + '"', *RUN[1:]])
        self.assertEqual(self.report("energy", "heat", tiers=self.tiers)["whole"]["joules"], 11000)

    def test_nothing_to_read_is_an_error_that_names_it(self):
        self.assertIn("no job 'heat'", self.energy(status=3)[1])
        ledger = self.leave([{"schema": 1, "event": "open", "incarnation": 1, "time_unix_s": 1}])
        self.assertIn(f"{ledger} has no energy line", self.energy(status=3)[1])
        ledger.write_text('{"event": "ener\n\0\n')
        self.assertIn("no sound energy line, and 2 damaged ones", self.energy(status=3)[1])
        ledger.unlink()
        self.assertIn(str(ledger), self.energy(status=3)[1])

    def test_a_ledger_of_another_schema_is_refused(self):
        self.leave([one | {"schema": 3} for one in RUN])
        self.assertIn("has schema 3, and this version reads 1 and 2", self.energy(status=3)[1])


if __name__ == "__main__":
    support.main()
