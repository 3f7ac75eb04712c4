! Heat distribution in a square plate, in Fortran: Jacobi iteration on an n x n grid, cut into bands of columns, one for
! each MPI rank. Killed at any moment and run again, it goes on from its newest checkpoint and ends with the same bytes.
!
!   mpirun -n 4 fortran_heat NAME N ITERATIONS RESULT
!
! NAME is that of the checkpoints, RESULT the file for the grid in the end.
program heat
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use mpi_f08
  use diapause
  implicit none

  type(diapause_t) :: run
  real(real64), pointer :: now(:,:), next(:,:), swap(:,:)
  integer(int64) :: iteration, iterations
  integer :: rank, ranks, threads, n, first, columns
  character(len=256) :: name, output

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, threads)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_arguments()
  first = n * rank / ranks + 1
  columns = n * (rank + 1) / ranks - first + 1
  allocate(now(n, 0:columns + 1), next(n, 0:columns + 1))
  call set_initial_heat()
  call open_checkpoints()

  iteration = continue_from_checkpoint()
  do while (iteration < iterations)
    call exchange_borders()
    call relax()
    swap => now
    now => next
    next => swap
    iteration = iteration + 1
    call checkpoint_if_due()
    if (diapause_should_stop(run)) exit
  end do

  if (iteration == iterations) call write_result()
  call diapause_close(run)
  call MPI_Finalize()

contains

  ! ---- checkpoints: all that Diapause needs ----------------------------------------------------

  subroutine open_checkpoints()
    integer :: status
    character(len=512) :: text
    call diapause_open(run, name, MPI_COMM_WORLD, status=status, message=text)
    if (status /= DIAPAUSE_OK) call complain('running without checkpoints', text)
  end subroutine

  ! The neighbours' columns are fetched anew in every iteration, so only the band itself is kept. The two fields swap
  ! places in every iteration, so the region is protected again in every one.
  subroutine protect_field()
    call diapause_protect_block(run, 'field', now(:, 1:columns), [int(n, int64), int(n, int64)], &
                                [1_int64, int(first, int64)])
  end subroutine

  ! Puts back the newest checkpoint and returns its iteration, or returns 0: there is none yet.
  integer(int64) function continue_from_checkpoint() result(found)
    type(diapause_restart_info) :: info
    integer :: status
    character(len=512) :: text
    found = 0
    if (.not. diapause_is_open(run)) return
    call protect_field()
    call diapause_restart(run, status, info, message=text)
    if (status == DIAPAUSE_OK) found = info%version
    if (status == DIAPAUSE_OK .or. status == DIAPAUSE_ERR_NOT_FOUND) return
    call complain('there are checkpoints, but none can be had', text)
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end function

  subroutine checkpoint_if_due()
    integer :: status
    character(len=512) :: text
    if (.not. diapause_is_open(run)) return
    call protect_field()
    call diapause_snapshot(run, iteration, status=status, message=text)
    if (status /= DIAPAUSE_OK) call complain('checkpoint', text)
  end subroutine


  subroutine complain(what, text)
    character(len=*), intent(in) :: what, text
    if (rank == 0) write (error_unit, '(4a)') 'heat: ', what, ': ', trim(text)
  end subroutine

  ! ---- computation -----------------------------------------------------------------------------

  subroutine get_arguments()
    character(len=32) :: number
    if (command_argument_count() /= 4) error stop 'usage: fortran_heat NAME N ITERATIONS RESULT'
    call get_command_argument(1, name)
    call get_command_argument(2, number)
    read (number, *) n
    call get_command_argument(3, number)
    read (number, *) iterations
    call get_command_argument(4, output)
  end subroutine

  ! The first row is hot, and so is every seventh column in the plate; the borders stay as they are.
  subroutine set_initial_heat()
    integer :: j
    now = 0
    do j = 1, columns
      if (mod(first + j, 7) == 0) now(2:n - 1, j) = 100
      now(1, j) = 100
    end do
    next = now
  end subroutine

  subroutine exchange_borders()
    integer :: left, right
    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    call MPI_Sendrecv(now(:, 1), n, MPI_DOUBLE_PRECISION, left, 0, &
                      now(:, columns + 1), n, MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(now(:, columns), n, MPI_DOUBLE_PRECISION, right, 1, &
                      now(:, 0), n, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine relax()
    integer :: i, j
    do j = 1, columns
      if (first + j - 1 == 1 .or. first + j - 1 == n) then
        next(:, j) = now(:, j)
        cycle
      end if
      next(1, j) = now(1, j)
      do i = 2, n - 1
        next(i, j) = 0.25_real64 * ((now(i, j - 1) + now(i, j + 1)) + (now(i - 1, j) + now(i + 1, j)))
      end do
      next(n, j) = now(n, j)
    end do
  end subroutine

  subroutine write_result()
    real(real64), allocatable :: whole(:,:)
    integer :: counts(0:ranks - 1), starts(0:ranks - 1)
    integer :: r, unit
    counts = [(n * (n * (r + 1) / ranks - n * r / ranks), r = 0, ranks - 1)]
    starts = [(n * (n * r / ranks), r = 0, ranks - 1)]
    allocate(whole(n, merge(n, 1, rank == 0)))
    call MPI_Gatherv(now(:, 1:columns), n * columns, MPI_DOUBLE_PRECISION, &
                     whole, counts, starts, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
    if (rank /= 0) return
    open (newunit=unit, file=output, access='stream', form='unformatted', status='replace', action='write')
    write (unit) whole
    close (unit)
  end subroutine
end program heat
