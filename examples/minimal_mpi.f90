! The smallest Fortran program with MPI: every rank adds up its own terms of a series for pi. Run it twice under mpirun: in
! the first run one rank aborts the job half-way, the second run continues and finishes.
program minimal_mpi
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit, real64
  use mpi
  use diapause
  implicit none

  integer(int64), parameter :: steps = 100, terms = 1000, stop_at = 57
  type(diapause_t) :: run
  type(diapause_restart_info) :: found
  real(real64), target :: sum = 0
  real(real64) :: total, n
  integer(int64) :: step, first, k
  integer :: rank, ranks, threads, status, error
  character(len=512) :: text

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, threads, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)

  call diapause_open(run, 'minimal_mpi_in_fortran', MPI_COMM_WORLD)
  call diapause_protect(run, 'sum', sum)
  call diapause_restart(run, status, found, message=text) ! the same on all ranks
  first = merge(found%version, 0_int64, status == DIAPAUSE_OK)
  if (status == DIAPAUSE_OK .and. rank == 0) then
    print '(a, i0)', 'continuing after step ', first
    flush (output_unit)
  else if (status /= DIAPAUSE_OK .and. status /= DIAPAUSE_ERR_NOT_FOUND) then ! there are checkpoints: do not begin anew
    write (error_unit, '(a)') trim(text)
    call MPI_Abort(MPI_COMM_WORLD, 2, error)
  end if

  do step = first + 1, steps
    do k = (step - 1) * terms, step * terms - 1
      n = real(k * ranks + rank, real64)
      sum = sum + 1 / ((4 * n + 1) * (4 * n + 3))
    end do
    if (mod(step, 10_int64) == 0) then
      call diapause_checkpoint(run, step, merge(DIAPAUSE_L4, DIAPAUSE_L1, mod(step, 40_int64) == 0), &
                               status=status, message=text)
      if (status /= DIAPAUSE_OK .and. rank == 0) write (error_unit, '(a)') trim(text)
    end if
    if (first == 0 .and. step == stop_at .and. rank == ranks - 1) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  end do

  call MPI_Allreduce(sum, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call diapause_finish(run)
  if (rank == 0) print '(a, f8.6)', 'pi is about ', 8 * total
  call MPI_Finalize(error)
  if (abs(8 * total - 3.141592653589793_real64) > 1e-4_real64) stop 1
end program
