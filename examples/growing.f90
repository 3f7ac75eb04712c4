! A list that becomes longer and shorter, in Fortran. Each checkpoint holds the numbers that the list has at that moment. The
! restart asks how many are stored before it allocates memory. Run it twice: the first run stops half-way on purpose.
program growing
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit
  use diapause
  implicit none

  integer(int64), parameter :: steps = 180, grow_until = 100, batch = 1000, every = 20, stop_at = 130

  type :: state_t ! any type without procedures of its own is protected as it is
    integer(int64) :: step = 0
    character(len=9) :: mood = 'growing'
  end type

  type(diapause_t) :: run
  type(state_t), target :: state
  integer(int64), allocatable, target :: numbers(:)
  integer(int64) :: first, k
  integer :: status
  character(len=512) :: text

  allocate(numbers(0))
  call diapause_open(run, 'growing_in_fortran', status=status, message=text)
  if (status /= DIAPAUSE_OK) write (error_unit, '(a)') trim(text)
  call continue_from_checkpoint()
  first = state%step

  do while (state%step < steps)
    state%step = state%step + 1
    if (state%step > grow_until) state%mood = 'shrinking'
    call resize(size(numbers, kind=int64) + merge(batch, -batch, state%step <= grow_until))
    if (mod(state%step, every) == 0) then
      call diapause_protect(run, 'state', state)
      call diapause_protect(run, 'numbers', numbers)
      call diapause_checkpoint(run, state%step, DIAPAUSE_L1, status=status, message=text)
      if (status /= DIAPAUSE_OK) write (error_unit, '(a)') trim(text)
      call diapause_unprotect(run, 'numbers') ! its memory goes with the next step
    end if
    if (first == 0 .and. state%step == stop_at) then
      print '(a)', 'stopping half-way; run me again'
      stop 3
    end if
  end do
  call diapause_finish(run)

  if (size(numbers, kind=int64) /= (2 * grow_until - steps) * batch) error stop 'a wrong number of numbers'
  if (any(numbers /= [(k * k + k / batch, k = 0, size(numbers, kind=int64) - 1)])) error stop 'wrong numbers'
  if (state%mood /= 'shrinking') error stop 'the wrong mood'
  print '(i0, a)', size(numbers), ' numbers left, all as they should be'

contains

  subroutine resize(count)
    integer(int64), intent(in) :: count
    integer(int64), allocatable :: longer(:)
    integer(int64) :: i, kept
    kept = min(count, size(numbers, kind=int64))
    allocate(longer(count))
    longer(:kept) = numbers(:kept)
    do i = kept, count - 1
      longer(i + 1) = i * i + i / batch
    end do
    call move_alloc(longer, numbers)
  end subroutine

  subroutine continue_from_checkpoint()
    integer(int64) :: count
    call diapause_restart_begin(run, status, message=text)
    if (status == DIAPAUSE_ERR_NOT_FOUND) return ! there is none yet
    if (status == DIAPAUSE_OK) call diapause_stored(run, 'numbers', count, status=status, message=text)
    if (status == DIAPAUSE_OK) then
      deallocate(numbers)
      allocate(numbers(count))
      call diapause_protect(run, 'state', state)
      call diapause_protect(run, 'numbers', numbers)
      call diapause_restore(run, status, message=text)
    end if
    if (status == DIAPAUSE_OK) call diapause_restart_end(run, status, message=text)
    if (status /= DIAPAUSE_OK) then
      write (error_unit, '(a)') trim(text)
      stop 2 ! there are checkpoints: do not begin anew
    end if
    print '(a, i0, a, i0, a)', 'continuing after step ', state%step, ' with ', count, ' numbers'
    flush (output_unit)
  end subroutine
end program growing
