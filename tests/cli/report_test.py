#!/usr/bin/env python3
"""report: one page about the energy of a job, looked at in a browser."""

import os
import pathlib
import struct
import subprocess
import sys

import browser
import support
from support import CommandTest, Tiers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import samples  # noqa: E402  from there

# A word that is to be shown as it is, and would do something if it were taken for more than text.
EVIL = ("<script>throw 1</script>\"'><img src=http://127.0.0.1:9/x "
        "onerror=alert(1)>$\\frac{1$&lt;\u202e\u0000")


def heat(tiers, name, **settings):
    """Checkpoints of all levels on two emulated nodes, with modelled power."""
    mpi = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1,
           "OMPI_MCA_rmaps_base_oversubscribe": 1}
    levels = {f"DIAPAUSE_LEVEL{level}_EVERY_CALLS": calls
              for level, calls in {1: 20, 2: 40, 3: 60, 4: 80}.items()}
    subprocess.run([support.MPIEXEC, "-n", "4", support.HEAT, "--size", "256", "--iterations",
                    "130", "--name", name, "--min-ms-per-iteration", "8"], check=True,
                   cwd=tiers.root, timeout=support.LIMIT_S, env=support.environment(
                        DIAPAUSE_NODE_RANKS_PER_NODE=2, DIAPAUSE_ENERGY_METERS="model", **levels,
                        **mpi, **tiers.settings(), **settings))


class ReportTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.tiers = Tiers(self.scratch)
        self.page = self.scratch / "page.html"

    def look(self, picture=None):
        tables, seen = browser.look(self.page, self.scratch, picture)
        self.assertEqual((seen["troubles"], seen["fetched"], seen["scripts"]), ([], [], 1), seen)
        for pixels, width, height in seen["images"]:
            self.assertGreater(pixels, 0)
            self.assertGreater(width, 800)
            self.assertGreater(height, 200)
        self.assertLessEqual(seen["width"], 1200)
        return tables, seen

    def leave(self, name, lines):
        return samples.write(self.scratch / name, lines)

    def refused(self, *arguments, **settings):
        error = self.diapause("report", *arguments, "-o", self.page, tiers=self.tiers, status=3,
                              **settings)[1]
        self.assertFalse(self.page.exists())
        self.assertNotIn("Traceback", error)
        return error


class JobTest(ReportTest):
    def test_the_page_of_a_job_shows_its_numbers_and_pictures(self):
        heat(self.tiers, "heat")
        trace = {"schema": 1, "what": "diapause power trace", "host": "n", "started_unix_s": 1.0,
                 "domains": [
            {"domain": "node", "source": "meter", "kind": "measured"}],
            "total": {"name": "node", "kind": "measured", "domains": [0]}}
        self.diapause("report", "heat", "-o", self.page, "--pictures", "pictures", "--trace",
                      self.leave("trace.jsonl", [trace]), tiers=self.tiers)
        tables, seen = self.look(self.scratch / "seen.png")
        self.assertEqual(len(seen["images"]), 3)
        self.assert_same_numbers(tables, self.report("energy", "heat", tiers=self.tiers))
        self.assert_is_picture(self.scratch / "seen.png", 1200)
        self.assertEqual({path.name for path in (self.scratch / "pictures").iterdir()},
                         {"power.png", "power-1.png", "energy.png"})

    def test_what_the_command_and_the_page_say_of_shares_overhead_and_failures_is_the_same(self):
        bounded = samples.phase("keep", 11, 1, 10.0, uncertainty=samples.off(15.0))
        lines = [*samples.RUN, samples.event("checkpoint", 1107.0, 2, version=11, level_reached=1,
                                             blocked_s=0.53),
                 samples.energy(1116.0, 10.0, 990.0, [bounded], incarnation=2, last=True),
                 samples.event("close", 1116.0, 2)]
        ledger = self.leave("run.jsonl", lines)
        self.diapause("report", ledger, "-o", self.page)
        told = {line.split()[0]: line for line in self.diapause("energy", ledger)[0].splitlines()
                if line}
        tables, seen = self.look()
        for row in tables["phases"][1:]:
            self.assertTrue(told[row[0][0].split()[0]].endswith(row[9][0]),
                            (row, told[row[0][0].split()[0]]))
        self.assertIn("< 0.21 %", [row[9][0] for row in tables["phases"]])
        self.assertIn("0.53 s of 111.00 s (0.48 %); 2 starts, 1 failure, 1 restart",
                      self.diapause("history", ledger)[0])
        page = self.page.read_text()
        for text in ("<b>0.48 %</b>", "1 checkpoint: 0.53 s", "<b>1 failure</b>",
                     "in 2 starts; 1 restart"):
            self.assertIn(text, page)
        self.assertLess(page.index("<b>0.48 %</b>"), page.index("energy of the whole job"))

    def test_a_telephone_needs_no_page_that_is_wider_than_it_is(self):
        self.diapause("report", self.leave("run.jsonl", samples.RUN), "-o", self.page)
        # This is the narrowest window of the browser.
        _, seen = browser.look(self.page, self.scratch, size="500,2000")
        self.assertLessEqual(seen["width"], 500)

    def test_work_that_was_not_lost_is_not_told_as_none(self):
        lines = [samples.RUN[0], samples.RUN[1], samples.event("open", 1065.0, 2),
                 samples.event("restart", 1066.0, 2, version=12, captured_unix_s=1064.0)]
        ledger = self.leave("run.jsonl", lines)
        self.diapause("report", ledger, "-o", self.page)
        for text in (self.diapause("energy", ledger)[0], self.page.read_text()):
            self.assertIn("went back to version 12: no work that a line tells of was for nothing",
                          text)
            self.assertNotIn("0.00 s and - of the program", text)

    def assert_is_picture(self, path, width):
        data = path.read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">I", data[16:20])[0], width)
        self.assertGreater(len(data), 50000)  # an empty page has a tenth of that

    def assert_same_numbers(self, tables, energy):
        """The page adds the ledger up by itself: what it shows is what the command says."""
        whole = {row[0][0]: row[1][1] for row in tables["whole"][1:]}
        self.assertAlmostEqual(whole["runtime"], energy["runtime_s"])
        self.assertAlmostEqual(whole["average power"], energy["watts"])
        self.assertAlmostEqual(whole["energy"], energy["whole"]["joules"])
        rows = {row[0][0]: row for row in tables["phases"][1:]}
        names = {phase["phase"] for phase in energy["phases"]}
        self.assertLess({"capture", "keep", "partner", "parity", "global"}, names)
        self.assertEqual(rows.keys(), names | {"program", "whole job"})
        for name in names:
            phases = [phase for phase in energy["phases"] if phase["phase"] == name]
            self.assertAlmostEqual(rows[name][2][1], sum(phase["seconds"] for phase in phases))
            self.assertAlmostEqual(rows[name][4][1] or 0,
                                   sum(phase.get("joules") or 0 for phase in phases))
            self.assertAlmostEqual(rows[name][5][1] or 0, uncertainty_of(phases))
        self.assertAlmostEqual(rows["program"][4][1], energy["program"]["joules"])
        levels = {phase["level"] for phase in energy["phases"]}
        self.assertEqual(len(tables["levels"]) - 1, len(levels))
        self.assertEqual({row[0][1] for row in tables["versions"][1:]},
                         {phase["version"] for phase in energy["phases"]})
        self.assertEqual({row[2][0] for row in tables["sources"][1:]}, {"model generic"})


def uncertainty_of(phases):
    """Of their sum, whose bounds are added; 0 if there is no bound."""
    parts = [phase["uncertainty"] for phase in phases if "uncertainty" in phase]
    if any(part["sensor_j"] is None for part in parts):
        return 0
    return sum(sum(part.values()) for part in parts)


class HostileTest(ReportTest):
    def test_what_a_stranger_wrote_stays_text(self):
        slowed = {"actuator": EVIL, "asked": 0.8, "obtained": 0.9}
        phases = [samples.phase(EVIL, 1, 1, 5.0, slowed=slowed),
                  samples.phase("keep", 1, 1, 1e17, seconds=1e17)]
        line = samples.energy(1000.0, 10.0, -1e17, phases, total=EVIL,
                              sources=[{"domain": EVIL, "source": EVIL, "kind": EVIL}])
        line["whole"]["joules"][EVIL] = 7.0
        check = samples.event("checkpoint", 999.0, version=1, level_reached=1, error=EVIL)
        folder = self.scratch / EVIL.replace("/", "|").replace("\0", "")
        folder.mkdir()
        ledger = samples.write(folder / "ledger.jsonl",
                               [check, line, '{"event"', samples.event("restart", 1.0)])
        self.diapause("report", ledger, "-o", self.page, "--compare", ledger)
        tables, seen = self.look()
        self.assertEqual(len(seen["images"]), 3)
        self.assertLess(
            set(seen["elements"]),
            set("html head meta title style script body h1 h2 p span b div ul li figure img "
                "figcaption table thead tbody tr th td pre".split()))
        self.assertIn(EVIL[:24], tables["sources"][1][0][0])


class TroubleTest(ReportTest):
    def test_what_cannot_be_told_is_refused_by_name(self):
        self.assertIn("no job 'heat'", self.refused("heat"))
        self.assertIn("gone.jsonl", self.refused("gone.jsonl"))
        ledger = self.leave("new.jsonl", [samples.RUN[1] | {"schema": 3}])
        self.assertIn("new.jsonl:1: schema 3", self.refused(ledger))
        ledger = self.leave("empty.jsonl", samples.RUN[:1])
        self.assertIn("has no energy line", self.refused(ledger))
        ledger = self.leave("run.jsonl", samples.RUN)
        self.assertIn("is no power trace", self.refused(ledger, "--trace", ledger))

    def test_a_page_that_cannot_be_written_leaves_nothing(self):
        ledger = self.leave("run.jsonl", samples.RUN)
        before = sorted(self.scratch.iterdir())
        self.diapause("report", ledger, "-o", self.scratch / "gone" / "page.html", status=3)
        self.assertEqual(sorted(self.scratch.iterdir()), before)

    def test_without_python_or_matplotlib_it_says_what_to_install(self):
        ledger = self.leave("run.jsonl", samples.RUN)
        self.assertIn("apt install python3-matplotlib", self.refused(ledger, PATH="/nowhere"))
        (self.scratch / "matplotlib.py").write_text(
            "raise ModuleNotFoundError('no', name='matplotlib')\n")
        self.assertIn("pip install matplotlib", self.refused(ledger, PYTHONPATH=self.scratch))

    def test_a_folder_of_the_name_of_the_package_is_not_taken_for_it(self):
        (self.scratch / "diapause").mkdir()
        (self.scratch / "diapause/__init__.py").write_text("raise SystemExit('taken')\n")
        self.diapause("report", self.leave("run.jsonl", samples.RUN), "-o", self.page)
        self.assertTrue(self.page.exists())


if __name__ == "__main__":
    os.environ.setdefault("HOME", "/nonexistent")
    support.main()
