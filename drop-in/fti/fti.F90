! FTI for Fortran. Each procedure is the function of fti.h of that name; `err` is what that returns.
!
! Protected data may be of any type and rank. Fortran passes it as a descriptor, so memory that is not of one piece is
! refused.
module FTI
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer, parameter, public :: FTI_SCES = 0, FTI_DONE = 1, FTI_HEAD = 2, FTI_NSCS = -1, FTI_NREC = -2
  integer, parameter, public :: FTI_ATTRIBUTE_NAME = 1, FTI_ATTRIBUTE_DIM = 2

  ! These types are valid after FTI_Init. The numbers are kinds.
  integer(c_int), bind(c, name='diapause_fti_character1'), public :: FTI_CHARACTER1
  integer(c_int), bind(c, name='diapause_fti_logical1'), public :: FTI_LOGICAL1
  integer(c_int), bind(c, name='diapause_fti_logical2'), public :: FTI_LOGICAL2
  integer(c_int), bind(c, name='diapause_fti_logical4'), public :: FTI_LOGICAL4
  integer(c_int), bind(c, name='diapause_fti_logical8'), public :: FTI_LOGICAL8
  integer(c_int), bind(c, name='diapause_fti_integer1'), public :: FTI_INTEGER1
  integer(c_int), bind(c, name='diapause_fti_integer2'), public :: FTI_INTEGER2
  integer(c_int), bind(c, name='diapause_fti_integer4'), public :: FTI_INTEGER4
  integer(c_int), bind(c, name='diapause_fti_integer8'), public :: FTI_INTEGER8
  integer(c_int), bind(c, name='diapause_fti_real4'), public :: FTI_REAL4
  integer(c_int), bind(c, name='diapause_fti_real8'), public :: FTI_REAL8
  integer(c_int), bind(c, name='diapause_fti_real16'), public :: FTI_REAL16
  integer(c_int), bind(c, name='diapause_fti_complex4'), public :: FTI_COMPLEX4
  integer(c_int), bind(c, name='diapause_fti_complex8'), public :: FTI_COMPLEX8
  integer(c_int), bind(c, name='diapause_fti_complex16'), public :: FTI_COMPLEX16

  public :: FTI_Init, FTI_Status, FTI_Protect, FTI_Checkpoint, FTI_Recover, FTI_Snapshot, FTI_Finalize
  public :: FTI_GetStoredSize, FTI_Realloc, FTI_RecoverVarInit, FTI_RecoverVar, FTI_RecoverVarFinalize
  public :: FTI_InitICP, FTI_AddVarICP, FTI_FinalizeICP
  public :: FTI_setIDFromString, FTI_getIDFromString, FTI_SetAttribute
  public :: FTI_InitType, FTI_InitCompositeType, FTI_AddScalarField, FTI_AddVectorField

  interface FTI_Protect
    subroutine diapause_fti_protect(id, data, err) bind(c)
      import :: c_int
      integer(c_int), intent(in) :: id
      type(*), dimension(..), target, intent(inout) :: data
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine diapause_fti_protect_address(id, ptr, count, tid, err) bind(c)
      import :: c_int, c_ptr
      integer(c_int), intent(in) :: id
      type(c_ptr), value :: ptr
      integer(c_int), intent(in) :: count, tid
      integer(c_int), intent(out) :: err
    end subroutine
  end interface

  interface FTI_SetAttribute
    subroutine diapause_fti_set_name(id, attribute, flag, err) bind(c)
      import :: c_int, c_char
      integer(c_int), intent(in) :: id
      character(len=*, kind=c_char), intent(in) :: attribute
      integer(c_int), intent(in) :: flag
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine diapause_fti_set_dimensions4(id, attribute, flag, err) bind(c)
      import :: c_int, c_int32_t
      integer(c_int), intent(in) :: id
      integer(c_int32_t), intent(in) :: attribute(:)
      integer(c_int), intent(in) :: flag
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine diapause_fti_set_dimensions8(id, attribute, flag, err) bind(c)
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: id
      integer(c_int64_t), intent(in) :: attribute(:)
      integer(c_int), intent(in) :: flag
      integer(c_int), intent(out) :: err
    end subroutine
  end interface

  interface
    ! `global_comm` becomes the communicator of the ranks that compute.
    subroutine FTI_Init(config_file, global_comm, err) bind(c, name='diapause_fti_init')
      import :: c_int, c_char
      character(len=*, kind=c_char), intent(in) :: config_file
      integer(c_int), intent(inout) :: global_comm
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_Status(status) bind(c, name='diapause_fti_status')
      import :: c_int
      integer(c_int), intent(out) :: status
    end subroutine
    subroutine FTI_Checkpoint(id, level, err) bind(c, name='diapause_fti_checkpoint')
      import :: c_int
      integer(c_int), intent(in) :: id, level
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_Recover(err) bind(c, name='diapause_fti_recover')
      import :: c_int
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_Snapshot(err) bind(c, name='diapause_fti_snapshot')
      import :: c_int
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_Finalize(err) bind(c, name='diapause_fti_finalize')
      import :: c_int
      integer(c_int), intent(out) :: err
    end subroutine

    subroutine FTI_GetStoredSize(id, size) bind(c, name='diapause_fti_stored_size')
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: id
      integer(c_int64_t), intent(out) :: size
    end subroutine
    subroutine FTI_Realloc(id, ptr, err) bind(c, name='diapause_fti_realloc')
      import :: c_int, c_ptr
      integer(c_int), intent(in) :: id
      type(c_ptr), intent(inout) :: ptr
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_RecoverVarInit(err) bind(c, name='diapause_fti_recover_var_init')
      import :: c_int
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_RecoverVar(id, err) bind(c, name='diapause_fti_recover_var')
      import :: c_int
      integer(c_int), intent(in) :: id
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_RecoverVarFinalize(err) bind(c, name='diapause_fti_recover_var_finalize')
      import :: c_int
      integer(c_int), intent(out) :: err
    end subroutine

    subroutine diapause_fti_init_icp(id, level, activate, err) bind(c)
      import :: c_int
      integer(c_int), intent(in) :: id, level, activate
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_AddVarICP(id, err) bind(c, name='diapause_fti_add_var_icp')
      import :: c_int
      integer(c_int), intent(in) :: id
      integer(c_int), intent(out) :: err
    end subroutine
    subroutine FTI_FinalizeICP(err) bind(c, name='diapause_fti_finalize_icp')
      import :: c_int
      integer(c_int), intent(out) :: err
    end subroutine

    subroutine FTI_setIDFromString(name, id) bind(c, name='diapause_fti_set_id')
      import :: c_int, c_char
      character(len=*, kind=c_char), intent(in) :: name
      integer(c_int), intent(out) :: id
    end subroutine
    subroutine FTI_getIDFromString(name, id) bind(c, name='diapause_fti_get_id')
      import :: c_int, c_char
      character(len=*, kind=c_char), intent(in) :: name
      integer(c_int), intent(out) :: id
    end subroutine

    ! These return a type, or FTI_NSCS.
    integer(c_int) function FTI_InitType(size) bind(c, name='diapause_fti_init_type')
      import :: c_int, c_size_t
      integer(c_size_t), intent(in) :: size
    end function
    integer(c_int) function FTI_InitCompositeType(name, size) bind(c, name='diapause_fti_init_composite_type')
      import :: c_int, c_size_t, c_char
      character(len=*, kind=c_char), intent(in) :: name
      integer(c_size_t), intent(in) :: size
    end function
    integer(c_int) function FTI_AddScalarField(tid, name, field_tid, offset) bind(c, name='diapause_fti_add_scalar')
      import :: c_int, c_size_t, c_char
      integer(c_int), value :: tid
      character(len=*, kind=c_char), intent(in) :: name
      integer(c_int), value :: field_tid
      integer(c_size_t), value :: offset
    end function
    integer(c_int) function FTI_AddVectorField(tid, name, field_tid, offset, ndims, lengths) &
        bind(c, name='diapause_fti_add_vector')
      import :: c_int, c_size_t, c_char
      integer(c_int), value :: tid
      character(len=*, kind=c_char), intent(in) :: name
      integer(c_int), value :: field_tid
      integer(c_size_t), value :: offset
      integer(c_int), value :: ndims
      integer(c_int), intent(in) :: lengths(*)
    end function
  end interface

contains

  ! A logical of Fortran is not a bool of C.
  subroutine FTI_InitICP(id, level, activate, err)
    integer(c_int), intent(in) :: id, level
    logical, intent(in) :: activate
    integer(c_int), intent(out) :: err
    call diapause_fti_init_icp(id, level, merge(1_c_int, 0_c_int, activate), err)
  end subroutine
end module
