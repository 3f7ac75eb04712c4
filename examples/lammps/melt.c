/* LAMMPS through its C interface, with its own restart files as content of versions: what melt.py
 * does. Killed at any moment and run again, it goes on from its newest checkpoint, and ends with
 * the same thermodynamic output and the same bytes.
 *
 *   mpirun -n 4 lammps_melt NAME CELLS STEPS RESULT
 *
 * Needs the library of LAMMPS (Debian: liblammps-dev). The log goes to NAME.log. */
#define LAMMPS_LIB_MPI
#include <inttypes.h>
#include <lammps/library.h>
#include <stdio.h>
#include <stdlib.h>

#include "diapause/diapause_mpi.h"

enum { kEvery = 50 };     /* steps between checkpoints */
enum { kRealValues = 1 }; /* the number by which lammps_gather_atoms knows an array of double */

static const char kCrystal[] =
    "units         lj\n"
    "atom_style    atomic\n"
    "atom_modify   map array\n"
    "lattice       fcc 0.8442\n"
    "region        box block 0 %d 0 %d 0 %d\n"
    "create_box    1 box\n"
    "create_atoms  1 box\n"
    "mass          1 1.0\n"
    "velocity      all create 3.0 87287 loop geom\n"
    "pair_style    lj/cut 2.5\n"
    "pair_coeff    1 1 1.0 1.0 2.5\n";

/* A restart file does not hold these values. */
static const char kEachStart[] =
    "neighbor      0.3 bin\n"
    "neigh_modify  every 20 delay 0 check no\n"
    "fix           1 all nve\n"
    "thermo        10\n"
    "thermo_modify format float %.15g flush yes\n";

static void check(int status) {
  if (status == DIAPAUSE_OK) return;
  fprintf(stderr, "lammps_melt: %s\n", diapause_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Has LAMMPS do what `lines` say. */
static void command(void* lammps, const char* lines) {
  char text[1000] = "";
  lammps_commands_string(lammps, lines);
  if (!lammps_has_error(lammps)) return;
  lammps_get_last_error_message(lammps, text, sizeof text);
  fprintf(stderr, "lammps_melt: %s\n", text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each rank gives the directory of its own file. */
static void command_with_path(void* lammps, const char* verb, const char* directory) {
  char text[4200];
  snprintf(text, sizeof text, "%s %s/state.%%", verb, directory);
  command(lammps, text);
}

/* Begins from the newest version with the files of each rank, or from the crystal. */
static void set_up(void* lammps, diapause_t* diapause, int cells) {
  const char* directory;
  const int status = diapause_restart_begin(diapause, DIAPAUSE_NEWEST, NULL);
  if (status == DIAPAUSE_ERR_NOT_FOUND) {
    char text[1000];
    snprintf(text, sizeof text, kCrystal, cells, cells, cells);
    command(lammps, text);
  } else {
    check(status);
    check(diapause_restore_files(diapause, &directory));
    command_with_path(lammps, "read_restart", directory);
    check(diapause_restart_end(diapause));
  }
  command(lammps, kEachStart);
}

static int64_t step_of(void* lammps) {
  return *(const int64_t*)lammps_extract_global(lammps, "ntimestep");
}

/* Each part begins where a restart would: lists of neighbours are made anew, and atoms are
 * sorted. */
static void advance(void* lammps, diapause_t* diapause, int64_t steps) {
  while (step_of(lammps) < steps) {
    char text[100];
    const char* directory;
    const int64_t here = step_of(lammps);
    const int64_t part = kEvery - here % kEvery;
    snprintf(text, sizeof text, "run %" PRId64, part < steps - here ? part : steps - here);
    command(lammps, text);
    check(diapause_files(diapause, &directory));
    command_with_path(lammps, "write_restart", directory);
    check(diapause_checkpoint_files(diapause, (uint64_t)step_of(lammps), DIAPAUSE_L1, 1, NULL));
  }
}

/* The last positions and velocities of all atoms, in the order of their numbers. */
static void write_result(void* lammps, int rank, const char* path) {
  const size_t values = 3 * (size_t)lammps_get_natoms(lammps);
  double* const data = malloc(2 * values * sizeof *data);
  char x[] = "x", v[] = "v";
  if (data == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  lammps_gather_atoms(lammps, x, kRealValues, 3, data);
  lammps_gather_atoms(lammps, v, kRealValues, 3, data + values);
  if (rank == 0) {
    FILE* const file = fopen(path, "wb");
    const int is_written = file != NULL && fwrite(data, sizeof *data, 2 * values, file) > 0;
    if (file == NULL || fclose(file) != 0 || !is_written) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  free(data);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: lammps_melt NAME CELLS STEPS RESULT\n");
    return 2;
  }
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  diapause_t* diapause = NULL;
  check(diapause_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &diapause));
  MPI_Comm comm; /* without a dedicated rank */
  check(diapause_comm(diapause, &comm));
  if (comm == MPI_COMM_NULL) {
    check(diapause_finish(diapause));
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(comm, &rank);

  char program[] = "lammps", log[] = "-log", screen[] = "-screen", none[] = "none", text[1000];
  char* words[] = {program, log, none, screen, none};
  void* const lammps = lammps_open(5, words, comm, NULL);
  snprintf(text, sizeof text, "log %s.log append", argv[1]);
  command(lammps, text);
  set_up(lammps, diapause, atoi(argv[2]));
  advance(lammps, diapause, atoll(argv[3]));
  write_result(lammps, rank, argv[4]);
  lammps_close(lammps);
  check(diapause_finish(diapause));
  MPI_Finalize();
  return 0;
}
