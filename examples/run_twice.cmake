# Runs an example twice in an empty directory: the first run must stop half-way, the second must continue and succeed.
#   cmake -DDIRECTORY=<scratch> -DCOMMAND=<program;arguments> -P run_twice.cmake
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
set(ENV{DIAPAUSE_CONFIG} ${DIRECTORY}/diapause.toml)
file(WRITE ${DIRECTORY}/diapause.toml "[memory]\npath = \"${DIRECTORY}/memory\"\n[global]\npath = \"${DIRECTORY}/global\"\n")

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
