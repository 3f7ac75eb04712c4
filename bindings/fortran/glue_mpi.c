/* The procedures of the Fortran module that take or give a communicator. */
#include "diapause/diapause_mpi.h"
#include "glue.h"

_Static_assert(sizeof(MPI_Fint) == sizeof(int),
               "the module takes integer(c_int) for the INTEGER of MPI");

void diapause_fortran_open_mpi(Run* run, const CFI_cdesc_t* name, const MPI_Fint* comm,
                               const CFI_cdesc_t* config, int* status, CFI_cdesc_t* message) {
  char c_name[kMostName], c_config[kMostName];
  if (!diapause_fortran_can_open(run, status, message)) return;
  /* A name that is too long becomes an empty one, which the library refuses on all ranks alike. */
  if (!diapause_fortran_text(name, c_name)) c_name[0] = '\0';
  if (!diapause_fortran_text(config, c_config)) c_name[0] = '\0';
  const char* path = c_config[0] != '\0' ? c_config : NULL;
  diapause_fortran_answer(run, diapause_mpi_open(MPI_Comm_f2c(*comm), c_name, path, &run->instance),
                          NULL, status, message);
}

/* A type(MPI_Comm) is a structure that holds only that integer. */
void diapause_fortran_open_mpi_f08(Run* run, const CFI_cdesc_t* name, const MPI_Fint* comm,
                                   const CFI_cdesc_t* config, int* status, CFI_cdesc_t* message) {
  diapause_fortran_open_mpi(run, name, comm, config, status, message);
}

void diapause_fortran_comm(Run* run, MPI_Fint* comm, int* status, CFI_cdesc_t* message) {
  MPI_Comm of_program = MPI_COMM_NULL;
  const int found = diapause_comm(run->instance, &of_program);
  *comm = MPI_Comm_c2f(of_program);
  diapause_fortran_answer(run, found, NULL, status, message);
}

void diapause_fortran_comm_f08(Run* run, MPI_Fint* comm, int* status, CFI_cdesc_t* message) {
  diapause_fortran_comm(run, comm, status, message);
}
