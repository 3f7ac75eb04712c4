# Puts the C++ libraries into the command itself, where that is possible: a short command spends much of its time on loading them and
# looking up their symbols.
if(DIAPAUSE_SANITIZE OR fmt_VERSION VERSION_LESS 9 OR fmt_VERSION VERSION_GREATER_EQUAL 10)
  return()
endif()
include(CheckCXXSourceCompiles)
set(libraries_inside -static-libstdc++ -static-libgcc -Wl,--as-needed)
set(CMAKE_REQUIRED_LINK_OPTIONS ${libraries_inside})
check_cxx_source_compiles("#include <string>\nint main(int, char** texts) { return std::string(texts[0]).empty(); }"
                          DIAPAUSE_HAS_STATIC_LIBSTDCXX)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(NOT DIAPAUSE_HAS_STATIC_LIBSTDCXX)
  return()
endif()
# The shared libraries stay in the line that links, where they are not needed any more.
target_sources(diapause_cli PRIVATE cli/inside/format.cpp cli/inside/toml.cpp)
set_source_files_properties(cli/inside/format.cpp cli/inside/toml.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_link_options(diapause_cli PRIVATE ${libraries_inside})
