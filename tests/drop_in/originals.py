"""Programs of a checkout of FTI, SCR or VELOC, built unchanged with our library in
place of theirs, and tried.

A script beside this one says which programs there are and what to do with each. They belong to
others and are not part of `make test`: the checkout is given on the command line, and without one
the script says so and ends with 77.
"""

import argparse
import dataclasses
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "behaviour"))

from harness import SKIPPED, Failure, Place, expect, expect_equal, wait_until  # noqa: E402

BUILD = "build"
RUN = "run"
KILL = "after a kill"
LOSS = "after the loss of a node"
COLUMNS = (BUILD, RUN, KILL, LOSS)
HEADERS = {"fti": "include", "scr": "src", "veloc": "include"}  # folders of a checkout
LIMIT_S = 7200  # for one run, on a busy machine
COMPILERS = {".c": "mpicc", ".cpp": "mpicxx", ".f90": "mpifort", ".F90": "mpifort", ".F": "mpifort"}


@dataclasses.dataclass
class Check:
    """One thing that is done with a program: the column it counts in, its name, and a
    function that raises Failure."""

    column: str
    name: str
    function: object


@dataclasses.dataclass
class Program:
    """A program of the checkout. `why_not` says why it is not built, where
    that is known beforehand."""

    name: str
    sources: tuple
    checks: list = dataclasses.field(default_factory=list)
    options: tuple = ()
    libraries: tuple = ()
    why_not: str = ""


class Originals:
    """A checkout, the prefix where Diapause is installed, and a directory to work in."""

    def __init__(self, library, libraries, arguments):
        self.checkout, self.prefix = (arguments.checkout.resolve(),
                                      arguments.prefix.resolve() / "drop-in" / library)
        self.part = arguments.part
        self.headers = [self.prefix / "include", self.prefix]
        self.libraries = libraries
        self.mpi = arguments.mpi
        self.mpiexec = f"mpiexec.{self.mpi}" if self.mpi else "mpiexec"
        self.work = self.programs = pathlib.Path(
            tempfile.mkdtemp(prefix=f"originals-{library}-",
                             dir=arguments.work and arguments.work.resolve()))
        if arguments.relink:
            # What FTI's build would write, without options, says nothing.
            (self.work / "fti-defs.h").write_text("")
            self.headers = [self.checkout / HEADERS[library], self.checkout, self.work,
                            self.prefix / "include"]

    def build(self, program):
        """Builds it with the path of the library changed, and of the header if that is
        to be ours."""
        if not program.sources:
            return
        sources = [self.checkout / source for source in program.sources]
        missing = [source for source in sources if not source.exists()]
        expect(not missing, f"the checkout has no {missing[0] if missing else ''}")
        compiler = COMPILERS[sources[0].suffix]
        command = [f"{compiler}.{self.mpi}" if self.mpi else compiler, "-w", *program.options,
                   *sources,
                   *(f"-I{path}" for path in self.headers), f"-L{self.prefix}/lib",
                   f"-Wl,-rpath,{self.prefix}/lib",
                   *(f"-l{name}" for name in (*program.libraries, *self.libraries)), "-lm", "-o",
                   self.work / program.name.replace("/", "-")]
        self.run_compiler(command)
        self.check_mpi(command[-1])

    def run_compiler(self, command):
        done = subprocess.run([str(part) for part in command], cwd=self.work, text=True,
                              capture_output=True, check=False)
        errors = [line for line in done.stderr.splitlines() if "rror" in line or "ld: " in line]
        expect(done.returncode == 0, errors[0] if errors else done.stderr)

    @staticmethod
    def check_mpi(program):
        """With two MPIs in it a program breaks down in its first call."""
        loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        mpis = {name for name in ("libmpi.so", "libmpich.so") if name in loaded.stdout}
        expect(len(mpis) < 2, "it is linked with two MPIs: name the one that Diapause was built "
               "with by --mpi")

    def place(self, ranks, ranks_per_node):
        return Place(self, ranks=ranks, ranks_per_node=ranks_per_node)


def output_of(run, status=0):
    """Returns what a run has printed when it has ended with the wanted status (None: any)."""
    try:
        found = run.process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        raise run.complaint(f"did not end within {LIMIT_S} s") from None
    if status is not None and found != status:
        raise run.complaint(f"ended with {found}: {run.stdout.read_text(errors='replace')[-300:]}")
    return run.stdout.read_text(errors="replace")


def kill_when(run, job, condition):
    """Kills the last rank as soon as `condition` holds, which the run may take long
    for on a busy machine."""
    def has_ended_or_condition():
        expect(run.process.poll() is None or condition(),
               f"ended with {run.process.returncode} before its first checkpoint")
        return condition()
    wait_until(has_ended_or_condition, "checkpoints of a running job", LIMIT_S)
    run.kill(job, rank=run.place.ranks - 1)
    expect(run.process.wait(LIMIT_S) != 0, "it was killed, and ended well")


def lines_with(text, word):
    return [line.strip() for line in text.splitlines() if word in line]


def expect_continued(whole, continued, word, may_be_all=False):
    """The output of a run that went on must be the end of that of an undisturbed one. Its first
    line may have the value that a variable which is not protected begins with. `may_be_all` where
    something else tells that it went on: it may then have done so before its first line."""
    wanted, found = lines_with(whole, word), lines_with(continued, word)
    expect(1 < len(found) < len(wanted) + may_be_all,
           f"{len(found)} lines with '{word}', and {len(wanted)} of an undisturbed run")
    expect_equal(found[1:], wanted[1 - len(found):], f"lines with '{word}'")


def try_program(originals, program, failures):
    """Its row of the table."""
    cells = dict.fromkeys(COLUMNS, "-")
    if program.why_not:
        cells[BUILD] = "no"
        failures.append(f"{program.name}: {program.why_not}")
        return cells
    try:
        originals.build(program)
        cells[BUILD] = "yes"
    except Failure as failure:
        cells[BUILD] = "no"
        failures.append(f"{program.name}: build: {failure}")
        return cells
    for column in COLUMNS[1:]:
        checks = [check for check in program.checks
                  if check.column == column and originals.part in check.name]
        passed = sum(does_pass(originals, program, check, failures) for check in checks)
        if checks:
            cells[column] = f"{passed} of {len(checks)}"
    return cells


def does_pass(originals, program, check, failures):
    """Returns whether a check passes. If it does not, the reason is printed on
    standard error at once."""
    try:
        check.function(originals, program.name.replace("/", "-"))
        return True
    except Failure as failure:
        text = " ".join(str(failure).split())
    except Exception:  # an error of this script; the other programs are tried all the same
        text = traceback.format_exc()
    failures.append(f"{program.name}: {check.name}: {text[:600]}")
    print(failures[-1], file=sys.stderr, flush=True)
    return False


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def main(about, library, libraries, programs):
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path, nargs="?",
                        help="where the sources of the original lie")
    parser.add_argument("--prefix", type=pathlib.Path, default=pathlib.Path("/usr/local"),
                        help="where Diapause is installed (default: /usr/local)")
    parser.add_argument("--relink", action="store_true",
                        help="compile with the header of the checkout, and only link with ours "
                             "(modules of Fortran are ours)")
    parser.add_argument("--only", default="", help="only programs with this in their names")
    parser.add_argument("--part", default="", help="only checks with this in their names")
    parser.add_argument("--mpi", default="",
                        help="the MPI that Diapause was built with, where there are several: "
                             "openmpi takes mpicc.openmpi and mpiexec.openmpi (default: plain "
                             "mpicc and mpiexec)")
    parser.add_argument("--work", type=pathlib.Path,
                        help="where to work (default: the system's temporary directory)")
    arguments = parser.parse_args()
    if arguments.checkout is None or not arguments.checkout.is_dir():
        print(f"skipped: there is no checkout at {arguments.checkout}")
        return SKIPPED
    originals = Originals(library, libraries, arguments)
    failures = []
    try:
        print_row(["program", *COLUMNS])
        print_row(["---"] * (1 + len(COLUMNS)))
        for program in programs:
            if arguments.only in program.name:
                print_row([program.name, *try_program(originals, program, failures).values()])
    finally:
        shutil.rmtree(originals.work)
    print(*("", *failures), sep="\n")
    return 1 if failures else 0
