# Runs an example in an empty directory: the first run must stop half-way, the second must continue and succeed, and if
# that one finishes its job, the third must begin anew.
#   cmake -DDIRECTORY=<scratch> -DCOMMAND=<program;arguments> -P run_twice.cmake
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
# The directories are given by variables, which also count for programs with a configuration of their own.
set(ENV{DIAPAUSE_MEMORY_PATH} ${DIRECTORY}/memory)
set(ENV{DIAPAUSE_GLOBAL_PATH} ${DIRECTORY}/global)

execute_process(COMMAND ${COMMAND} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE first OUTPUT_VARIABLE first_output)
message(STATUS "first run: status ${first}\n${first_output}")
if(NOT first EQUAL 3)
  message(FATAL_ERROR "the first run should stop half-way with status 3, not end with ${first}")
endif()

execute_process(COMMAND ${COMMAND} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE second OUTPUT_VARIABLE second_output)
message(STATUS "second run: status ${second}\n${second_output}")
if(NOT second EQUAL 0)
  message(FATAL_ERROR "the second run failed with ${second}")
endif()
if(NOT second_output MATCHES "continuing after step [1-9]")
  message(FATAL_ERROR "the second run started anew")
endif()

if(NOT DEFINED FINISHES_AT OR FINISHES_AT EQUAL -1)
  return()
endif()
execute_process(COMMAND ${COMMAND} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE third OUTPUT_VARIABLE third_output)
message(STATUS "third run: status ${third}\n${third_output}")
if(NOT third EQUAL 3 OR third_output MATCHES "continuing")
  message(FATAL_ERROR "the third run should begin anew and stop half-way with status 3, not end with ${third}")
endif()
