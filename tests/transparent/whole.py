"""Programs that wait for nothing: they are disturbed when a file says that they are under way, and
their result is in a file, too."""

import hashlib
import shutil

import nodes
from support import Failed, Job, Skipped, be_patient, must, one_on_each_node, until


class OnOneNode:
    """Says how a job of one node is started, killed, and started again."""

    def __init__(self, place):
        self.place = place

    def launch(self, make_job, command):
        return make_job(self.place, "launch", "--name", "job", "--", *command)

    def restart(self, make_job):
        return make_job(self.place, "restart", "job")

    def kill(self, job):
        del self
        job.kill()


class WholeRun:
    """A command that is disturbed when marks are in a file, and its result."""

    def __init__(self, place, command, log, result):
        self.place = place
        self.log = place.work / log
        self.result = result
        be_patient()
        status, output, errors = place.run(command)
        must(status == 0, f"undisturbed, it ended with {status}: {output}{errors}")
        self.reference = result()

    def wait_for(self, mark, job):
        def has_it():
            if job.process.poll() is not None:
                raise Failed(f"ended with {job.process.poll()} before {mark!r}: "
                             f"{job.output()}{job.process.stderr.read()}")
            return self.log.exists() and mark in self.log.read_text(errors="replace")

        until(has_it, f"there is no {mark!r} in {self.log}")

    def survives(self, command, marks, on=None):
        """It is killed after a checkpoint at each of the marks, and restarted."""
        on = on or OnOneNode(self.place)
        self.log.unlink(missing_ok=True)
        for tier in ("memory", "global"):  # with versions of a job of this name on other nodes
            shutil.rmtree(self.place.root / tier, ignore_errors=True)
        job = on.launch(Job, command)
        for mark in marks:
            self.wait_for(mark, job)
            job.checkpoint("--level", "4")
            on.kill(job)
            job = on.restart(Job)
        status, errors = job.wait()
        must(status == 0, f"ended with {status}: {job.output()}{errors}")
        result = self.result()
        must(result == self.reference, f"{result} instead of {self.reference}")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


ITERATIONS = 300


def heat(place, options):
    """Four ranks of a program that has checkpoints of its own, built without them, on one node and
    on four."""
    program = place.own_copy(options.heat)
    words = [program, "--size", "256", "--iterations", ITERATIONS, "--min-ms-per-iteration", "10",
             "--progress", "progress", "--output", "field"]
    alone = [options.mpirun, "-n", "4", *words]
    whole = WholeRun(place, alone, "progress", lambda: digest(place.work / "field"))
    marks = [f"\n{number} {ITERATIONS} " for number in (60, 150)]
    whole.survives(alone, marks)
    whole.survives([options.mpirun, "-n", "4", *one_on_each_node(options.mpirun), *words], marks,
                   nodes.OnNodes(place, 4))


MELT = """\
lattice       fcc 0.8442
region        box block 0 5 0 5 0 5
create_box    1 box
create_atoms  1 box
mass          1 1.0
velocity      all create 3.0 87287 loop geom
pair_style    lj/cut 2.5
pair_coeff    1 1 1.0 1.0 2.5
fix           1 all nve
thermo        10
thermo_modify flush yes
variable      part loop 20
label         again
run           20
shell         sleep 0.25
next          part
jump          in.melt again
write_data    last.data
"""


def melt(place, options):
    """LAMMPS melts a crystal, on four ranks."""
    if shutil.which("lmp") is None:
        raise Skipped("the machine has no lmp")
    (place.work / "in.melt").write_text(MELT)
    command = [options.mpirun, "-n", "4", shutil.which("lmp"), "-in", "in.melt", "-screen", "none"]
    whole = WholeRun(place, command, "log.lammps", lambda: digest(place.work / "last.data"))
    whole.survives(command, [f"\n{step:>8} " for step in (100, 240)])


# The problem of HPL, and the matrices of PTRANS; all else is derived from them.
CHALLENGE = """HPL
comment
HPL.out
8
1
{size}
1
80
0
1
2
2
16.0
1
2
1
4
1
2
1
1
1
0
1
0
2
64
0
0
1
8
separator
0
1200
0
40
"""


def challenge(place, options):
    """HPC Challenge on four ranks: tests of the network, of memory, and of matrices."""
    if shutil.which("hpcc") is None:
        raise Skipped("the machine has no hpcc")
    (place.work / "hpccinf.txt").write_text(CHALLENGE.format(size=1000))
    output = place.work / "hpccoutf.txt"

    def result():
        """What does not depend on times: the residues, and that no test has failed."""
        return [line for line in output.read_text().splitlines()
                if line.startswith(("Success=", "||Ax-b||")) or "FAILED" in line]

    command = [options.mpirun, "-n", "4", shutil.which("hpcc")]
    whole = WholeRun(place, command, "hpccoutf.txt", result)
    must("Success=1" in whole.reference, f"undisturbed: {whole.reference}")
    whole.survives(command, ["Begin of PTRANS section.", "Begin of MPIFFT section."])


WATER = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
STEPS = 4000
MOLECULES = f"""integrator = md
dt = 0.002
nsteps = {STEPS}
nstlog = 100
nstenergy = 100
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-temp = 300
gen-seed = 7
ld-seed = 7
"""


def molecules(place, options):
    """GROMACS moves water, on two ranks of it."""
    program = shutil.which("gmx_mpi") or shutil.which("gmx")
    if program is None:
        raise Skipped("the machine has no gmx")
    (place.work / "topol.top").write_text(WATER)
    (place.work / "grompp.mdp").write_text(MOLECULES)
    for words in (["solvate", "-cs", "spc216", "-box", "2", "2", "2", "-p", "topol.top"],
                  ["grompp", "-c", "out.gro", "-maxwarn", "5"]):
        status, output, errors = place.run([program, "-quiet", *words])
        must(status == 0, f"{words}: {output}{errors}")

    def result():
        lines = (place.work / "md.log").read_text().splitlines()
        return [lines[i:i + 6] for i, line in enumerate(lines) if line.startswith("   Energies")]

    command = [program, "-quiet", "mdrun", "-reprod", "-nb", "cpu", "-pin", "off", "-ntomp", "1",
               "-g", "md.log"]
    command = ([options.mpirun, "-n", "2", *command] if program.endswith("_mpi")
               else [*command, "-ntmpi", "2"])
    whole = WholeRun(place, command, "md.log", result)
    must(len(whole.reference) > STEPS // 100, f"undisturbed: {whole.reference}")
    whole.survives(command, [f"{STEPS // 10 * k}  " for k in (2, 5)])


TESTS = {"heat": heat, "melt": melt, "challenge": challenge, "molecules": molecules}
