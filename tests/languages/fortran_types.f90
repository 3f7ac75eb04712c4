! Protects variables of every kind and rank, takes a checkpoint, destroys them, restores them and looks; then calls what
! must be refused, and a call whose failure nobody asks for. Says what is wrong, and ends with 1 then.
module types
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env
  implicit none

  type :: particle_t
    real(real64) :: x(3) = 0
    integer :: cell = 0
    logical :: is_bound = .false.
  end type

  type :: everything_t
    integer(int8) :: i8 = 0
    integer(int16) :: i16 = 0
    integer(int32) :: i32 = 0
    integer(int64) :: i64 = 0
    integer(selected_int_kind(38)) :: i128 = 0
    real(real32) :: r32 = 0
    real(real64) :: r64 = 0
    real(selected_real_kind(18)) :: r80 = 0
    real(real128) :: r128 = 0
    complex(real32) :: c32 = 0
    complex(real64) :: c64 = 0
    complex(real128) :: c128 = 0
    logical :: yes = .false.
    logical(c_bool) :: yes_1 = .false.
    logical(int64) :: yes_8 = .false.
    character(len=11) :: word = ' '
    character(len=3) :: words(2) = ' '
    real(real64) :: rank7(1, 2, 3, 1, 2, 1, 2) = 0
    integer :: from_zero(0:4, -1:1) = 0
  end type
end module

program fortran_types
  use types
  use diapause
  implicit none

  type(diapause_t) :: run
  type(everything_t), target :: e
  type(particle_t), allocatable, target :: particles(:)
  real(real32), pointer :: field(:,:) => null()
  integer, allocatable, target :: none(:), unallocated(:)
  character(len=:), allocatable, target :: sentence
  character(len=200) :: text
  integer :: wrong = 0, status

  interface
    subroutine sizes_of_c(sizes) bind(c)
      import :: c_int64_t
      integer(c_int64_t), intent(out) :: sizes(5)
    end subroutine
  end interface

  call look_at_structures()
  call look_at_statuses()
  call expect('open', ok_of_open())
  call fill()
  call protect_all()
  call diapause_checkpoint(run, 7_int64, DIAPAUSE_L1, status=status, message=text)
  call expect('checkpoint: '//trim(text), status == DIAPAUSE_OK)
  call destroy()
  call diapause_restart(run, status, message=text)
  call expect('restart: '//trim(text), status == DIAPAUSE_OK)
  call look()
  call be_refused()
  call look_at_failures_unheard()
  call look_at_files()
  call diapause_close(run, status)
  call expect('close', status == DIAPAUSE_OK)
  if (wrong > 0) stop 1

contains

  subroutine expect(what, is_right)
    character(len=*), intent(in) :: what
    logical, intent(in) :: is_right
    if (is_right) return
    write (error_unit, '(2a)') 'wrong: ', what
    wrong = wrong + 1
  end subroutine

  subroutine look_at_structures()
    type(diapause_checkpoint_info) :: checkpoint
    type(diapause_progress) :: progress
    type(diapause_restart_info) :: restart
    type(diapause_stop_info) :: stop_
    integer(c_int64_t) :: sizes(5)
    call sizes_of_c(sizes)
    call expect('size of diapause_checkpoint_info', c_sizeof(checkpoint) == sizes(1))
    call expect('size of diapause_progress', c_sizeof(progress) == sizes(2))
    call expect('size of diapause_restart_info', c_sizeof(restart) == sizes(3))
    call expect('size of diapause_stop_info', c_sizeof(stop_) == sizes(4))
  end subroutine

  ! The module has all of them, and no other.
  subroutine look_at_statuses()
    integer, parameter :: known(0:15) = [DIAPAUSE_OK, DIAPAUSE_ERR_ARGUMENT, DIAPAUSE_ERR_CONFIG, DIAPAUSE_ERR_IO, &
        DIAPAUSE_ERR_FULL, DIAPAUSE_ERR_BUSY, DIAPAUSE_ERR_CORRUPT, DIAPAUSE_ERR_NOT_FOUND, DIAPAUSE_ERR_MISMATCH, &
        DIAPAUSE_ERR_COMM, DIAPAUSE_ERR_OFF, DIAPAUSE_ERR_INTERNAL, DIAPAUSE_ERR_DENIED, DIAPAUSE_ERR_MEMORY, &
        DIAPAUSE_ERR_TIMEOUT, DIAPAUSE_ERR_AGAIN]
    character(len=40) :: name
    integer :: i
    do i = 0, 15
      call diapause_status_name(-i, name)
      call expect('a status: '//trim(name), known(i) == -i .and. index(name, 'DIAPAUSE_') == 1)
    end do
    call diapause_status_name(-16, name)
    call expect('no status: '//trim(name), index(name, 'DIAPAUSE_ERR_') == 0)
  end subroutine

  logical function ok_of_open()
    call diapause_open(run, 'types   ', status=status, message=text)
    if (status /= DIAPAUSE_OK) write (error_unit, '(a)') trim(text)
    ok_of_open = status == DIAPAUSE_OK
  end function

  subroutine fill()
    integer :: i
    e%i8 = -8
    e%i16 = -16
    e%i32 = -32
    e%i64 = -64
    e%i128 = -128
    e%r32 = 0.32
    e%r64 = 0.64_real64
    e%r80 = 0.80_real64
    e%r128 = sqrt(2.0_real128)
    e%c32 = (1.0, -32.0)
    e%c64 = (1.0, -64.0)
    e%c128 = sqrt((-2.0_real128, 0.0_real128))
    e%yes = .true.
    e%yes_1 = .true.
    e%yes_8 = .true.
    e%word = 'hello there'
    e%words = ['one', 'two']
    e%rank7 = reshape([(real(i, real64), i = 1, 24)], shape(e%rank7))
    e%from_zero = reshape([(i, i = 1, 15)], [5, 3])
    allocate(particles(5), field(4, 6), none(0))
    particles%cell = [(i, i = 1, 5)]
    particles(5)%x(3) = 5.3
    field = reshape([(real(i), i = 1, 24)], [4, 6])
    sentence = 'of some length'
  end subroutine

  subroutine protect_all()
    integer(int64) :: global_shape(7) = [4, 2, 3, 1, 2, 1, 2], first(7) = [3, 1, 1, 1, 1, 1, 1]
    call diapause_protect(run, 'i8', e%i8)
    call diapause_protect(run, 'i16', e%i16)
    call diapause_protect(run, 'i32', e%i32)
    call diapause_protect(run, 'i64', e%i64)
    call diapause_protect(run, 'i128', e%i128)
    call diapause_protect(run, 'r32', e%r32)
    call diapause_protect(run, 'r64', e%r64)
    call diapause_protect(run, 'r80', e%r80)
    call diapause_protect(run, 'r128', e%r128)
    call diapause_protect(run, 'c32', e%c32)
    call diapause_protect(run, 'c64', e%c64)
    call diapause_protect(run, 'c128', e%c128)
    call diapause_protect(run, 'yes', e%yes)
    call diapause_protect(run, 'yes_1', e%yes_1)
    call diapause_protect(run, 'yes_8', e%yes_8)
    call diapause_protect(run, 'word', e%word)
    call diapause_protect(run, 'words', e%words)
    call diapause_protect_block(run, 'rank7', e%rank7, global_shape, first)
    call diapause_protect(run, 'from_zero', e%from_zero)
    call diapause_protect(run, 'particles', particles)
    call diapause_protect(run, 'columns', field(:, 2:4), status, text)
    call expect('whole columns: '//trim(text), status == DIAPAUSE_OK)
    call diapause_protect(run, 'none', none)
    call diapause_protect(run, 'sentence', sentence, status, text)
    call expect('protect: '//trim(text), status == DIAPAUSE_OK)
  end subroutine

  subroutine destroy()
    type(everything_t) :: nothing
    e = nothing
    particles = particle_t()
    field = -1
    sentence = '..............'
  end subroutine

  subroutine look()
    integer :: i
    call expect('integers', e%i8 == -8 .and. e%i16 == -16 .and. e%i32 == -32 .and. e%i64 == -64 .and. e%i128 == -128)
    call expect('reals', abs(e%r32 - 0.32) <= 0 .and. abs(e%r64 - 0.64_real64) <= 0)
    call expect('long reals', abs(e%r80 - 0.80_real64) <= 0 .and. abs(e%r128 - sqrt(2.0_real128)) <= 0)
    call expect('complex', abs(e%c32 - (1.0, -32.0)) <= 0 .and. abs(e%c64 - (1.0, -64.0)) <= 0 &
                .and. abs(e%c128 - sqrt((-2.0_real128, 0.0_real128))) <= 0)
    call expect('logicals', e%yes .and. e%yes_1 .and. logical(e%yes_8))
    call expect('characters', e%word == 'hello there' .and. all(e%words == ['one', 'two']))
    call expect('seven dimensions', all(nint(e%rank7) == reshape([(i, i = 1, 24)], shape(e%rank7))))
    call expect('lower bounds', all(e%from_zero == reshape([(i, i = 1, 15)], [5, 3])))
    call expect('structures', all(particles%cell == [(i, i = 1, 5)]) .and. abs(particles(5)%x(3) - 5.3) <= 0)
    call expect('columns', all(nint(field(:, 2:4)) == reshape([(i, i = 5, 16)], [4, 3])))
    call expect('other columns', all(nint(field(:, 1)) == -1) .and. all(nint(field(:, 5:)) == -1))
    call expect('text', sentence == 'of some length')
  end subroutine

  subroutine refused(what, word)
    character(len=*), intent(in) :: what, word
    call expect(what//' should be refused', status == DIAPAUSE_ERR_ARGUMENT)
    call expect(what//': '//trim(text), index(text, word) > 0)
    text = ' '
  end subroutine

  subroutine be_refused()
    class(*), allocatable :: anything
    integer, pointer :: nowhere(:) => null()
    character(len=3), target :: letters(2) = 'abc'
    call diapause_protect(run, 'x', field(2, :), status, text)
    call refused('a row', 'contiguous')
    call diapause_protect(run, 'x', field(1:3, :), status, text)
    call refused('some rows', 'contiguous')
    call diapause_protect(run, 'x', particles(::2), status, text)
    call refused('every second', 'contiguous')
    call diapause_protect(run, 'x', particles(5:1:-1), status, text)
    call refused('backwards', 'contiguous')
    call diapause_protect(run, 'x', particles%cell, status, text)
    call refused('a component', 'contiguous')
    call diapause_protect(run, 'x', letters(:)(2:2), status, text)
    call refused('a part of words', 'contiguous')
    call diapause_protect(run, 'x', unallocated, status, text)
    call refused('nothing', 'not allocated')
    call diapause_protect(run, 'x', nowhere, status, text)
    call refused('a pointer to nothing', 'not allocated')
    call without_an_end(e%from_zero)
    allocate(anything, source=5)
    call diapause_protect(run, 'x', anything, status, text)
    call refused('anything', 'diapause_protect_address')
    call diapause_protect_block(run, 'x', field, [4_int64], [1_int64], status, text)
    call refused('a block of another shape', 'each dimension')
    call diapause_protect_block(run, 'x', field, [4_int64, 6_int64], [0_int64, 1_int64], status, text)
    call refused('a block from 0 on', "region 'x': first is counted from 1")
    call diapause_protect_block(run, 'x', field, [4_int64, -6_int64], [1_int64, 1_int64], status, text)
    call refused('a negative length', "region 'x': global_shape has a negative number")
    call diapause_protect_block(run, 'x', field, [4_int64, 6_int64], [1_int64, 2_int64], status, text)
    call refused('a block outside', "region 'x': dimension 0")
    call diapause_protect_address(run, 'x', c_loc(field), -1_int64, 4_int64, status, text)
    call refused('a negative count', "region 'x': count is negative")
    call diapause_protect_address(run, 'x', c_loc(field), 1_int64, 0_int64, status, text)
    call refused('elements without a size', "region 'x': element_bytes")
    call diapause_checkpoint(run, -5_int64, DIAPAUSE_L1, status=status, message=text)
    call refused('a negative version', 'version -5 is negative')
    call diapause_open(run, 'other', status=status, message=text)
    call refused('opening it again', 'open already')
    call diapause_restore(run, status, [character(len=9) :: 'particles', 'i8'], text)
    call expect('nothing is open', status == DIAPAUSE_ERR_ARGUMENT)
  end subroutine

  subroutine without_an_end(values)
    integer, intent(inout), target :: values(*)
    call diapause_protect(run, 'x', values, status, text)
    call refused('an array without an end', 'has no end')
    call diapause_protect(run, 'y', values(1:15), status, text)
    call expect('with an end: '//trim(text), status == DIAPAUSE_OK)
    call diapause_unprotect(run, 'y')
  end subroutine

  ! The first that failed unheard is told by the next call that can tell, once.
  subroutine look_at_failures_unheard()
    call diapause_protect(run, 'unheard', field(2, :))
    call diapause_unprotect(run, 'i8')
    call diapause_protect(run, 'i8', e%i8, status, text)
    call refused('an earlier call', "region 'unheard'")
    call diapause_protect(run, 'i8', e%i8, status, text)
    call expect('after it: '//trim(text), status == DIAPAUSE_OK)
  end subroutine

  subroutine look_at_files()
    type(diapause_t) :: job
    character(len=1000) :: folder
    character(len=3) :: short
    integer :: unit, number
    call diapause_open(job, 'files', status=status, message=text)
    call expect('open of another job: '//trim(text), status == DIAPAUSE_OK)
    call diapause_files(job, short, status, text)
    call refused('a short variable', 'too short')
    call diapause_files(job, folder, status, text)
    call expect('files: '//trim(text), status == DIAPAUSE_OK)
    open (newunit=unit, file=trim(folder)//'/state', action='write')
    write (unit, *) 4711
    close (unit)
    call diapause_checkpoint_files(job, 1_int64, DIAPAUSE_L1, .false._c_bool, status=status, message=text)
    call refused('an incomplete file', 'not complete')
    call diapause_checkpoint_files(job, 1_int64, DIAPAUSE_L1, .true._c_bool, status=status, message=text)
    call expect('checkpoint of files: '//trim(text), status == DIAPAUSE_OK)
    call diapause_restart_begin(job, status, message=text)
    call expect('restart from files: '//trim(text), status == DIAPAUSE_OK)
    call diapause_restore_files(job, folder, status, text)
    call expect('restored files: '//trim(text), status == DIAPAUSE_OK)
    open (newunit=unit, file=trim(folder)//'/state', action='read', status='old')
    read (unit, *) number
    close (unit)
    call expect('what was in the file', number == 4711)
    call diapause_restart_end(job, status)
    call diapause_close(job, status)
    call expect('close of files', status == DIAPAUSE_OK)
    call diapause_open(job, 'files', status=status, message=text)
    call diapause_restart_begin(job, status, message=text)
    call expect('what was closed is there: '//trim(text), status == DIAPAUSE_OK)
    call diapause_restart_end(job, status)
    call diapause_finish(job, status, text)
    call expect('finish of files: '//trim(text), status == DIAPAUSE_OK)
    call diapause_open(job, 'files', status=status, message=text)
    call diapause_restart_begin(job, status)
    call expect('what was finished is gone', status == DIAPAUSE_ERR_NOT_FOUND)
    call diapause_close(job, status)
  end subroutine
end program
