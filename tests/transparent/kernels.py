"""Jobs that are restarted where the kernel is another, or has begun at another time."""

import os
import pathlib
import re
import shutil
import signal
import sys

import nodes
from support import Job, Scenario, Skipped, must

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "fabric"))
from machine import Machine, Unavailable  # noqa: E402


def place_of_kernel_code(job):
    """Where the kernel's own code is in the first process of a job."""
    command = nodes.children_of(nodes.children_of(job.process.pid)[0])[0]
    maps = pathlib.Path(f"/proc/{command}/maps").read_text()
    return int(re.search(r"^([0-9a-f]+)-.*\[vdso\]$", maps, re.M)[1], 16)


class UnderOtherKernel(Scenario):
    """Every restart takes the kernel for another than that of the checkpoint."""

    def __init__(self, place, command, shim, lines=8):
        super().__init__(place, command, lines)
        self.under = ["env", f"LD_PRELOAD={shim}"]

    def restarts(self, times):
        job = self.launch()
        job.wait_for_lines(self.lines)
        for _ in range(times):
            job.checkpoint()
            job.kill()
            killed, job = job, Job(self.place, "restart", "job", under=self.under)
            self.wait_for_more(job, killed)
        job.checkpoint()
        must(1 << 40 <= place_of_kernel_code(job) < 1 << 41,
             "the processes were given the kernel's code as they knew it")
        self.ends_well(job, job.output, begins_anywhere=True)


def other_kernel(place, options):
    """What processes call in the code of the kernel that they know is done by that of this one."""
    shim = place.own_copy(options.programs / "libother_kernel.so")
    for name in ("clocks", "threads"):
        scenario = UnderOtherKernel(place, [place.own_copy(options.programs / name)], shim)
        scenario.restarts(1)
        scenario.restarts(3)


def begun_before(place, seconds):
    """For a job that is to run as if the machine had begun earlier."""
    rights = ["--user", "--map-current-user", "--keep-caps"] if place.user else []
    return ["unshare", *rights, "--time", "--monotonic", seconds, "--boottime", seconds, "--fork"]


def kill(job):
    """All of a job whose agent is the child of another program."""
    agent = nodes.children_of(job.process.pid)[0]
    os.kill(nodes.children_of(agent)[0], signal.SIGKILL)
    status, errors = job.wait()
    must(status == 128 + signal.SIGKILL, f"killed, it ended with {status}: {errors}")


def other_clock(place, options):
    """The clocks that begin with the machine go on as they were where it has begun later, where it
    has begun earlier, and in between."""
    scenario = Scenario(place, [place.own_copy(options.programs / "clocks")])
    place.gate.unlink()
    job = Job(place, "launch", "--name", "job", "--", *scenario.command,
              under=begun_before(place, "100000"))
    job.wait_for_lines(scenario.lines)
    job.checkpoint()
    kill(job)
    for _ in range(2):
        killed, job = job, Job(place, "restart", "job")
        scenario.wait_for_more(job, killed)
        job.checkpoint()
        job.kill()
    killed, job = job, Job(place, "restart", "job", under=begun_before(place, "200000"))
    scenario.wait_for_more(job, killed)
    job.checkpoint()
    kill(job)
    job = Job(place, "restart", "job")
    scenario.ends_well(job, job.output, begins_anywhere=True)


READS_LIMITS = """
import os, sys, time
limit = open(sys.argv[1])
first = limit.read()
print(len(first) > 0, flush=True)
while not os.path.exists(os.environ["TRANSPARENT_GATE"]): time.sleep(0.01)
limit.seek(0)
print(limit.read() == first, flush=True)
"""


def other_group(place, options):
    """A file of a control group that is not there any more is that of the group of the restart."""
    del options
    group = next((path for path in (pathlib.Path("/sys/fs/cgroup"), pathlib.Path(
        "/sys/fs/cgroup/pids")) if (path / "cgroup.procs").exists()), None)
    if os.geteuid() != 0 or group is None:
        raise Skipped("no control groups can be made")
    own = group / f"diapause-{os.getpid()}"
    try:
        own.mkdir()
    except OSError as why:
        raise Skipped(str(why)) from why
    place.gate.unlink(missing_ok=True)
    try:
        limit = own / "cgroup.clone_children"
        job = Job(place, "launch", "--name", "job", "--", "/usr/bin/python3", "-c", READS_LIMITS,
                  limit if limit.exists() else own / "cgroup.procs")
        job.wait_for_lines(1)
        job.checkpoint()
        job.kill()
    finally:
        own.rmdir()
    place.gate.touch()
    status, output, errors = place.verb("restart", "job")
    must(status == 0 and output == "True\n" and "is not on this machine" in errors,
         f"{status}: {output}{errors}")


def fewer_rights(place, options):
    """A job of root goes on where root has fewer capabilities, and is told so."""
    if place.user != 0 or os.geteuid() != 0:
        return
    scenario = Scenario(place, [place.own_copy(options.programs / "counting")])
    job = scenario.launch()
    job.wait_for_lines(scenario.lines)
    job.checkpoint()
    job.kill()
    place.gate.touch()
    status, output, errors = place.run(["setpriv", "--bounding-set=-net_raw", place.command,
                                        "restart", "job"])
    must(status == scenario.status and output and scenario.reference.endswith(output) and
         "capabilities that this restart does not have" in errors, f"{status}: {output}{errors}")


IN_MACHINE = """
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
export TRANSPARENT_GATE="$gate"
cd /run
for name in $names; do
  "$diapause" launch --name "$name" -- "$programs/$name" >"/run/output-$name" &
  until [ "$(wc -l <"/run/output-$name")" -ge 8 ]; do sleep 0.2; done
  "$diapause" checkpoint "$name" --level 4
  pkill -KILL -x "$name"
  wait $! || true
done
cp -r /run/global /run/share/global
status=0
DIAPAUSE_GLOBAL_PATH=/run/share/from_here "$diapause" restart job || status=$?
echo "from here: $status"
"""


def make_machine(options):
    """Fetches what it needs, if that is not there from the last time."""
    try:
        return Machine(options.programs.parents[1] / "fabric/machine")
    except Unavailable as why:
        raise Skipped(str(why)) from why


def older_kernel(place, options):
    """Programs that were launched under the kernel of Debian, in a machine whose processor qemu
    plays, go on under this one. What this processor has and that one has not is refused there."""
    if os.geteuid() != 0:
        raise Skipped("only root may let such a machine write here")
    if place.user != 0:
        return
    names = ("clocks", "counting", "threads", "memory", "timers", "signals")
    # What lies below /tmp is not seen in the machine.
    scenarios = {name: Scenario(place, [str(options.programs / name)]) for name in names}
    place.gate.unlink(missing_ok=True)
    job = Job(place, "launch", "--name", "job", "--", *scenarios["counting"].command)
    job.wait_for_lines(1)
    job.checkpoint("--level", "4")
    job.kill()
    share = place.root / "share"
    share.mkdir()
    shutil.copytree(place.root / "global", share / "from_here")
    script = (f"set -eu\ndiapause={options.diapause} programs={options.programs} "
              f"gate={place.gate} names='{' '.join(names)}'\n{IN_MACHINE}")
    (share / "script").write_text(script)
    status, said = make_machine(options).run(share, limit_s=900)
    must(status == 0, f"in the machine: {status}: {said}")
    must("from here: 125" in said and "instructions that the processor here does not have" in said,
         f"restarted in the machine: {said}")
    place.gate.touch()
    place.settings["DIAPAUSE_GLOBAL_PATH"] = str(share / "global")
    for name, scenario in scenarios.items():
        status, output, errors = place.verb("restart", name)
        must(status == scenario.status and output and scenario.reference.endswith(output),
             f"{name} ended with {status}: {output}{errors}")


TESTS = {"older_kernel": older_kernel, "other_group": other_group, "other_kernel": other_kernel,
         "other_clock": other_clock, "fewer_rights": fewer_rights}
