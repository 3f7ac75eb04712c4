# Debian packages of what was built: `cpack` in the build folder, or `make packages`. Included last, when everything that
# is installed is known.
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
set(CPACK_PACKAGE_CONTACT "The authors of Diapause")
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

set(same_version "(= ${PROJECT_VERSION})")

# diapause_package(<name> <section> <what it is> [<variable> <value>...]), the variables as of CPackDeb
function(diapause_package name section what)
  string(TOUPPER ${name} key)
  set(CPACK_COMPONENT_${key}_DESCRIPTION ${what} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
          COMPONENT ${name} EXCLUDE_FROM_ALL)
  while(ARGN)
    list(POP_FRONT ARGN variable value)
    set(CPACK_DEBIAN_${key}_PACKAGE_${variable} ${value} PARENT_SCOPE)
  endwhile()
endfunction()

diapause_package(libdiapause libs "Checkpoint/restart for parallel programs: the libraries")
diapause_package(libdiapause-dev libdevel "Checkpoint/restart for parallel programs: to build with"
  DEPENDS "libdiapause ${same_version}" RECOMMENDS "mpi-default-dev, pkg-config")
diapause_package(diapause utils "Checkpoint/restart for parallel programs: the command"
  DEPENDS "libdiapause ${same_version}, python3 (>= 3.9)" RECOMMENDS "python3-matplotlib, python3-scipy")
diapause_package(python3-diapause python "Checkpoint/restart for parallel programs: the Python package"
  DEPENDS "diapause ${same_version}, python3 (>= 3.9)" RECOMMENDS "python3-numpy, python3-mpi4py"
  ARCHITECTURE all)
diapause_package(diapause-drop-in libdevel "Checkpoint/restart for parallel programs: in place of FTI, SCR and VELOC"
  DEPENDS "libdiapause ${same_version}" RECOMMENDS "mpi-default-dev, pkg-config")

# The command has the package already, beside the libraries: the system's Python is led to it.
set(python_folder lib/python3/dist-packages)
file(RELATIVE_PATH package_from_python /x/${python_folder} /x/${CMAKE_INSTALL_DATADIR}/diapause/python/diapause)
file(CREATE_LINK ${package_from_python} ${CMAKE_CURRENT_BINARY_DIR}/diapause SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/diapause DESTINATION ${python_folder} COMPONENT python3-diapause
        EXCLUDE_FROM_ALL)

include(CPack)
