# Makes Debian packages of a build, by `cpack` in the build folder or by `make packages`. It is included last, when everything
# that is installed is known.
#
#   libdiapause         what programs are linked with, without MPI and with the MPI of this build
#   libdiapause-dev     headers, CMake and pkg-config files, pages of the functions, programs to start from
#   diapause            the command with all that it uses
#   python3-diapause    `import diapause` for the system's Python
#   diapause-drop-in    libraries in place of FTI, SCR and VELOC, in a folder where no program finds them unasked
set(CPACK_COMPONENTS_ALL libdiapause libdiapause-dev diapause python3-diapause diapause-drop-in)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_NAME diapause)
set(CPACK_PACKAGE_VENDOR Diapause)
# The names that Debian's own tools take; there is no address of the project.
set(CPACK_PACKAGE_CONTACT "The authors of Diapause <authors@diapause.invalid>")
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${PROJECT_BINARY_DIR}/src ${PROJECT_BINARY_DIR}/bindings/fortran
    ${PROJECT_BINARY_DIR}/drop-in/fti/lib ${PROJECT_BINARY_DIR}/drop-in/scr/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_LIBDIAPAUSE_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/debian/triggers)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/debian/compress-pages.cmake)

set(same_version "(= ${PROJECT_VERSION})")

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(changelog ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz)
execute_process(COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/debian/changelog.py
                        ${PROJECT_SOURCE_DIR}/CHANGES.md ${CPACK_PACKAGE_CONTACT} ${changelog}
                COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGES.md)

# diapause_package(<name> <section> <what it is> <more about it> [<variable> <value>...]), the variables as of CPackDeb
function(diapause_package name section what more)
  string(TOUPPER ${name} key)
  set(CPACK_COMPONENT_${key}_DESCRIPTION
      "Checkpoint/restart for parallel programs: ${what}\nDiapause makes parallel programs safe against failures, for little of\n\
their time and few joules.\n${more}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${documents} RENAME copyright
          COMPONENT ${name} EXCLUDE_FROM_ALL)
  install(FILES ${changelog} DESTINATION ${documents} COMPONENT ${name} EXCLUDE_FROM_ALL)
  set(overrides ${CMAKE_CURRENT_SOURCE_DIR}/debian/${name}.overrides)
  if(EXISTS ${overrides})
    install(FILES ${overrides} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${name}
            COMPONENT ${name} EXCLUDE_FROM_ALL)
  endif()
  while(ARGN)
    list(POP_FRONT ARGN variable value)
    set(CPACK_DEBIAN_${key}_PACKAGE_${variable} ${value} PARENT_SCOPE)
  endwhile()
endfunction()

diapause_package(libdiapause libs "libraries"
  "Programs in C, C++ and Fortran are linked with these, with MPI and without.")
diapause_package(libdiapause-dev libdevel "development files"
  "These are the headers, what finds them, pages of the functions, and\nprograms to start from."
  DEPENDS "libdiapause ${same_version}" RECOMMENDS "mpi-default-dev, pkg-config")
diapause_package(diapause utils "command"
  "The command lists, verifies, exports and removes checkpoints, and tells what\n\
they cost. It checkpoints programs that know nothing of it."
  DEPENDS "libdiapause ${same_version}, python3 (>= 3.9)" RECOMMENDS "python3-matplotlib, python3-scipy")
diapause_package(python3-diapause python "Python package"
  "Programs in Python protect arrays, and checkpoints on disk are opened as\narrays."
  DEPENDS "diapause ${same_version}, python3 (>= 3.9)" RECOMMENDS "python3-numpy, python3-mpi4py"
  ARCHITECTURE all)
diapause_package(diapause-drop-in libdevel "in place of FTI, SCR and VELOC"
  "Programs that were written for these libraries are built and linked with\nlibraries of the same names."
  DEPENDS "libdiapause ${same_version}" RECOMMENDS "mpi-default-dev, pkg-config")

# The command has the package already, beside the libraries: the system's Python is led to it.
set(python_folder lib/python3/dist-packages)
file(RELATIVE_PATH package_from_python /x/${python_folder} /x/${CMAKE_INSTALL_DATADIR}/diapause/python/diapause)
file(CREATE_LINK ${package_from_python} ${CMAKE_CURRENT_BINARY_DIR}/diapause SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/diapause DESTINATION ${python_folder} COMPONENT python3-diapause
        EXCLUDE_FROM_ALL)

include(CPack)
