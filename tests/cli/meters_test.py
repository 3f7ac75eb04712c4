#!/usr/bin/env python3
"""`diapause power`: on this machine, and on trees of machines that have counters."""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import support
from support import CommandTest


class Counters:
    """A machine with one package, whose counter runs at `watts` until the end of the `with`."""

    def __init__(self, root, watts=100):
        self.root = root
        self.zone = root / "sys/class/powercap/intel-rapl:0"
        self.watts = watts
        self.counted_j = 0  # since the beginning
        self.ends = threading.Event()
        self.driver = threading.Thread(target=self.drive)
        self.zone.mkdir(parents=True)
        (self.zone / "name").write_text("package-0\n")
        (self.zone / "max_energy_range_uj").write_text("262143328850\n")
        (self.zone / "energy_uj").write_text("1000000000\n")

    def drive(self):
        begin = time.monotonic()
        with (self.zone / "energy_uj").open("r+") as counter:  # never empty
            while not self.ends.wait(0.002):
                self.counted_j = self.joules(time.monotonic() - begin)
                counter.seek(0)
                counter.write(f"{1000000000 + self.counted_j * 1e6:.0f}\n")
                counter.flush()

    def joules(self, seconds):
        return seconds * self.watts

    def __enter__(self):
        self.driver.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.driver.join()


class Load(Counters):
    """Does the same with a processor that is busy now and then: 20 W, and 60 W
    more when it is busy."""

    def __init__(self, root):
        super().__init__(root)
        self.stat = root / "proc/stat"
        self.stat.parent.mkdir()
        self.stat.write_text("cpu  1 0 0 1 0 0 0 0\n")

    @staticmethod
    def busy_s(seconds):
        """Returns the busy seconds of so many seconds from the start: idle for 0.3 s, busy for 0.3
        s, idle for 0.4 s, busy for 0.2 s, and so on."""
        return sum(max(0, min(seconds - begin, length))
                   for start in range(0, 60)
                   for begin, length in ((1.2 * start + 0.3, 0.3), (1.2 * start + 1.0, 0.2)))

    def joules(self, seconds):
        busy_s = self.busy_s(seconds)
        with self.stat.open("r+") as stat:
            stat.write(f"cpu  {busy_s * 1e6:.0f} 0 0 {(seconds - busy_s) * 1e6:.0f} 0 0 0 0\n")
        return 20 * seconds + 60 * busy_s


class PowerTest(CommandTest):
    def look(self, *arguments, **settings):
        document = json.loads(self.diapause("power", "--once", "--interval", "0.2", "--json",
                                            *arguments, **settings)[0])
        self.assertEqual(document["schema"], 1)
        return document

    def test_shows_what_a_counter_counts(self):
        with Counters(self.scratch / "machine") as machine:
            document = self.look("--meters", "powercap", DIAPAUSE_ENERGY_ROOT=machine.root)
        (domain,) = document["domains"]
        self.assertEqual((domain["domain"], domain["part"], domain["kind"]),
                         ("package", "0", "measured"))
        self.assertEqual(domain["source"], "powercap intel-rapl:0")
        # How far a counter gets meanwhile that another thread drives depends on the machine, but
        # not what is taken of it.
        self.assertGreater(domain["last"]["joules"], 0)
        self.assertLessEqual(domain["last"]["joules"], domain["since_start"]["joules"])
        # The file rounds the joules.
        self.assertLessEqual(domain["since_start"]["joules"], machine.counted_j + 1e-6)
        self.assertEqual((document["total"]["name"], document["total"]["kind"]),
                         ("package", "measured"))

    def test_shows_the_parts_of_an_error_apart_and_together(self):
        with Counters(self.scratch / "machine") as machine:
            out, _ = self.diapause("power", "--once", "--interval", "0.2", "--meters", "powercap",
                                   DIAPAUSE_ENERGY_ROOT=machine.root)
        head, row = out.splitlines()[:2]
        self.assertEqual(head.split()[:7],
                         ["DOMAIN", "PART", "POWER", "SINCE", "START", "SAMPLING", "SENSOR"])
        joules = r"\d[\d.]* \+- \d[\d.]* J"
        self.assertRegex(row, rf"package +0 .* {joules} +\d[\d.]* J +\d[\d.]* J +measured")
        self.assertRegex(out, rf"(?m)^total: .*, {joules} since the start \(off by up to "
                              r"\d[\d.]* J by sampling, \d[\d.]* J by the sensor or model\)$")
        estimate, _ = self.diapause("power", "--once", "--interval", "0.2", "--meters", "model",
                                    "--profile", "generic")
        self.assertRegex(estimate, r"(?m)^total: .*by sampling, (\? |\d[\d.]* J )by the sensor")

    def test_says_why_a_counter_is_dead(self):
        machine = Counters(self.scratch / "machine")
        out, _ = self.diapause("power", "--once", "--interval", "0.1", "--meters", "powercap",
                               DIAPAUSE_ENERGY_ROOT=machine.root)
        self.assert_in_order(["nothing tells", "not usable:",
                              "powercap intel-rapl:0: stands still"], out)

    def test_models_where_nothing_is_measured_and_says_from_what(self):
        document = self.look("--meters", "model", "--profile", "generic", DIAPAUSE_ENERGY_TDP_W=200)
        self.assertEqual(document["total"]["kind"], "modelled")
        self.assertGreater(document["total"]["last"]["watts"], 100)
        sources = {one["key"]: one["source"] for one in document["model"]["parameters"]}
        self.assertIn("TDP of 200 W", sources["domain.package.idle_w"])

    def test_keeps_a_file_for_a_node_exporter(self):
        with Counters(self.scratch / "machine") as machine:
            self.look("--meters", "powercap", "--openmetrics", "energy.prom",
                      DIAPAUSE_ENERGY_ROOT=machine.root)
        text = (self.scratch / "energy.prom").read_text()
        self.assertRegex(
            text,
            r'(?m)^diapause_energy_joules_total\{source="powercap intel-rapl:0",domain="package",'
                               r'part="0",kind="measured"\} \d+\.\d+$')
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertEqual(sorted(path.name for path in self.scratch.glob("*.prom*")),
                         ["energy.prom"])

    def test_a_recorded_trace_can_be_replayed(self):
        with Counters(self.scratch / "machine") as machine:
            out, _ = self.diapause("power", "record", "run.trace", "--seconds", "0.6",
                                   DIAPAUSE_ENERGY_ROOT=machine.root,
                                   DIAPAUSE_ENERGY_METERS="powercap")
        self.assertRegex(out, r"run.trace: 0.\d s, package, measured: \d+\.?\d* \+- \d+\.?\d* J "
                              r"\(off by up to \d+\.?\d* J by sampling, \d+\.?\d* J by the sensor")
        lines = [json.loads(line) for line in (self.scratch / "run.trace").read_text().splitlines()]
        self.assertEqual(lines[0]["total"]["name"], "package")
        self.assertGreater(len(lines), 3)
        self.assertGreater(lines[-1]["j"][0], 0)
        self.assertLessEqual(lines[-1]["j"][0], machine.counted_j + 1e-6)
        document = self.look("--meters", "replay", DIAPAUSE_ENERGY_TRACE="run.trace")
        (domain,) = document["domains"]
        self.assertEqual(domain["source"], "replay of powercap intel-rapl:0")
        self.assertEqual((domain["kind"], document["total"]["kind"]), ("replayed", "replayed"))
        self.assertGreater(domain["last"]["watts"], 0)

    def test_calibrates_on_a_machine_with_counters(self):
        with Load(self.scratch / "machine") as machine:
            self.diapause("power", "calibrate", "node.toml", "--seconds", "0.2",
                          DIAPAUSE_ENERGY_ROOT=machine.root)
        document = self.look("--meters", "model", "--profile", "node.toml")
        values = {one["key"]: one["value"] for one in document["model"]["parameters"]}
        self.assertAlmostEqual(values["domain.package.idle_w"], 20, delta=8)
        self.assertAlmostEqual(values["domain.package.idle_w"] + values["domain.package.busy_w"],
                               80, delta=16)

    def test_a_profile_says_how_far_it_was_off_when_all_was_measured_again(self):
        with Load(self.scratch / "machine") as machine:
            _, err = self.diapause("power", "calibrate", "node.toml", "--validate", "--seconds",
                                   "0.2",
                                   DIAPAUSE_ENERGY_ROOT=machine.root)
        told = float(re.search(r"hold-out error ([0-9.]+) %", err)[1]) / 100
        document = self.look("--meters", "model", "--profile", "node.toml")
        (error,) = [one for one in document["model"]["parameters"] if one["key"] == "error.share"]
        self.assertAlmostEqual(error["value"], told, delta=0.001)
        self.assertIn("samples that were not fitted", error["source"])

    def test_calibrates_nothing_without_counters(self):
        (self.scratch / "bare").mkdir()
        _, err = self.diapause("power", "calibrate", status=3,
                               DIAPAUSE_ENERGY_ROOT=self.scratch / "bare")
        self.assertIn("no counter of this machine can be read", err)

    def test_names_the_meters_there_are(self):
        _, err = self.diapause("power", "--once", "--meters", "rapl", status=3)
        self.assert_in_order(["no meter 'rapl'", "powercap", "model"], err)

    def test_damaged_traces_are_told_by_line(self):
        (self.scratch / "bad.trace").write_text("{}\n")
        out, _ = self.diapause("power", "--once", "--interval", "0.1", "--meters", "replay",
                               DIAPAUSE_ENERGY_TRACE="bad.trace")
        self.assertIn("bad.trace is no trace", out)


class RealPathsTest(CommandTest):
    """The paths of the machine itself, in a mount namespace where a directory in memory
    lies over /sys/class."""

    def test_finds_counters_where_the_kernel_has_them(self):
        own = (["unshare", "--mount"] if os.getuid() == 0
               else ["unshare", "--user", "--map-root-user", "--mount"])
        if subprocess.run([*own, "mount", "-t", "tmpfs", "none", "/sys/class"],
                          capture_output=True).returncode != 0:
            self.skipTest("this machine lets nobody mount a directory in a namespace of its own")
        inside = f"mount -t tmpfs none /sys/class && exec {sys.executable} -B {__file__} --inside"
        done = subprocess.run([*own, "sh", "-c", inside], env=os.environ | support.environment(),
                              capture_output=True, text=True, timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual([domain["source"] for domain in document["domains"]],
                         ["powercap intel-rapl:0"])
        self.assertGreater(document["domains"][0]["last"]["watts"], 0)


class OwnMachineTest(CommandTest):
    """Files of the kernel have no size that tells how much can be read."""

    def test_what_a_virtual_machine_uses_has_no_bound_unless_its_tdp_is_told(self):
        flags = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("flags")]
        if not any(" hypervisor" in line for line in flags):
            self.skipTest("this is no virtual machine, or its processor does not tell")
        for settings, share in (({}, None), ({"DIAPAUSE_ENERGY_TDP_W": 100}, 0.4)):
            document = json.loads(self.diapause("power", "--once", "--interval", "0.2", "--json",
                                                "--meters", "model", **settings)[0])
            self.assertEqual({one["accuracy"] for one in document["domains"]}, {share})
            self.assertEqual(document["total"]["last"]["uncertainty_j"] is None, share is None)


def show_own_machine():
    with Counters(pathlib.Path("/")):
        subprocess.run([support.DIAPAUSE, "power", "--once", "--interval", "0.2", "--json",
                        "--meters", "powercap"],
                       check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        show_own_machine()
    else:
        support.main()
