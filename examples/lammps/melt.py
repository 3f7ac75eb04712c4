"""LAMMPS with its own restart files as content of versions: a crystal of Lennard-Jones atoms that
melts. Killed at any moment and run again, it goes on from its newest checkpoint, and ends with the
same thermodynamic output and the same bytes.

    mpirun -n 4 python3 -m mpi4py melt.py NAME CELLS STEPS RESULT

Needs Python's lammps and mpi4py (Debian: python3-lammps liblammps-dev python3-mpi4py).
The log goes to NAME.log.
"""

import ctypes
import sys

from lammps import lammps
from mpi4py import MPI

import diapause

EVERY = 50  # steps between checkpoints

CRYSTAL = """
units         lj
atom_style    atomic
atom_modify   map array
lattice       fcc 0.8442
region        box block 0 {cells} 0 {cells} 0 {cells}
create_box    1 box
create_atoms  1 box
mass          1 1.0
velocity      all create 3.0 87287 loop geom
pair_style    lj/cut 2.5
pair_coeff    1 1 1.0 1.0 2.5
"""

# A restart file does not hold these values.
EACH_START = """
neighbor      0.3 bin
neigh_modify  every 20 delay 0 check no
fix           1 all nve
thermo        10
thermo_modify format float %.15g flush yes
"""


def set_up(simulation, run, cells):
    """From the newest version with the files of each rank, or from the crystal."""
    if run.restart_begin() is None:
        simulation.commands_string(CRYSTAL.format(cells=cells))
    else:
        simulation.command(f"read_restart {run.restore_files()}/state.%")
        run.restart_end()
    simulation.commands_string(EACH_START)


def step_of(simulation):
    return simulation.extract_global("ntimestep")


def advance(simulation, run, steps):
    """Each part begins where a restart would: lists of neighbours are made anew,
    and atoms are sorted."""
    while step_of(simulation) < steps:
        here = step_of(simulation)
        simulation.command(f"run {min(EVERY - here % EVERY, steps - here)}")
        with run.files(step_of(simulation)) as directory:
            simulation.command(f"write_restart {directory}/state.%")


def main():
    name, cells, steps, result = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    with diapause.open(name, MPI.COMM_WORLD) as run:
        comm = run.comm
        simulation = lammps(cmdargs=["-log", "none", "-screen", "none"], comm=comm)
        simulation.command(f"log {name}.log append")
        set_up(simulation, run, cells)
        advance(simulation, run, steps)
        last = [simulation.gather_atoms(what, 1, 3) for what in ("x", "v")]
        if comm.rank == 0:
            with open(result, "wb") as file:
                file.write(b"".join(ctypes.string_at(values, ctypes.sizeof(values))
                                    for values in last))
        simulation.close()
        run.finish()


if __name__ == "__main__":
    main()
