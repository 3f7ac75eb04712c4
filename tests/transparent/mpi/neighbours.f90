! Ranks of a Fortran program that pass on arrays without waiting, and agree on a sum at each step.
program neighbours
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi
  implicit none
  integer, parameter :: count = 30000, steps = 60
  double precision :: mine(count), theirs(count), part, total
  integer :: rank, ranks, step, k, requests(2), failure
  character(len=1024) :: gate
  logical :: is_open
  interface
    function usleep(length) bind(c) result(status)
      import :: c_int
      integer(c_int), value :: length
      integer(c_int) :: status
    end function usleep
  end interface

  call mpi_init(failure)
  call mpi_comm_rank(mpi_comm_world, rank, failure)
  call mpi_comm_size(mpi_comm_world, ranks, failure)
  call get_environment_variable('TRANSPARENT_GATE', gate)
  mine = [(dble(rank + mod(k, 97)), k = 1, count)]
  do step = 0, steps - 1
    call mpi_irecv(theirs, count, mpi_double_precision, mod(rank + ranks - 1, ranks), step, &
                   mpi_comm_world, requests(1), failure)
    call mpi_isend(mine, count, mpi_double_precision, mod(rank + 1, ranks), step, &
                   mpi_comm_world, requests(2), failure)
    call mpi_waitall(2, requests, mpi_statuses_ignore, failure)
    mine = mod(theirs * 3 + [(dble(k), k = 1, count)], 9973d0)
    part = sum(mine)
    call mpi_allreduce(part, total, 1, mpi_double_precision, mpi_sum, mpi_comm_world, failure)
    if (rank == 0) then
      write (*, '(i0, 1x, f0.3)') step, total
      flush (6)
      failure = usleep(10000)
      is_open = step /= steps * 3 / 4
      do while (.not. is_open)
        failure = usleep(10000)
        inquire (file=trim(gate), exist=is_open)
      end do
    end if
  end do
  call mpi_finalize(failure)
end program neighbours
