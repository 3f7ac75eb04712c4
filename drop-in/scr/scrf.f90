! SCR for Fortran as a module, for programs that `use scrf` instead of including scrf.h. Each subroutine is the function of
! scr.h of that name, and `ierror` is what that returns. scrf.cpp implements them, for both.
module scrf
  implicit none
  public

  integer, parameter :: SCR_SUCCESS = 0, SCR_MAX_FILENAME = 1024
  integer, parameter :: SCR_FLAG_NONE = 0, SCR_FLAG_CHECKPOINT = 1, SCR_FLAG_OUTPUT = 2

  interface
    subroutine scr_init(ierror)
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_finalize(ierror)
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_config(config, value, ierror)
      character(len=*), intent(in) :: config
      character(len=*), intent(out) :: value
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_route_file(name, file, ierror)
      character(len=*), intent(in) :: name
      character(len=*), intent(out) :: file
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_have_restart(flag, name, ierror)
      integer, intent(out) :: flag
      character(len=*), intent(out) :: name
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_start_restart(name, ierror)
      character(len=*), intent(out) :: name
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_complete_restart(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_need_checkpoint(flag, ierror)
      integer, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_start_checkpoint(ierror)
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_complete_checkpoint(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_start_output(name, flags, ierror)
      character(len=*), intent(in) :: name
      integer, intent(in) :: flags
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_complete_output(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_current(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_drop(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_delete(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_get_version(version, ierror)
      character(len=*), intent(out) :: version
      integer, intent(out) :: ierror
    end subroutine

    subroutine scr_should_exit(flag, ierror)
      integer, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine
  end interface

end module scrf
