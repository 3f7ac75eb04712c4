! SCR's subroutines for Fortran: each run goes on from the number that the last one has left, and prints only what is refused.
! Built twice, with the module `scrf` and with the file that programs include.
! scr_fortran EXPECTED
program scr_fortran
  use mpi
#ifdef WITH_MODULE
  use scrf
  implicit none
#else
  implicit none
  include 'scrf.h'
#endif
  character(len=SCR_MAX_FILENAME) :: name, path
  character(len=80) :: own, argument, value
  integer :: error, rank, there, number, expected, due

  call get_command_argument(1, argument)
  read (argument, *) expected
  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  call scr_config('SCR_COPY_TYPE = SINGLE', value, error)
  call scr_config('SCR_COPY_TYPE', value, error)
  call check(value == 'SINGLE', 'a parameter comes back')
  call scr_config('SCR_CHECKPOINT_INTERVAL = 1', value, error)
  call scr_init(error)
  call check(error == SCR_SUCCESS, 'SCR begins')
  number = 0
  call scr_have_restart(there, name, error)
  if (there == 1) then
    call scr_start_restart(name, error)
    write (own, '(a,"/rank_",i0)') trim(name), rank
    call scr_route_file(own, path, error)
    call check(error == SCR_SUCCESS, 'the file of the restart is there')
    open (10, file=path, status='old', action='read')
    read (10, *) number
    close (10)
    call scr_complete_restart(1, error)
  end if
  call check(number == expected, 'the number is that of the last run')
  call scr_need_checkpoint(due, error)
  call check(due == 1, 'a checkpoint is due')
  write (name, '("count.",i0)') number + 1
  call scr_start_output(name, SCR_FLAG_CHECKPOINT + SCR_FLAG_OUTPUT, error)
  write (own, '(a,"/rank_",i0)') trim(name), rank
  call scr_route_file(own, path, error)
  open (10, file=path, status='replace', action='write')
  write (10, *) number + 1
  close (10)
  call scr_complete_output(1, error)
  call check(error == SCR_SUCCESS, 'the checkpoint is complete')
  call try_the_others()
  call scr_should_exit(due, error)
  call check(due == 0, 'it need not stop')
  call scr_finalize(error)
  call check(error == SCR_SUCCESS, 'SCR ends')
  call mpi_finalize(error)

contains

  subroutine try_the_others()
    character(len=3) :: short
    call scr_get_version(value, error)
    call check(error == SCR_SUCCESS .and. value(1:1) == 'v', 'it tells its version')
    call scr_get_version(short, error)
    call check(error /= SCR_SUCCESS, 'not where there is no room for it')
    call scr_start_checkpoint(error)
    call check(error == SCR_SUCCESS, 'a checkpoint without a name begins')
    call scr_complete_checkpoint(0, error)
    call check(error /= SCR_SUCCESS, 'one that is not valid is none')
    call scr_current('there is none', error)
    call check(error == SCR_SUCCESS, 'what is not there changes nothing')
    call scr_drop('there is none', error)
    call check(error == SCR_SUCCESS, 'what is not there is dropped')
    call scr_delete('there is none', error)
    call check(error == SCR_SUCCESS, 'and deleted')
  end subroutine

  subroutine check(condition, text)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: text
    if (condition) return
    write (0, '(2a)') 'not so: ', text
    call mpi_abort(MPI_COMM_WORLD, 1, error)
  end subroutine check

end program scr_fortran
