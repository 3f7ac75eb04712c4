! A solver whose versions consist of its own files alone: fortran_files_solver NAME LEVEL STEPS RESULT. It has a file of its
! state, one of 0 bytes, and a field whose size changes; every element of it counts in the result.
program files_solver
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  use, intrinsic :: iso_c_binding, only: c_bool
  use mpi_f08
  use diapause
  implicit none

  integer, parameter :: every = 5, most = 40000
  type(diapause_t) :: run
  type(diapause_restart_info) :: info
  integer(int64) :: step, steps, state, total
  integer(int64), allocatable :: field(:)
  integer :: rank, threads, level, status, unit
  character(len=256) :: name, word, output
  character(len=1000) :: folder
  character(len=512) :: text

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, threads)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call get_command_argument(1, name)
  call get_command_argument(2, word)
  read (word, *) level
  call get_command_argument(3, word)
  read (word, *) steps
  call get_command_argument(4, output)
  step = 0
  state = 1
  text = ''
  call diapause_open(run, name, MPI_COMM_WORLD, status=status, message=text)
  call expect('it opens', status == DIAPAUSE_OK)
  call diapause_restart_begin(run, status, info, message=text)
  call expect('if there are checkpoints, one can be had', &
              status == DIAPAUSE_OK .or. status == DIAPAUSE_ERR_NOT_FOUND)
  if (status == DIAPAUSE_OK) call load()
  do while (step < steps)
    step = step + 1
    call advance()
    if (mod(step, int(every, int64)) == 0) call save()
  end do
  call MPI_Reduce(state, total, 1, MPI_INTEGER8, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0) then
    open (newunit=unit, file=output, action='write', status='replace')
    write (unit, *) total
    close (unit)
  end if
  call diapause_close(run, status)
  call expect('it closes', status == DIAPAUSE_OK)
  call MPI_Finalize()

contains

  subroutine expect(what, holds)
    character(len=*), intent(in) :: what
    logical, intent(in) :: holds
    if (holds) return
    write (error_unit, '(a,i0,4a)') 'files_solver: rank ', rank, ': not so: ', what, ': ', trim(text)
    call MPI_Abort(MPI_COMM_WORLD, 9)
  end subroutine

  integer function cells()
    cells = int(mod(step * 1237 + rank * 5113_int64, int(most, int64)))
  end function

  ! The numbers stay small enough for sums that do not overflow.
  subroutine advance()
    integer(int64) :: sum_of_all
    integer :: i
    state = mod(state * 48271 + step + rank, 2147483647_int64)
    call MPI_Allreduce(state, sum_of_all, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
    state = mod(state + sum_of_all, 2147483647_int64)
    field = [(ieor(state, int(i, int64)), i = 1, cells())]
  end subroutine

  subroutine save()
    integer :: saved
    call diapause_files(run, folder, status, text)
    call expect('there is a directory', status == DIAPAUSE_OK)
    open (newunit=unit, file=trim(folder)//'/state', action='write', status='new', iostat=saved)
    if (saved == 0) write (unit, *, iostat=saved) step, state
    close (unit)
    open (newunit=unit, file=trim(folder)//'/empty', action='write', status='new')
    close (unit)
    open (newunit=unit, file=trim(folder)//'/field', access='stream', form='unformatted', action='write', status='new')
    if (saved == 0) write (unit, iostat=saved) field
    close (unit)
    call diapause_checkpoint_files(run, step, level, logical(saved == 0, c_bool), status=status, message=text)
    call expect('a checkpoint is taken', status == DIAPAUSE_OK)
  end subroutine

  subroutine load()
    integer(int64) :: bytes
    integer :: i
    call diapause_restore_files(run, folder, status, text)
    call expect('the files are there', status == DIAPAUSE_OK)
    open (newunit=unit, file=trim(folder)//'/state', action='read', status='old')
    read (unit, *) step, state
    close (unit)
    call expect('the files are those of the version', step == info%version)
    inquire (file=trim(folder)//'/empty', size=bytes)
    call expect('the empty file is there and empty', bytes == 0)
    inquire (file=trim(folder)//'/field', size=bytes)
    call expect('the field has its size', bytes == 8_int64 * cells())
    allocate (field(cells()))
    open (newunit=unit, file=trim(folder)//'/field', access='stream', form='unformatted', action='read', status='old')
    read (unit) field
    close (unit)
    call expect('the field is right', all(field == [(ieor(state, int(i, int64)), i = 1, cells())]))
    call diapause_restart_end(run, status, text)
    call expect('the restart ends', status == DIAPAUSE_OK)
  end subroutine
end program files_solver
