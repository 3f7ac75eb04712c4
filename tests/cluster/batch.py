#!/usr/bin/env python3
"""Tests under a batch system: the job script of examples/slurm, on a private
Slurm over two machines.

batch.py --list                    names of all tests, a line each
batch.py <test> --heat PROGRAM --heat-plain PROGRAM --diapause PROGRAM --mpiexec COMMAND --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why. Only for Open MPI.
"""

import filecmp
import pathlib
import re
import sys

from cluster import Cluster, Failure, Heat, expect, main
from machines import SUBNET, Unavailable
from slurm import Slurm, missing

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples/slurm/job.sh"
NODES = ["node0", "node1"]
ITERATIONS, PACE_MS = 1500, 10


class Batch(Cluster):
    """The machines, Slurm on them, and the heat program as its job."""

    def __enter__(self):
        if missing():
            raise Unavailable(
                f"{', '.join(missing())} not installed: run tools/install-packages cluster")
        super().__enter__()
        try:
            self.work.chmod(0o700)
            self.power_on(*NODES)
            self.heat = Heat(self.site, self.network, self.work, level=4, ranks_per_node=2,
                             files="rank")
            self.heat.compute_right(ITERATIONS)
            self.slurm = Slurm(self.network, self.work / "slurm", NODES, cores=2)
            self.slurm.__enter__()
        except BaseException:
            super().__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.slurm.__exit__()
        super().__exit__()

    def script(self):
        """The example, with a smaller plate, slowed down, and its programs from the build."""
        programs = self.work / "bin"
        programs.mkdir(exist_ok=True)
        for name, path in {"diapause": self.site.diapause, "mpirun": self.site.mpiexec,
                           "heat": self.site.heat}.items():
            (programs / name).unlink(missing_ok=True)
            (programs / name).symlink_to(path)
        text, changes = re.subn(r"--size \d+ --iterations \d+ --output \S+",
                                f"--size 256 --iterations {ITERATIONS} --min-ms-per-iteration "
                                f"{PACE_MS} --output {self.heat.result} --progress "
                                f"{self.work / 'progress'}",
                                SCRIPT.read_text())
        expect(changes == 1, f"{SCRIPT} is not what this test expects")
        (self.work / "job.sh").write_text(text)
        return self.work / "job.sh"

    def submit(self, **environment):
        """Submits a job of a minute, the shortest that Slurm knows, with the default configuration
        except for `environment`."""
        open_mpi = {"oob_tcp_if_include": SUBNET, "btl_tcp_if_include": SUBNET,
                    "btl": "tcp,vader,self", "pml": "ob1", "orte_tmpdir_base": "/dev/shm/tmp",
                    "hwloc_base_binding_policy": "none", "mpi_yield_when_idle": "1",
                    "odls_base_sigkill_timeout": "15"}
        environment |= {f"OMPI_MCA_{key}": value for key, value in open_mpi.items()}
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                        "PATH": f"{self.work / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin",
                        "DIAPAUSE_GLOBAL_PATH": str(self.work / "global" / "job")}
        script = self.script()
        self.job = self.slurm.run("sbatch", "--parsable", "--time=1", "--ntasks-per-node=2",
                                  "--overcommit", "--chdir", self.work, "--output",
                                  self.work / "output", script, **environment).strip()

    def output(self):
        path = self.work / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def job_field(self, name):
        return re.search(rf"\b{name}=(\S+)", self.slurm.run("scontrol", "show", "job", self.job))[1]

    def wait_for(self, condition, what):
        try:
            self.slurm.wait_until(condition, what, limit_s=400)
        except RuntimeError as error:
            raise Failure(f"{error}\nThe job said:\n{self.output()}") from None

    def wait_for_iteration(self, number):
        progress = self.work / "progress"
        self.wait_for(lambda: progress.exists() and f"\n{number} " in progress.read_text(),
                      f"iteration {number}")

    def wait_for_state(self, state):
        self.wait_for(lambda: self.job_field("JobState") == state, f"the job to be {state}")

    def stops(self):
        """Returns (why, version, level) of every stop that diapause run has told of."""
        found = re.findall(r"stopped in time: (.*): version (\d+) at level (\d)", self.output())
        return [(why, int(version), int(level)) for why, version, level in found]

    def expect_started_again_after(self, why, most=1):
        """The job stopped, with a checkpoint of the deepest level each time, and
        the last run ended it."""
        self.wait_for_state("COMPLETED")
        stops = self.stops()
        as_it_should = all(re.fullmatch(why, reason) and level == 4 for reason, _, level in stops)
        expect(1 <= len(stops) <= most and as_it_should, f"stops: {stops}\n{self.output()}")
        expect(self.job_field("Restarts") == str(len(stops)),
               "Slurm did not start the job again each time")
        self.expect_finished_from([version for _, version, _ in stops])

    def expect_finished_from(self, versions):
        if not filecmp.cmp(self.heat.result, self.heat.right, shallow=False):
            raise Failure(f"the result differs from that of a plain run:\n{self.output()}")
        restarted = [event["version"] for event in self.heat.events("restart")]
        expect(restarted == versions,
               f"restarted from {restarted}, not from {versions}:\n{self.output()}")


def goes_on_in_the_next_allocation_when_the_time_is_over(site):
    with Batch(site) as batch:
        # This is the margin of a minute, so the job stops after some ten seconds.
        batch.submit(DIAPAUSE_DEADLINE_MARGIN_S="46")
        # A busy machine gets less far in its ten seconds, and needs more allocations.
        batch.expect_started_again_after("the allocation ends", most=6)


def goes_on_in_the_next_allocation_after_a_signal(site):
    with Batch(site) as batch:
        batch.submit()
        batch.wait_for_iteration(301)
        batch.slurm.run("scancel", "--batch", "--signal=USR1", batch.job)
        batch.expect_started_again_after("SIGUSR1 on rank [0-3]")


def stays_cancelled_and_goes_on_when_submitted_again(site):
    with Batch(site) as batch:
        batch.submit()
        batch.wait_for_iteration(301)
        batch.slurm.run("scancel", batch.job)
        batch.wait_for_state("CANCELLED")
        batch.wait_for(lambda: batch.slurm.states().count("idle") == len(NODES),
                       "the nodes to be free")
        saved = [event["version"] for event in batch.heat.events("checkpoint")]
        expect(len(saved) == 1 and saved[0] > 300, f"checkpoints: {saved}\n{batch.output()}")
        expect(batch.job_field("JobState") == "CANCELLED", "the job came back")
        batch.submit()
        batch.wait_for_state("COMPLETED")
        batch.expect_finished_from(saved)


TESTS = (goes_on_in_the_next_allocation_when_the_time_is_over,
         goes_on_in_the_next_allocation_after_a_signal,
         stays_cancelled_and_goes_on_when_submitted_again)

if __name__ == "__main__":
    sys.exit(main({test.__name__: test for test in TESTS}, __doc__))
