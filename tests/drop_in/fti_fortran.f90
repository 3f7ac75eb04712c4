! FTI's module for Fortran, as its users call it: fti_fortran CONFIGURATION begin|continue. The run that begins ends without
! FTI_Finalize, as after a crash.
program fti_fortran
  use mpi
  use, intrinsic :: iso_c_binding
  use FTI
  implicit none

  type, bind(c) :: particle_t
    real(c_double) :: place(3)
    integer(c_int) :: kind
  end type

  character(len=1000) :: configuration, part
  integer, target :: step
  integer(1), pointer :: small
  real(8), pointer :: grid(:,:)
  complex(4), pointer :: waves(:)
  logical, pointer :: flag
  character(len=1), pointer :: letter
  type(particle_t), target :: particles(5)
  integer :: comm, rank, error, status, particle_type, found
  integer(8) :: bytes

  call get_command_argument(1, configuration)
  call get_command_argument(2, part)
  call mpi_init(error)
  comm = MPI_COMM_WORLD
  call FTI_Init(configuration, comm, error)
  call check(error == FTI_SCES, 'FTI begins')
  call mpi_comm_rank(comm, rank, error)
  allocate (small, grid(40, 30), waves(0:9), flag, letter)
  particle_type = FTI_InitCompositeType('particle', c_sizeof(particles(1)))
  call check(FTI_AddVectorField(particle_type, 'place', FTI_REAL8, 0_c_size_t, 1, [3]) == FTI_SCES, 'a vector in a type')
  call check(FTI_AddScalarField(particle_type, 'kind', FTI_INTEGER4, 24_c_size_t) == FTI_SCES, 'a scalar in a type')
  call check(FTI_AddScalarField(particle_type, 'outside', FTI_REAL16, 24_c_size_t) == FTI_NSCS, 'none outside of it')
  call protect_all()
  call FTI_Protect(9, grid(1, :), error)
  call check(error == FTI_NSCS, 'a row is not contiguous')
  call FTI_Protect(9, grid(:, 2), error)
  call check(error == FTI_SCES, 'a column is')
  call FTI_setIDFromString('waves', found)
  call FTI_getIDFromString('waves', status)
  call check(found == status, 'a name is found')
  call FTI_Status(status)
  if (part == 'begin') then
    call check(status == 0, 'this is a start')
    call fill()
    call FTI_Checkpoint(1, 4, error)
    call check(error == FTI_DONE, 'a checkpoint is taken')
    call mpi_barrier(comm, error)
    call mpi_finalize(error)
    stop
  end if
  call check(status == 1, 'this is a restart')
  call FTI_InitICP(1, 1, .false., error)
  call check(error == FTI_SCES, 'a checkpoint in parts that is not to be')
  call FTI_AddVarICP(1, error)
  call FTI_FinalizeICP(error)
  call check(error == FTI_SCES, 'is none')
  call FTI_GetStoredSize(1, bytes)
  call check(bytes == 40 * 30 * 8, 'the size of what is stored')
  grid = 0
  call FTI_Recover(error)
  call check(error == FTI_SCES, 'it is recovered')
  call look()
  call FTI_Finalize(error)
  call check(error == FTI_SCES, 'FTI ends')
  call mpi_finalize(error)

contains

  subroutine protect_all()
    call protect(0, step)
    call FTI_Protect(1, grid, error)
    call check(error == FTI_SCES, 'an array')
    call FTI_Protect(2, waves, error)
    call check(error == FTI_SCES, 'complex numbers')
    call FTI_Protect(3, flag, error)
    call check(error == FTI_SCES, 'a logical')
    call FTI_Protect(4, letter, error)
    call check(error == FTI_SCES, 'a character')
    call FTI_Protect(5, small, error)
    call check(error == FTI_SCES, 'a byte')
    call FTI_Protect(6, c_loc(particles), 5, particle_type, error)
    call check(error == FTI_SCES, 'a type by its address')
  end subroutine

  subroutine protect(id, number)
    integer, intent(in) :: id
    integer, target, intent(inout) :: number
    call FTI_Protect(id, number, error)
    call check(error == FTI_SCES, 'a number')
  end subroutine

  subroutine fill()
    integer :: i
    step = 41 + rank
    grid = reshape([(real(i + rank, 8), i = 1, size(grid))], shape(grid))
    waves = [(cmplx(i, rank), i = 0, 9)]
    flag = .true.
    letter = 'x'
    small = 17_1
    do i = 1, 5
      particles(i) = particle_t([1d0 * i, 2d0, 3d0], rank)
    end do
  end subroutine

  subroutine look()
    integer :: i
    call check(step == 41 + rank .and. flag .and. letter == 'x' .and. small == 17, 'single values')
    call check(all(nint(grid) == reshape([(i + rank, i = 1, size(grid))], shape(grid))), 'the array')
    call check(all(nint(real(waves)) == [(i, i = 0, 9)]) .and. all(nint(aimag(waves)) == rank), 'the complex numbers')
    call check(all(particles%kind == rank) .and. all(nint(particles%place(1)) == [1, 2, 3, 4, 5]), 'the type')
  end subroutine

  subroutine check(condition, text)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: text
    if (condition) return
    write (0, '(2a)') 'not so: ', text
    call mpi_abort(MPI_COMM_WORLD, 1, error)
  end subroutine check

end program fti_fortran
