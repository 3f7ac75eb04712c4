#!/usr/bin/env python3
"""Tests on several machines: the heat program loses real nodes, over a real network, with a
real parallel file system.

cluster.py --list                  names of all tests, a line each
cluster.py <test> --heat PROGRAM --heat-plain PROGRAM --diapause PROGRAM --mpiexec COMMAND \
    --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why. Only for Open MPI.
"""

import argparse
import filecmp
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import glusterfs
from machines import SUBNET, Network, Unavailable

WITH_GLUSTERFS = pathlib.Path(__file__).resolve().parents[2] / "tools/with-glusterfs"
SKIPPED = 77
LIMIT_S = 100  # for each run
NODES = ["node0", "node1", "node2", "node3"]
SIZE, ITERATIONS = 256, 600
CONFIG = """\
[memory]
path = "/dev/shm/diapause"
[global]
path = "{global_path}"
files = {files}
[level{level}]
every_calls = 50
[finish]
keep = "all"
"""


class Failure(Exception):
    """Says what is not as it should be."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


class Heat:
    """The heat program on four machines."""

    def __init__(self, site, network, work, level, ranks_per_node, files):
        self.site, self.network, self.work, self.ranks_per_node = (
            site, network, work, ranks_per_node)
        self.level = level
        self.config = work / "heat.toml"
        self.config.write_text(CONFIG.format(global_path=work / "global" / "job", level=level,
                                             files=json.dumps(files)))
        self.result, self.right = work / "result", work / "right"
        self.runs = 0
        self.process = None

    def compute_right(self, iterations=ITERATIONS):
        """Without checkpoints and without machines."""
        command = [self.site.mpiexec, "-n", "2", self.site.heat_plain,
                   *self.options(self.right, iterations)]
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=self.environment(),
                              timeout=LIMIT_S)
        expect(done.returncode == 0, f"the plain run ended with {done.returncode}: {done.stderr}")

    def options(self, output, iterations=ITERATIONS):
        return ["--size", SIZE, "--iterations", iterations, "--output", output]

    def environment(self):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("DIAPAUSE_", "OMPI_"))}
        return environment | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def start(self, nodes, *options):
        hostfile = self.work / "hostfile"
        hostfile.write_text("".join(f"{node} slots={self.ranks_per_node}\n" for node in nodes))
        settings = {"plm_rsh_agent": self.network.remote_shell(), "plm_rsh_no_tree_spawn": 1,
                    "oob_tcp_if_include": SUBNET, "btl_tcp_if_include": SUBNET,
                    "btl": "tcp,vader,self", "pml": "ob1", "orte_tmpdir_base": "/dev/shm/tmp",
                    "hwloc_base_binding_policy": "none",
                    "mpi_yield_when_idle": 1, "rmaps_base_oversubscribe": 1}
        command = [self.site.mpiexec, "--hostfile", hostfile, "-n",
                   len(nodes) * self.ranks_per_node]
        for key, value in settings.items():
            command += ["--mca", key, value]
        command += [self.site.heat, *self.options(self.result), "--config", self.config, *options]
        self.runs += 1
        self.log = self.work / f"run{self.runs}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.network.login.command(*command),
                                            stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, env=self.environment())

    def complaint(self, text):
        return Failure(
            f"{text}; run {self.runs} said:\n{self.log.read_text(errors='replace').strip()}")

    def events(self, kind):
        """Returns the events of the ledger, without a line that is being written."""
        events = []
        for path in self.stored("ledger.jsonl"):
            for line in path.read_text(errors="replace").splitlines():
                try:
                    events.append(json.loads(line))
                except json.JSONDecodeError:
                    continue
        return [event for event in events if event["event"] == kind]

    def stored(self, name):
        """Files of the job in the global tier: in a directory, or in the
        bricks of a file system."""
        return [path for root in (self.work / "global", *self.work.glob("bricks/*")) for path in
                root.glob(f"job/heat-*/{name}") if path.stat().st_size > 0]

    def wait_for_version(self, version):
        end_s = time.monotonic() + LIMIT_S
        while True:
            done = [e for e in self.events("checkpoint") if e["level_reached"] == self.level
                    and not e["error"]]
            if done and done[-1]["version"] >= version:
                return done[-1]["version"]
            if self.process.poll() is not None:
                raise self.complaint(
                    f"the job ended with {self.process.returncode} before version {version}")
            expect(time.monotonic() < end_s, f"waited {LIMIT_S} s for version {version}")
            time.sleep(0.02)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def finish(self, nodes):
        """Runs to the end, which must be the right one; the restart's entry in the ledger."""
        self.start(nodes)
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.end()
            raise self.complaint(f"the job did not end within {LIMIT_S} s") from None
        if status != 0:
            raise self.complaint(f"the job ended with {status}")
        expect(filecmp.cmp(self.result, self.right, shallow=False),
               "the result differs from that of a plain run")
        restarts = self.events("restart")
        if len(restarts) != 1:
            raise self.complaint(f"the job was restarted {len(restarts)} times")
        return restarts[0]


class Cluster:
    """Four machines, and the heat program to run on them."""

    def __init__(self, site, *others):
        self.site, self.others = site, others

    def __enter__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="cluster-", dir=self.site.work))
        self.heat = None
        try:
            self.network = Network(self.work, [*NODES, *self.others]).__enter__()
        except BaseException:
            shutil.rmtree(self.work)
            raise
        return self

    def __exit__(self, *_):
        if self.heat is not None:
            self.heat.end()
        self.network.__exit__()
        shutil.rmtree(self.work, ignore_errors=True)

    def power_on(self, *names):
        for name in names:
            self.network.power_on(name)

    def start_heat(self, level, ranks_per_node, files="rank"):
        """And waits for a checkpoint of that level."""
        self.heat = Heat(self.site, self.network, self.work, level, ranks_per_node, files)
        self.heat.compute_right()
        self.heat.start(NODES, "--min-ms-per-iteration", 10)
        version = self.heat.wait_for_version(100)
        opened = self.heat.events("open")[0]
        expect((opened["nodes"], opened["ranks"]) == (4, 4 * ranks_per_node),
               f"not four nodes: {opened}")
        return self.heat, version

    def lose(self, *names):
        expect(self.heat.process.poll() is None, "the job ended before it lost anything")
        self.network.power_off(*names)
        # A batch system does this, too: the launcher may wait for ever for an answer of the lost
        # machines.
        self.heat.end()


def expect_sources(restart, wanted, version):
    expect(restart["sources"] == wanted,
           f"images came from {restart['sources']}, not from {wanted}")
    expect(restart["version"] >= version and not restart["stepped_back"],
           f"restarted from {restart}")


def expect_energy_of_all(heat, machines):
    """Each line is of all machines, and its parts add up to the whole; the command
    says the same of the job."""
    for line in heat.events("energy"):
        expect(line["machines"] == machines and "unmetered" not in line,
               f"not of {machines} machines: {line}")
        parts = [line["program"]["joules"]["total"]] + [phase["joules"]["total"] or 0
                                                        for phase in line["phases"]]
        whole = line["whole"]["joules"]["total"]
        expect(whole > 0 and abs(sum(parts) - whole) < 1e-6 * whole,
               f"{sum(parts)} J of {whole} J: {line}")
    (ledger,) = heat.stored("ledger.jsonl")
    told = json.loads(subprocess.run([heat.site.diapause, "energy", "--json", ledger],
                                     capture_output=True, check=True).stdout)
    phases = {(phase["for"], phase["phase"]) for phase in told["phases"]}
    wanted = {("checkpoint", "capture"), ("checkpoint", "parity"), ("restart", "rebuild")}
    expect(told["machines"] == machines and wanted <= phases, f"the command tells of {phases}")


def level_2_survives_the_loss_of_a_machine(site):
    with Cluster(site) as cluster:
        cluster.power_on(*NODES)
        heat, version = cluster.start_heat(level=2, ranks_per_node=2)
        cluster.lose("node2")
        cluster.power_on("node2")
        restart = heat.finish(NODES)
        expect_sources(restart, ["own node"] * 4 + ["peer node3"] * 2 + ["own node"] * 2, version)


def level_3_survives_the_loss_of_a_machine_and_its_replacement_by_another(site):
    with Cluster(site, "spare") as cluster:
        cluster.power_on(*NODES)
        heat, version = cluster.start_heat(level=3, ranks_per_node=1)
        cluster.lose("node1")
        cluster.power_on("spare")
        restart = heat.finish(["node0", "spare", "node2", "node3"])
        expect_sources(restart, ["own node", "parity", "own node", "own node"], version)
        expect_energy_of_all(heat, 4)


def level_4_survives_the_loss_of_all_machines_on_a_parallel_file_system(
        site, files="rank", images="r*.img"):
    if glusterfs.missing():
        raise Unavailable(
            f"{', '.join(glusterfs.missing())} not installed: run tools/install-packages cluster")
    with Cluster(site, "storage") as cluster:
        mount_point = cluster.work / "global"
        mount_point.mkdir()
        cluster.power_on("storage")
        server = cluster.network["storage"]
        glusterfs.serve(server, cluster.work / "bricks")

        def power_on_nodes():
            cluster.power_on(*NODES)
            for name in NODES:
                glusterfs.mount(cluster.network[name], server, mount_point)

        power_on_nodes()
        heat, version = cluster.start_heat(level=4, ranks_per_node=1, files=files)
        expect(heat.stored(f"v*/{images}"), "no images in the parallel file system")
        cluster.lose(*NODES)
        power_on_nodes()
        expect_sources(heat.finish(NODES), ["global"] * 4, version)


def level_4_in_files_that_machines_share_survives_the_loss_of_all_of_them(site):
    level_4_survives_the_loss_of_all_machines_on_a_parallel_file_system(
        site, files=2, images="a1.img")


def a_command_has_a_file_system_over_ip_that_is_gone_afterwards(site):
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=site.work) as work:
        mount = pathlib.Path(work) / "mount"
        script = (f"grep -c ' {mount} fuse.glusterfs ' /proc/mounts; echo kept > {mount}/file && "
                  f"cat {mount}/file && pwd && exit 7")
        done = subprocess.run([WITH_GLUSTERFS, mount, "--", "sh", "-c", script], cwd=site.work,
                              capture_output=True, text=True)
        if done.returncode == 3:
            raise Unavailable(done.stderr.strip())
        expect((done.returncode, done.stdout) == (7, f"1\nkept\n{site.work}\n"), f"{done}")
        expect(not list(pathlib.Path(work).iterdir()),
               f"left behind: {list(pathlib.Path(work).iterdir())}")


def all_tests():
    return {name: function for name, function in globals().items()
            if name.startswith(("level_", "a_command_")) and inspect.isfunction(function)}


def main(tests, description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", nargs="?", choices=tests, metavar="test")
    parser.add_argument("--list", action="store_true")
    for path in ("heat", "heat-plain", "diapause", "work"):
        parser.add_argument(f"--{path}", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--mpiexec")
    site = parser.parse_args()
    if site.list:
        print("\n".join(tests))
        return 0
    if os.getuid() != 0:
        print("skipped: needs root, to make machines of namespaces")
        return SKIPPED
    site.work.mkdir(parents=True, exist_ok=True)
    try:
        tests[site.test](site)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    except (Failure, RuntimeError) as failure:
        print(failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(all_tests(), __doc__))
