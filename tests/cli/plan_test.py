#!/usr/bin/env python3
"""`diapause plan` and `diapause simulate`: what they say is what the formulas say,
and what they are told."""

import csv
import json
import math

import support
from support import CommandTest

ONE_LEVEL = ["--levels", "4", "--level", "4:blocked=15min,restart=15min", "--sync"]
JOB = ["--nodes", "64", "--bytes-per-rank", "8GiB", "--node-mtbf", "100d", "--mtbf", "system=20d"]


class PlanTest(CommandTest):
    def plan(self, *arguments):
        return json.loads(self.diapause("plan", *arguments, "--json")[0])

    def simulation(self, *arguments):
        return json.loads(self.diapause("simulate", *arguments, "--json")[0])

    def test_the_interval_of_one_level_is_that_of_lamberts_function(self):
        told = self.plan(*ONE_LEVEL, "--mtbf", "system=1d", "--nodes", "10")
        exact, daly, young = told["approximations"]
        self.assertAlmostEqual(young["work_s"], math.sqrt(2 * 900 * 86400), places=3)
        x = exact["work_s"] / 86400
        self.assertAlmostEqual((x - 1) * math.exp(x - 1), -math.exp(-900 / 86400 - 1), places=10)
        self.assertLess(daly["more_time"], young["more_time"])
        self.assertAlmostEqual(told["schedules"][0]["intervals"][0]["work_s"] / exact["work_s"], 1,
                               places=3)

    def test_all_shares_add_up_and_energy_costs_no_less_time(self):
        told = self.plan(*JOB)
        for schedule in told["schedules"]:
            for key in ("of_time", "of_energy"):
                self.assertAlmostEqual(sum(part[key] for part in schedule["parts"].values()), 1,
                                       places=9)
        time, energy, mixed = told["schedules"]
        self.assertLessEqual(time["time_per_work"], energy["time_per_work"])
        self.assertLessEqual(energy["joules_per_work_s"], time["joules_per_work_s"])
        self.assertLessEqual(mixed["time_per_work"], 1.02 * time["time_per_work"])
        self.assertTrue(any("assumed" in note for note in told["notes"]))

    def test_larger_machines_work_a_smaller_share_of_their_time(self):
        rows = self.plan(*ONE_LEVEL, "--node-mtbf", "15y", "--sizes", "1024,16384,65536")["sizes"]
        shares = [row["plan"]["parts"]["work"]["of_time"] for row in rows]
        self.assertGreater(shares[0], 0.9)
        self.assertEqual(shares, sorted(shares, reverse=True))
        mtbf_s = 15 * 31557600 / 65536
        self.assertAlmostEqual(rows[2]["mtbf_s"], mtbf_s, places=3)
        # This is computed by hand: the expectation of Daly's equation at the optimal interval.
        work_s = rows[2]["plan"]["intervals"][0]["work_s"]
        wall_s = mtbf_s * math.exp(900 / mtbf_s) * math.expm1((work_s + 900) / mtbf_s)
        self.assertAlmostEqual(shares[2], work_s / wall_s, places=6)

    def test_assumptions_are_told_of_sizes_too_and_bytes_that_nobody_knows_are_not_0(self):
        one = ["--levels", "4", "--level", "4:blocked=15min", "--sync", "--node-mtbf", "15y"]
        out = self.diapause("plan", *one)[0]
        self.assertIn("1 node, an unknown size protected\n", out)
        as_long = "level 4: a restart takes as long as its checkpoint blocks, assumed"
        self.assertIn(f"note: {as_long}\n", out)
        self.assertNotIn(as_long, self.diapause("plan", *ONE_LEVEL, "--mtbf", "system=1d")[0])
        self.assertEqual(
            self.diapause("plan", *one, "--sizes", "10,1000")[0].count(f"note: {as_long}\n"), 1)
        told = self.plan("--bytes-per-rank", "1GiB", "--node-mtbf", "15y", "--sizes", "10,1000")
        self.assertTrue(any(note.startswith("1000 nodes: storage rate: 100000 MB/s, assumed")
                            for note in told["notes"]), told["notes"])

    def test_the_fill_time_law_gives_the_published_minutes(self):
        for words, minutes in (("205TB,10PB,2TB,100", 6.8), ("598TB,10.7PB,1TB,100", 9.3),
                               ("710TB,10.7PB,1TB,100", 11.1)):
            told = self.plan("--fill-time", words)
            self.assertAlmostEqual(told["least_s"] / 60, minutes, places=1)

    def test_a_storage_may_be_told_by_its_nodes_and_devices_and_a_dump_by_the_memory_in_use(self):
        whole, used = (self.plan("--fill-time", "200TB,50x100,2TB,100"),
                       self.plan("--fill-time", "200TB,50x100,2TB,100,25"))
        self.assertAlmostEqual(whole["storage_bytes_per_s"] / 1e9, 500, places=6)
        self.assertAlmostEqual(whole["least_s"], 400, places=6)
        self.assertAlmostEqual(used["least_s"], 100, places=6)
        self.assertEqual(used["written_bytes"], 50e12)
        self.assertIn("a dump of 25 %",
                      self.diapause("plan", "--fill-time", "200TB,50x100,2TB,100,25")[0])
        for words, word in (("1TB,1PB,2TB,100,0", "percentage"),
                            ("1TB,1PB,2TB,100,101", "percentage"), ("1TB,0x9,2TB,100", "storage"),
                            ("1TB,9x,2TB,100", "''")):
            with self.subTest(words):
                self.assertIn(word, self.diapause("plan", "--fill-time", words, status=3)[1])

    def test_a_ledger_stands_in_for_what_is_not_said(self):
        lines = [{"event": "open", "time_unix_s": 0, "ranks": 8, "nodes": 4}]
        for version in range(5):
            lines.append({"event": "checkpoint", "time_unix_s": 100 * version,
                          "level_reached": 4 if version == 4 else 1,
                          "bytes_total": 1 << 30, "blocked_s": 2 + version,
                          "phases": {"capture": 2, "global": 8}})
        lines.append({"event": "restart", "time_unix_s": 900, "level": 1, "seconds": 3.5})
        text = "".join(json.dumps({"schema": 1} | line) + "\n" for line in lines)
        (self.scratch / "ledger.jsonl").write_text(
            text + '{"schema": 1, "event": "checkpoint", "blocked_s": "x"}\nno json\n')
        told = self.plan("--from", "./ledger.jsonl", "--levels", "1,4", "--mtbf",
                         "process=1h,system=1d")
        self.assertEqual(told["nodes"], 4)
        first, last = told["levels"]
        # The median of an even number is the upper of the two middle ones.
        self.assertEqual((first["blocked_s"], first["restart_s"]), (4, 3.5))
        self.assertEqual((last["blocked_s"], last["behind_s"]), (6, 4))

    def test_a_wait_for_room_is_no_cost_at_intervals_that_leave_the_time(self):
        lines = [{"event": "open", "time_unix_s": 0, "ranks": 1, "nodes": 1}]
        for version in range(3):
            lines.append({"event": "checkpoint", "time_unix_s": 3 * version, "level_reached": 4,
                          "bytes_total": 1 << 30, "blocked_s": 2.25, "waited_s": 2.0,
                          "phases": {"wait": 2.0, "capture": 0.25, "global": 3}})
        (self.scratch / "ledger.jsonl").write_text(
            "".join(json.dumps({"schema": 2} | line) + "\n" for line in lines))
        arguments = ["plan", "--from", "./ledger.jsonl", "--levels", "4", "--mtbf", "system=1d"]
        told = self.plan(*arguments[1:])
        self.assertEqual((told["levels"][0]["blocked_s"], told["levels"][0]["behind_s"]), (0.25, 3))
        self.assertIn("with the wait for versions in flight to make room, checkpoints blocked for "
                      "2.25 s", self.diapause(*arguments)[0])

    def powers(self, *arguments):
        told = self.plan(*arguments)
        return told["powers_w"], [note for note in told["notes"] if "power" in note]

    def test_assumed_powers_follow_from_those_that_are_known(self):
        job = ["--nodes", "100", "--bytes-per-rank", "16GiB", "--node-mtbf", "1y"]
        watts, notes = self.powers(*job, "--watts", "compute=400", "--watts", "idle=100")
        self.assertEqual(watts, {"compute": 40000, "checkpoint": 17500, "restart": 17500,
                                 "idle": 10000, "behind": 1500})
        self.assertFalse(any("processors" in note for note in notes), notes)
        by_profile, notes = self.powers(*job)
        self.assertTrue(any("64 processors by the profile, assumed" in note for note in notes),
                        notes)
        # The profile of one machine says nothing of processors.
        self.assertNotIn("processors", str(self.powers(*job, "--machine", "theta-xc40")[1]))
        # A quarter of the power computing is a quarter of that idle, too.
        fewer, notes = self.powers(*job, "--watts", f"compute={by_profile['compute'] / 400}")
        for name, value in by_profile.items():
            self.assertAlmostEqual(fewer[name], value / 4, msg=name)
        self.assertTrue(any(note.startswith("idle power: ") for note in notes), notes)

    def test_no_measured_job_takes_more_power_idle_than_computing(self):
        lines = [{"event": "open", "time_unix_s": 0, "ranks": 8, "nodes": 4},
                 {"event": "checkpoint", "time_unix_s": 9, "level_reached": 2, "blocked_s": 2,
                  "bytes_total": 1 << 30},
                 {"event": "energy", "time_unix_s": 20, "seconds": 20,
                  "program": {"joules": {"total": 1600}}}]
        (self.scratch / "ledger.jsonl").write_text(
            "".join(json.dumps({"schema": 1} | line) + "\n" for line in lines))
        watts, _ = self.powers("--from", "./ledger.jsonl", "--mtbf", "node=1d", "--levels", "2")
        self.assertEqual(watts["compute"], 80)
        self.assert_ascending([watts["behind"], watts["idle"], watts["checkpoint"],
                               watts["compute"]])

    def assert_ascending(self, values):
        self.assertEqual(values, sorted(values))

    def test_the_best_intervals_for_other_laws_are_found_by_simulation(self):
        arguments = [*ONE_LEVEL, "--nodes", "10", "--mtbf", "system=1d", "--law", "weibull:0.5",
                     "--horizon", "30d", "--replicas", "4"]
        told = self.plan(*arguments)["by_runs"]
        self.assertEqual((told["failures"], told["replicas"], len(told["intervals"])),
                         ("weibull:0.5", 4, 1))
        self.assertAlmostEqual(told["intervals"][0]["formula_work_s"],
                               self.plan(*ONE_LEVEL, "--nodes", "10", "--mtbf", "system=1d")
                               ["schedules"][0]["intervals"][0]["work_s"], places=6)
        self.assertEqual(told, self.plan(*arguments)["by_runs"],
                         "the same seed gives the same answer")
        self.assertIn("4 runs with failures by weibull:0.5", self.diapause("plan", *arguments)[0])
        (self.scratch / "trace.csv").write_text(
            "time_s,class,node\n" + "".join(f"{at},system,0\n" for at in range(1, 900000, 50000)))
        told = self.plan(*ONE_LEVEL, "--nodes", "10", "--mtbf", "system=1d", "--trace", "trace.csv",
                         "--horizon", "30d")
        self.assertEqual((told["by_runs"]["failures"], told["by_runs"]["replicas"]),
                         ("trace.csv", 1))
        self.assertIn("--law", self.diapause("plan", *ONE_LEVEL, "--nodes", "2", "--mtbf",
                                             "system=1d", "--law", "x", status=3)[1])

    def test_what_is_missing_or_wrong_is_named(self):
        for arguments, word in (([], "--bytes-per-rank"),
                                (["--bytes-per-rank", "1GiB"], "--node-mtbf"),
                                (["--bytes-per-rank", "much"], "'much' is no size"),
                                ([*JOB, "--mtbf", "meteor=1d"], "meteor"),
                                ([*JOB, "--mtbf", "node=0"], "--mtbf node must be above 0"),
                                ([*JOB, "--rate", "storage=0"], "--rate storage must be above 0"),
                                ([*JOB, "--level", "9:blocked=1s"], "--level"),
                                ([*JOB, "--machine", "nowhere"], "built-in machines"),
                                ([*ONE_LEVEL, "--sizes", "5"], "--node-mtbf")):
            with self.subTest(arguments):
                self.assertIn(word, self.diapause("plan", *arguments, status=3)[1])

    def test_failures_that_no_level_stands_against_are_told(self):
        arguments = ["--nodes", "64", "--bytes-per-rank", "1GiB", "--node-mtbf", "1y", "--levels",
                     "1"]
        out = self.diapause("plan", *arguments)[0]
        self.assertNotIn("nothing fails", out.lower())
        self.assert_in_order(["no level of the job stands against what fails",
                              "give --levels with 2",
                              "note: no level stands against failures of class 'node'"], out)
        self.assertIn("give --levels with 4, or --interval",
                      self.diapause("simulate", *arguments, "--mtbf", "system=9d", status=3)[1])

    def test_the_simulator_agrees_with_the_formula(self):
        told = self.simulation(*JOB, "--work", "1000d", "--replicas", "12")
        played = told["whole"]["time for a second of work"]
        self.assertLess(abs(played["mean"] / told["expected_time_per_work"] - 1), 0.005)
        shares = sum(value["mean"] for value in told["time"].values())
        self.assertAlmostEqual(shares, 1, places=6)

    def test_runs_depend_on_the_seed_and_not_on_the_threads(self):
        arguments = [*JOB, "--horizon", "300d", "--replicas", "4", "--law", "weibull:0.7"]
        one = self.simulation(*arguments, "--threads", "1")
        self.assertEqual(one, self.simulation(*arguments, "--threads", "3"))
        self.assertNotEqual(one, self.simulation(*arguments, "--seed", "9"))

    def test_events_follow_one_another(self):
        self.diapause("simulate", *JOB, "--horizon", "10d", "--replicas", "1", "--events",
                      "events.csv")
        with (self.scratch / "events.csv").open() as file:
            rows = [row for row in csv.DictReader(file) if row["what"] != "failure"]
        self.assertEqual(float(rows[0]["begin_s"]), 0)
        self.assertAlmostEqual(float(rows[-1]["end_s"]), 864000, places=3)
        for before, after in zip(rows, rows[1:]):
            self.assertAlmostEqual(float(before["end_s"]), float(after["begin_s"]), places=5)

    def test_a_trace_is_played_and_a_bad_one_refused(self):
        (self.scratch / "trace.csv").write_text(
            "time_s,class,node\n86400,node,3\n172800,system,0\n")
        told = self.simulation(*JOB, "--horizon", "20.5d", "--replicas", "1", "--trace",
                               "trace.csv")
        self.assertEqual(told["whole"]["failures: record"]["mean"], 20)
        (self.scratch / "trace.csv").write_text("time_s,class,node\nsoon,node,3\n")
        self.assertIn("trace.csv, line 2",
                      self.diapause("simulate", *JOB, "--trace", "trace.csv", status=3)[1])

    def test_an_allocation_ends_with_a_checkpoint_that_the_next_one_finds(self):
        # By the schedule, which knows of failures of nodes only, there is no level 4.
        arguments = ["--nodes", "64", "--bytes-per-rank", "1GiB", "--node-mtbf", "1y",
                     "--allocation", "24h", "--work", "30d", "--replicas", "2"]
        told = self.simulation(*arguments)
        self.assertEqual([(one["level"], one["work_s"] is None) for one in told["schedule"]],
                         [(2, False), (4, True)])
        self.assertAlmostEqual(told["whole"]["useful work"]["mean"], 30 * 86400, places=3)
        self.assertLess(told["time"]["rework"]["mean"], 0.05)
        self.assertEqual(told["whole"]["restarts from level 4"]["mean"], 30)
        self.assertEqual((told["whole"]["starts from scratch"]["mean"], told["runs_short_of_work"]),
                         (0, 0))
        self.assertIn(", level 4 at the end of each allocation",
                      self.diapause("simulate", *arguments)[0])

    def test_work_that_was_not_done_is_told(self):
        arguments = ["--nodes", "64", "--bytes-per-rank", "1GiB", "--node-mtbf", "1y", "--work",
                     "30d", "--replicas", "2"]
        # What is on the nodes is lost with them.
        on_nodes = [*arguments, "--allocation", "10h", "--levels", "1,2", "--horizon", "20d"]
        told = self.simulation(*on_nodes)
        self.assertEqual(told["runs_short_of_work"], 2)
        self.assertGreater(told["whole"]["starts from scratch"]["mean"], 0)
        self.assert_in_order(["2 of 2 runs ended after 20 d, before the 30 d of --work were done",
                              "each allocation begins from scratch; --levels with 4"],
                             self.diapause("simulate", *on_nodes)[0])
        self.assertNotIn("ended after", self.diapause("simulate", *arguments)[0])

    def test_a_level_that_is_always_a_deeper_one_is_said_to_be_one(self):
        arguments = ["--nodes", "64", "--bytes-per-rank", "1GiB", "--node-mtbf", "1y", "--mtbf",
                     "system=10d", "--horizon", "10d", "--replicas", "4"]
        told = self.simulation(*arguments)
        self.assertEqual([one["always_deeper"] for one in told["schedule"]], [True, False])
        self.assertEqual(told["whole"]["checkpoints of level 2"]["mean"], 0)
        self.assertRegex(self.diapause("simulate", *arguments)[0],
                         r"; level 2 as a deeper one, level 4 every [\d.]+ min of work\n")

    def test_what_would_be_ignored_is_refused(self):
        fill = ["plan", "--fill-time", "205TB,10PB,2TB,100"]
        for arguments, word in (
                (["plan", *JOB, "--group-nodes", "4", "--parity", "4"], "--parity 4 must be less"),
                (["plan", *JOB, "--levels", "1,2", "--level", "4:blocked=1s"], "it takes 1, 2"),
                (["plan", *JOB, "--level", "4:blocked=1s,blocked=2s"], "'blocked' is given twice"),
                (["plan", *JOB, "--mtbf", "system=3d"], "'system' is given twice"),
                (["plan", *JOB, "--mtbf", "node=3d"], "--node-mtbf and --mtbf node"),
                (["plan", *JOB, "--level", "4:"], "write 4:blocked=TIME"),
                (["plan", *JOB, "--level", "9:blocked=1s"], "levels are 1 to 5"),
                (["plan", *JOB, "--level", "blocked=1s"], "begin with the number of a level"),
                (["plan", *JOB, "--horizon", "3d"], "--horizon: it is for runs"),
                (["plan", *JOB, "--replicas", "3"], "--replicas: it is for runs"),
                (["plan", *JOB, "--sizes", "3,4", "--law", "weibull:0.7"], "--law: --sizes"),
                ([*fill, "--plot", "x.svg"], "--plot: --fill-time"),
                ([*fill, "--nodes", "3"], "--nodes: --fill-time"),
                (["simulate", *JOB, "--shrink"], "--shrink requires --spares"),
                (["simulate", *JOB, "--repair", "1h"], "--repair requires --spares"),
                (["simulate", *JOB, "--queue", "1h"], "--queue requires --allocation")):
            with self.subTest(arguments):
                out, error = self.diapause(*arguments, status=3)
                self.assertIn(word, error)
                self.assertEqual(out, "")

    def test_files_that_cannot_be_written_are_refused_before_anything_is_computed(self):
        for verb in ("plan", "simulate"):
            for option, name, word in (
                    ("--plot", "x.pdf", "--plot: 'x.pdf' is not the name of a file that ends in"),
                    ("--plot", "", ".svg or .png"),
                    ("--plot", "absent/x.svg", "--plot: cannot open absent/x.svg: No such file"),
                    ("--events", "x.txt", ".csv or .json"),
                    ("--events", "absent/x.csv", "--events: cannot open absent/x.csv: No such")):
                if (verb, option) == ("plan", "--events"):
                    continue
                with self.subTest((verb, option, name)):
                    out, error = self.diapause(verb, *JOB, option, name, status=3)
                    self.assertIn(word, error)
                    self.assertEqual(out, "")
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_power_domain_fails_as_one(self):
        arguments = [*JOB, "--horizon", "500d", "--replicas", "2", "--power-domain", "8:2d"]
        told = self.simulation(*arguments, "--events", "events.csv")
        failures = told["whole"]["failures: power domain"]["mean"]
        self.assertLess(abs(failures / 250 - 1), 0.3)
        with (self.scratch / "events.csv").open() as file:
            taken = [row for row in csv.DictReader(file) if row["class"] == "power domain"]
        self.assertTrue(all(row["nodes"] == "8" and int(row["node"]) % 8 == 0 for row in taken),
                        taken[:3])
        for wrong in ("8", "0:1d", "65:1d", "1.5:1d", "8:0s"):
            with self.subTest(wrong):
                answer = self.diapause("simulate", *JOB, "--horizon", "9d", "--power-domain", wrong,
                                       status=3)[1]
                self.assertTrue("--power-domain" in answer or "time" in answer, answer)


if __name__ == "__main__":
    support.main()
