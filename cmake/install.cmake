# What `cmake --install` puts where: the public headers, the libraries, the command, and for those who build on them a
# CMake package and pkg-config files. Everything finds everything else relative to itself, so a prefix can be moved.
include(CMakePackageConfigHelpers)

# Before 1.0 every minor version may change the binary interface.
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/diapause)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig /x/${pkgconfig_dir} /x)
file(RELATIVE_PATH libdir_from_bindir /x/${CMAKE_INSTALL_BINDIR} /x/${CMAKE_INSTALL_LIBDIR})

# diapause_install_library(<target> <name in the package> <export file>)
function(diapause_install_library target name export)
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${soversion} EXPORT_NAME ${name}
                                             INSTALL_RPATH $ORIGIN)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  install(TARGETS ${target} EXPORT ${export} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${export} NAMESPACE diapause:: DESTINATION ${package_dir})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${target}.pc.in ${PROJECT_BINARY_DIR}/${target}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${target}.pc DESTINATION ${pkgconfig_dir})
endfunction()

diapause_install_library(diapause diapause diapauseTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/diapause DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        PATTERN diapause_mpi.h EXCLUDE)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/diapauseConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/diapauseConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/diapauseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/diapauseConfig.cmake ${PROJECT_BINARY_DIR}/diapauseConfigVersion.cmake
        DESTINATION ${package_dir})

if(TARGET diapause_mpi)
  diapause_install_library(diapause_mpi mpi diapauseMpiTargets)
  install(FILES ${PROJECT_SOURCE_DIR}/include/diapause/diapause_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/diapause)
endif()

# To read and to start one's own from; the library has them inside.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/diapause)

# What the command draws with.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python DESTINATION ${CMAKE_INSTALL_DATADIR}/diapause
        FILES_MATCHING PATTERN *.py PATTERN *.csv PATTERN __pycache__ EXCLUDE)

set_target_properties(diapause_cli PROPERTIES INSTALL_RPATH $ORIGIN/${libdir_from_bindir})
install(TARGETS diapause_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/docs/diapause.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
