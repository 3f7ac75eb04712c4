# Says what `cmake --install` puts where: the public headers, the libraries, the command, and for those who build on them a
# CMake package and pkg-config files. Everything finds everything else relative to itself, so a prefix can be moved.
include(CMakePackageConfigHelpers)

# A component is what one Debian package holds (packaging/packages.cmake); `cmake --install` without one installs all.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME libdiapause-dev)

# Before 1.0 every minor version may change the binary interface.
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/diapause)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig /x/${pkgconfig_dir} /x)

# diapause_export_only(<target> <map of symbols>)
function(diapause_export_only target map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/${map})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/${map})
endfunction()

# diapause_install_library(<target> <name in the package> <export file>)
function(diapause_install_library target name export)
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${soversion} EXPORT_NAME ${name}
                                             INSTALL_RPATH $ORIGIN)
  install(TARGETS ${target} EXPORT ${export} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libdiapause
                                                     NAMELINK_COMPONENT libdiapause-dev)
  install(EXPORT ${export} NAMESPACE diapause:: DESTINATION ${package_dir})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${target}.pc.in ${PROJECT_BINARY_DIR}/${target}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${target}.pc DESTINATION ${pkgconfig_dir})
endfunction()

diapause_export_only(diapause exports.map)
diapause_install_library(diapause diapause diapauseTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/diapause DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        PATTERN diapause_mpi.h EXCLUDE)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/diapauseConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/diapauseConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/diapauseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/diapauseConfig.cmake ${PROJECT_BINARY_DIR}/diapauseConfigVersion.cmake
        DESTINATION ${package_dir})

if(TARGET diapause_mpi)
  diapause_export_only(diapause_mpi exports.map)
  diapause_install_library(diapause_mpi mpi diapauseMpiTargets)
  install(FILES ${PROJECT_SOURCE_DIR}/include/diapause/diapause_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/diapause)
endif()

# diapause_install_fortran(<target> <name in the package> <export file> <folder of the modules>)
function(diapause_install_fortran target name export modules)
  diapause_export_only(${target} exports_fortran.map)
  diapause_install_library(${target} ${name} ${export})
  install(FILES ${PROJECT_BINARY_DIR}/bindings/fortran/${modules}/diapause.mod
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/diapause/fortran/${modules})
endfunction()

if(TARGET diapause_fortran)
  diapause_install_fortran(diapause_fortran fortran diapauseFortranTargets serial)
endif()
if(TARGET diapause_mpi_fortran)
  diapause_install_fortran(diapause_mpi_fortran mpi_fortran diapauseMpiFortranTargets mpi)
endif()

# These are programs to start from.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/diapause USE_SOURCE_PERMISSIONS
        FILES_MATCHING PATTERN *.c PATTERN *.cpp PATTERN *.f90 PATTERN *.py PATTERN *.toml PATTERN *.sh)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME diapause)

# These are to be read and to be started from; the library has them inside.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/diapause)

# Installs the libraries within the Python package, for python/pyproject.toml alone. They go by the name that programs ask for: a
# wheel holds no links. Five sixths of them are what debuggers read, and are left out.
add_custom_target(python_libraries DEPENDS diapause)
foreach(target IN ITEMS diapause diapause_mpi)
  if(TARGET ${target})
    add_dependencies(python_libraries ${target})
    install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION diapause/lib RENAME $<TARGET_SONAME_FILE_NAME:${target}>
            COMPONENT python EXCLUDE_FROM_ALL)
    set(installed "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/diapause/lib/$<TARGET_SONAME_FILE_NAME:${target}>")
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"${installed}\" COMMAND_ERROR_IS_FATAL ANY)"
            COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endforeach()

# The command draws with these.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python DESTINATION ${CMAKE_INSTALL_DATADIR}/diapause
        FILES_MATCHING PATTERN *.py PATTERN *.csv PATTERN __pycache__ EXCLUDE)

install(TARGETS diapause_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Programs that examples/slurm/job.sh and `diapause study` run. They are no commands: they lie beside them.
file(RELATIVE_PATH libdir_from_libexec /x/${CMAKE_INSTALL_LIBEXECDIR}/diapause /x/${CMAKE_INSTALL_LIBDIR})
foreach(program IN ITEMS heat stream messages)
  foreach(target IN ITEMS ${program} ${program}_plain)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN/${libdir_from_libexec})
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/diapause)
    endif()
  endforeach()
endforeach()

# These take the place of libibverbs and librdmacm in programs that `diapause launch` starts. The Debian packages are without it: their dependencies would
# name a library that only the link leads to.
if(TARGET diapause_stand_in)
  install(TARGETS diapause_verbs diapause_stand_in diapause_rdma_manager LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/diapause/verbs NAMELINK_SKIP
          COMPONENT verbs)
  install(FILES ${verbs_link} DESTINATION ${CMAKE_INSTALL_LIBDIR}/diapause/verbs COMPONENT verbs)
endif()
