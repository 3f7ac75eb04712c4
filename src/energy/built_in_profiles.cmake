# Puts the texts of profiles/*.toml into the library, so that it knows them wherever it is installed.
file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiles/*.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profiles})
set(profile_entries)
foreach(profile IN LISTS profiles)
  cmake_path(GET profile STEM name)
  file(READ ${profile} text)
  string(APPEND profile_entries "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
list(LENGTH profiles profile_count)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/energy/built_in_profiles.hpp.in
               ${CMAKE_CURRENT_BINARY_DIR}/generated/energy/built_in_profiles.hpp @ONLY)
target_include_directories(diapause_energy PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
