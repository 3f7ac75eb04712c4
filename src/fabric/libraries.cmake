# Builds what programs that use verbs are given in place of libibverbs and librdmacm; see fabric/README.md. These are files in a folder
# of their own: the stand-in, the shim, a link to the real library, which has to be there when programs run, and the
# connection manager.
file(RELATIVE_PATH verbs_from_program /x/${CMAKE_INSTALL_BINDIR} /x/${CMAKE_INSTALL_LIBDIR}/diapause/verbs)
target_compile_definitions(diapause_fabric PRIVATE DIAPAUSE_VERBS_FROM_PROGRAM="${verbs_from_program}")
find_path(IBVERBS_INCLUDE infiniband/verbs.h)
find_library(IBVERBS_LIBRARY ibverbs)
mark_as_advanced(IBVERBS_INCLUDE IBVERBS_LIBRARY)
if(NOT IBVERBS_INCLUDE OR NOT IBVERBS_LIBRARY OR DIAPAUSE_SANITIZE)
  message(STATUS "Without libibverbs: programs that use InfiniBand verbs are not checkpointed")
  return()
endif()

# The folder lies at the same place from the command in the build and where they are installed.
cmake_path(ABSOLUTE_PATH verbs_from_program BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} NORMALIZE OUTPUT_VARIABLE verbs_folder)

# Programs have no other C++ library by it, and see nothing but verbs.
file(GLOB shim_sources CONFIGURE_DEPENDS fabric/shim/*.cpp)
add_library(diapause_verbs SHARED ${shim_sources} fabric/directory.cpp base/result.cpp sys/futex.cpp)
target_include_directories(diapause_verbs PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${IBVERBS_INCLUDE})
target_link_libraries(diapause_verbs PRIVATE fmt::fmt-header-only tl::expected Threads::Threads)
# Fields that lie side by side would be joined in vector registers first, which is longer than to store each.
target_compile_options(diapause_verbs PRIVATE -fno-tree-slp-vectorize)
target_link_options(diapause_verbs PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,nodelete
                    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/fabric/shim/exports.map)
set_property(TARGET diapause_verbs APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fabric/shim/exports.map)

# This is only a name to link the stand-in with, by which programs find the link to the real library.
set(nothing ${CMAKE_CURRENT_SOURCE_DIR}/fabric/stand_in/nothing.c)
add_library(diapause_real_ibverbs SHARED ${nothing})
set_target_properties(diapause_real_ibverbs PROPERTIES SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fabric)

add_library(diapause_stand_in SHARED ${nothing})
target_link_libraries(diapause_stand_in PRIVATE -Wl,--no-as-needed diapause_verbs diapause_real_ibverbs)
target_link_options(diapause_stand_in PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/fabric/stand_in/versions.map)
set_target_properties(diapause_stand_in PROPERTIES OUTPUT_NAME ibverbs SOVERSION 1)

# The connection manager of the same folder takes the place of librdmacm. Like any program it asks libibverbs.so.1, which the folder has.
file(GLOB manager_sources CONFIGURE_DEPENDS fabric/manager/*.cpp)
set(manager_exports ${CMAKE_CURRENT_SOURCE_DIR}/fabric/manager/exports.map)
add_library(diapause_rdma_manager SHARED ${manager_sources} fabric/connection_message.cpp base/result.cpp)
target_include_directories(diapause_rdma_manager PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${IBVERBS_INCLUDE})
target_link_libraries(diapause_rdma_manager PRIVATE fmt::fmt-header-only tl::expected Threads::Threads ${IBVERBS_LIBRARY})
target_link_options(diapause_rdma_manager PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,nodelete
                    -Wl,--version-script=${manager_exports})
set_property(TARGET diapause_rdma_manager APPEND PROPERTY LINK_DEPENDS ${manager_exports})
set_target_properties(diapause_rdma_manager PROPERTIES OUTPUT_NAME rdmacm SOVERSION 1)

foreach(target IN ITEMS diapause_verbs diapause_stand_in diapause_rdma_manager)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${verbs_folder} BUILD_RPATH_USE_ORIGIN ON
                        SKIP_BUILD_RPATH ON INSTALL_RPATH $ORIGIN)
  target_link_options(${target} PRIVATE "-Wl,-rpath,$ORIGIN")
endforeach()
cmake_path(GET IBVERBS_LIBRARY PARENT_PATH ibverbs_folder)
file(MAKE_DIRECTORY ${verbs_folder})
set(verbs_link ${verbs_folder}/libdiapause_real_ibverbs.so.1)
file(CREATE_LINK ${ibverbs_folder}/libibverbs.so.1 ${verbs_link} SYMBOLIC)
set(verbs_link ${verbs_link} PARENT_SCOPE) # installed by cmake/install.cmake
