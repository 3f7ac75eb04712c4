! Diapause for Fortran: checkpoints of variables and arrays of every type and rank. docs/fortran.md shows how to use it.
! include/diapause/diapause.h has the contract of each call; the comments here say only what differs.
!
! Every call has an optional `status` (DIAPAUSE_OK or one of DIAPAUSE_ERR_*) and an optional `message`, which is written
! to only if the call fails. If a call without `status` fails, the next call with one returns that failure, unless it
! fails itself. `status` is required in the calls of a restart. No failure stops the program.
!
! The procedures that take data are C functions, which Fortran calls directly. So the compiler passes a descriptor of
! the data itself, and never a copy that would be gone after the call.
module diapause
  use, intrinsic :: iso_c_binding
#ifdef DIAPAUSE_FORTRAN_MPI_F08
  use mpi_f08, only: MPI_Comm
#endif
  implicit none
  private

  integer(c_int), parameter, public :: DIAPAUSE_OK = 0, DIAPAUSE_ERR_ARGUMENT = -1, DIAPAUSE_ERR_CONFIG = -2, &
      DIAPAUSE_ERR_IO = -3, DIAPAUSE_ERR_FULL = -4, DIAPAUSE_ERR_BUSY = -5, DIAPAUSE_ERR_CORRUPT = -6, &
      DIAPAUSE_ERR_NOT_FOUND = -7, DIAPAUSE_ERR_MISMATCH = -8, DIAPAUSE_ERR_COMM = -9, DIAPAUSE_ERR_OFF = -10, &
      DIAPAUSE_ERR_INTERNAL = -11, DIAPAUSE_ERR_DENIED = -12, DIAPAUSE_ERR_MEMORY = -13, DIAPAUSE_ERR_TIMEOUT = -14, &
      DIAPAUSE_ERR_AGAIN = -15
  integer(c_int), parameter, public :: DIAPAUSE_L1 = 1, DIAPAUSE_L2 = 2, DIAPAUSE_L3 = 3, DIAPAUSE_L4 = 4, &
      DIAPAUSE_CAPTURED = 0
  integer(c_int), parameter, public :: DIAPAUSE_CHANGING = 0, DIAPAUSE_STABLE = 1, DIAPAUSE_CONSTANT = 2
  integer(c_int), parameter, public :: DIAPAUSE_LATTICE = 0, DIAPAUSE_SZ3 = 1, DIAPAUSE_ZFP = 2
  integer(c_int), parameter, public :: DIAPAUSE_GO_ON = 0, DIAPAUSE_STOP_SIGNAL = 1, DIAPAUSE_STOP_END = 2
  ! The newest version that all ranks can have. It has the same bits as the number of C.
  integer(c_int64_t), parameter, public :: DIAPAUSE_NEWEST = -1

  ! One instance. A copy of it stands for the same instance.
  type, bind(c), public :: diapause_t
    private
    type(c_ptr) :: instance = c_null_ptr
    integer(c_int) :: unheard = 0
    character(kind=c_char) :: text(508) = c_null_char
  end type

  ! These have the members of the structures of C, in their order.
  type, bind(c), public :: diapause_checkpoint_info
    integer(c_int) :: taken = 0
    integer(c_int64_t) :: version = 0
    integer(c_int) :: level_asked = 0, level_reached = 0
    integer(c_int64_t) :: bytes = 0, bytes_total = 0
    real(c_double) :: blocked_s = 0
    integer(c_int) :: skipped = 0
    real(c_double) :: waited_s = 0
    integer(c_int) :: background = 0
    integer(c_int64_t) :: background_version = 0
  end type

  type, bind(c), public :: diapause_progress
    integer(c_int64_t) :: version = 0
    integer(c_int) :: level_asked = 0, level_reached = 0, in_flight = 0, captured = 0
  end type

  type, bind(c), public :: diapause_restart_info
    integer(c_int64_t) :: version = 0
    integer(c_int) :: level = 0, stepped_back = 0
    integer(c_int64_t) :: bytes = 0
    real(c_double) :: greatest_error = 0
    integer(c_int) :: redundancy_lost = 0
  end type

  type, bind(c), public :: diapause_stop_info
    integer(c_int) :: signal = 0, rank = -1
  end type

  public :: diapause_open, diapause_is_open, diapause_finish, diapause_close, diapause_close_within
  public :: diapause_protect, diapause_protect_block, diapause_protect_address, diapause_unprotect
  public :: diapause_declare, diapause_allow_loss
  public :: diapause_files, diapause_checkpoint_files, diapause_restore_files
  public :: diapause_checkpoint, diapause_snapshot, diapause_should_stop, diapause_wait, diapause_poll
  public :: diapause_restart, diapause_restart_begin, diapause_stored, diapause_restore, diapause_restart_end
  public :: diapause_reason, diapause_handle, diapause_status_name
#ifdef DIAPAUSE_FORTRAN_MPI
  public :: diapause_comm
#endif

  ! call diapause_open(run, name [, config] [, status] [, message])
  ! call diapause_open(run, name, comm [, config] [, status] [, message])   comm: integer or type(MPI_Comm)
  interface diapause_open
    subroutine diapause_fortran_open(run, name, config, status, message) bind(c)
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: name
      character(len=*, kind=c_char), intent(in), optional :: config
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine
#ifdef DIAPAUSE_FORTRAN_MPI
    subroutine diapause_fortran_open_mpi(run, name, comm, config, status, message) bind(c)
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: name
      integer(c_int), intent(in) :: comm
      character(len=*, kind=c_char), intent(in), optional :: config
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine
#endif
#ifdef DIAPAUSE_FORTRAN_MPI_F08
    subroutine diapause_fortran_open_mpi_f08(run, name, comm, config, status, message) bind(c)
      import :: diapause_t, MPI_Comm, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: name
      type(MPI_Comm), intent(in) :: comm
      character(len=*, kind=c_char), intent(in), optional :: config
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine
#endif
  end interface

#ifdef DIAPAUSE_FORTRAN_MPI
  ! Gives the communicator that the program computes on; MPI_COMM_NULL on a dedicated rank.
  interface diapause_comm
    subroutine diapause_fortran_comm(run, comm, status, message) bind(c)
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out) :: comm
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine
#ifdef DIAPAUSE_FORTRAN_MPI_F08
    subroutine diapause_fortran_comm_f08(run, comm, status, message) bind(c)
      import :: diapause_t, MPI_Comm, c_char, c_int
      type(diapause_t), intent(inout) :: run
      type(MPI_Comm), intent(out) :: comm
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine
#endif
  end interface
#endif

  interface
    ! Ends the job when all of its work is done: the next run begins anew.
    subroutine diapause_finish(run, status, message) bind(c, name='diapause_fortran_finish')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_close(run, status, message) bind(c, name='diapause_fortran_close')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_close_within(run, seconds, status, message) bind(c, name='diapause_fortran_close_within')
      import :: diapause_t, c_char, c_int, c_double
      type(diapause_t), intent(inout) :: run
      real(c_double), intent(in), value :: seconds
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Protects a variable, an array, or a contiguous section of an array, of any type and rank. Returns
    ! DIAPAUSE_ERR_ARGUMENT for data that is not contiguous, not allocated or not associated. `data` must stay where it
    ! is; give it the attribute `target`, so that the compiler keeps its values in memory. For objects declared with
    ! `class`, and those of a type with procedures of its own, call diapause_protect_address.
    subroutine diapause_protect(run, region, data, status, message) bind(c, name='diapause_fortran_protect')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      type(*), dimension(..), target, intent(inout) :: data
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Protects `data`, and records that it is the block of a global array of `global_shape` whose first element is at
    ! `first`. Both are in the order of Fortran's dimensions, and `first` is counted from 1.
    subroutine diapause_protect_block(run, region, data, global_shape, first, status, message) &
        bind(c, name='diapause_fortran_protect_block')
      import :: diapause_t, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      type(*), dimension(..), target, intent(inout) :: data
      integer(c_int64_t), intent(in) :: global_shape(:), first(:)
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Protects `count` elements of `element_bytes` each at an address from c_loc.
    subroutine diapause_protect_address(run, region, address, count, element_bytes, status, message) &
        bind(c, name='diapause_fortran_protect_address')
      import :: diapause_t, c_char, c_int, c_int64_t, c_ptr
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      type(c_ptr), intent(in), value :: address
      integer(c_int64_t), intent(in), value :: count, element_bytes
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_unprotect(run, region, status, message) bind(c, name='diapause_fortran_unprotect')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_declare(run, region, declaration, status, message) bind(c, name='diapause_fortran_declare')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      integer(c_int), intent(in), value :: declaration
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_allow_loss(run, region, bound, codec, status, message) &
        bind(c, name='diapause_fortran_allow_loss')
      import :: diapause_t, c_char, c_int, c_double
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      real(c_double), intent(in), value :: bound
      integer(c_int), intent(in), optional :: codec ! DIAPAUSE_LATTICE
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_checkpoint(run, version, level, info, status, message) &
        bind(c, name='diapause_fortran_checkpoint')
      import :: diapause_t, diapause_checkpoint_info, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      integer(c_int64_t), intent(in), value :: version
      integer(c_int), intent(in), value :: level
      type(diapause_checkpoint_info), intent(out), optional :: info
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Gives the directory for files of the next version. `directory` must be long enough for its path.
    subroutine diapause_files(run, directory, status, message) bind(c, name='diapause_fortran_files')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(out) :: directory
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Takes a checkpoint of those files, if they are `complete` on all ranks, and of all protected regions.
    subroutine diapause_checkpoint_files(run, version, level, complete, info, status, message) &
        bind(c, name='diapause_fortran_checkpoint_files')
      import :: diapause_t, diapause_checkpoint_info, c_char, c_int, c_int64_t, c_bool
      type(diapause_t), intent(inout) :: run
      integer(c_int64_t), intent(in), value :: version
      integer(c_int), intent(in), value :: level
      logical(c_bool), intent(in), value :: complete
      type(diapause_checkpoint_info), intent(out), optional :: info
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Gives the directory with the files of the opened version. It is there until diapause_restart_end.
    subroutine diapause_restore_files(run, directory, status, message) bind(c, name='diapause_fortran_restore_files')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(out) :: directory
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_snapshot(run, version, info, status, message) bind(c, name='diapause_fortran_snapshot')
      import :: diapause_t, diapause_checkpoint_info, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      integer(c_int64_t), intent(in), value :: version
      type(diapause_checkpoint_info), intent(out), optional :: info
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    integer(c_int) function fortran_should_stop(run, info) bind(c, name='diapause_fortran_should_stop')
      import :: diapause_t, diapause_stop_info, c_int
      type(diapause_t), intent(in) :: run
      type(diapause_stop_info), intent(inout), optional :: info
    end function

    ! If the time is over first, `done` is false and the call is no failure.
    subroutine diapause_wait(run, version, level, seconds, done, status, message) bind(c, name='diapause_fortran_wait')
      import :: diapause_t, c_char, c_int, c_int64_t, c_double, c_bool
      type(diapause_t), intent(inout) :: run
      integer(c_int64_t), intent(in), value :: version
      integer(c_int), intent(in), value :: level
      real(c_double), intent(in), value :: seconds
      logical(c_bool), intent(out), optional :: done
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_poll(run, version, progress, status, message) bind(c, name='diapause_fortran_poll')
      import :: diapause_t, diapause_progress, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      integer(c_int64_t), intent(in), value :: version
      type(diapause_progress), intent(out) :: progress
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Restores all protected regions from `version`, or from the newest. DIAPAUSE_ERR_NOT_FOUND is a fresh start. After
    ! any other failure there are checkpoints, and the program must not begin anew.
    subroutine diapause_restart(run, status, info, version, message) bind(c, name='diapause_fortran_restart')
      import :: diapause_t, diapause_restart_info, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out) :: status
      type(diapause_restart_info), intent(out), optional :: info
      integer(c_int64_t), intent(in), optional :: version
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_restart_begin(run, status, info, version, message) &
        bind(c, name='diapause_fortran_restart_begin')
      import :: diapause_t, diapause_restart_info, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out) :: status
      type(diapause_restart_info), intent(out), optional :: info
      integer(c_int64_t), intent(in), optional :: version
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Gives the number of elements of the region in the version that a restart has opened, and the size of each.
    subroutine diapause_stored(run, region, count, element_bytes, status, message) &
        bind(c, name='diapause_fortran_stored')
      import :: diapause_t, c_char, c_int, c_int64_t
      type(diapause_t), intent(inout) :: run
      character(len=*, kind=c_char), intent(in) :: region
      integer(c_int64_t), intent(out) :: count
      integer(c_int64_t), intent(out), optional :: element_bytes
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Restores all protected regions, or the named ones.
    subroutine diapause_restore(run, status, regions, message) bind(c, name='diapause_fortran_restore')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out) :: status
      character(len=*, kind=c_char), intent(in), optional :: regions(:)
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    subroutine diapause_restart_end(run, status, message) bind(c, name='diapause_fortran_restart_end')
      import :: diapause_t, c_char, c_int
      type(diapause_t), intent(inout) :: run
      integer(c_int), intent(out), optional :: status
      character(len=*, kind=c_char), intent(inout), optional :: message
    end subroutine

    ! Gives the reason why the last restart stepped back or failed, or of a failure in the background; blank if none.
    subroutine diapause_reason(run, reason, background) bind(c, name='diapause_fortran_reason')
      import :: diapause_t, c_char, c_bool
      type(diapause_t), intent(in) :: run
      character(len=*, kind=c_char), intent(out) :: reason
      logical(c_bool), intent(in), optional :: background
    end subroutine

    ! Gives the name of a status, such as DIAPAUSE_ERR_FULL.
    subroutine diapause_status_name(status, name) bind(c, name='diapause_fortran_status_name')
      import :: c_char, c_int
      integer(c_int), intent(in), value :: status
      character(len=*, kind=c_char), intent(out) :: name
    end subroutine
  end interface

contains

  ! Returns whether the program has to stop, as the last snapshot call has found out: the same on all ranks.
  logical function diapause_should_stop(run, info)
    type(diapause_t), intent(in) :: run
    type(diapause_stop_info), intent(inout), optional :: info
    diapause_should_stop = fortran_should_stop(run, info) /= DIAPAUSE_GO_ON
  end function

  logical function diapause_is_open(run)
    type(diapause_t), intent(in) :: run
    diapause_is_open = c_associated(run%instance)
  end function

  ! Returns the diapause_t* of C, for functions of diapause.h that this module does not have.
  type(c_ptr) function diapause_handle(run)
    type(diapause_t), intent(in) :: run
    diapause_handle = run%instance
  end function

end module diapause
