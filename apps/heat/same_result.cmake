# The heat program must end with the same bytes without Diapause, with it, and continued from a checkpoint.
#   cmake -DDIRECTORY=<scratch> "-DLAUNCH=<mpiexec;-n;3>" -DHEAT=<program> -DHEAT_PLAIN=<program> -P same_result.cmake
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
file(WRITE ${DIRECTORY}/heat.toml "[memory]\npath = \"${DIRECTORY}/memory\"\n[global]\npath = \"${DIRECTORY}/global\"\n\
[level1]\nevery_calls = 40\n")

function(run)
  execute_process(COMMAND ${LAUNCH} ${ARGN} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 0 OR NOT errors STREQUAL "")
    message(FATAL_ERROR "${ARGN}\nended with ${status} and said:\n${errors}")
  endif()
endfunction()

function(expect_same_as_plain name)
  file(SHA256 ${DIRECTORY}/plain.raw plain)
  file(SHA256 ${DIRECTORY}/${name} other)
  if(NOT plain STREQUAL other)
    message(FATAL_ERROR "${name} differs from plain.raw")
  endif()
endfunction()

set(options --size 100 --config heat.toml)
run(${HEAT_PLAIN} ${options} --iterations 300 --output plain.raw)
run(${HEAT} ${options} --iterations 300 --name whole --output whole.raw)
expect_same_as_plain(whole.raw)

# The job has finished: it has left nothing in memory, and another run computes the same again.
file(GLOB_RECURSE images ${DIRECTORY}/memory/*.img ${DIRECTORY}/global/*.img)
if(images)
  message(FATAL_ERROR "the finished run has left ${images}")
endif()
run(${HEAT} ${options} --iterations 300 --name whole --output again.raw --progress again.progress)
expect_same_as_plain(again.raw)
file(STRINGS ${DIRECTORY}/again.progress first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^1 300 ")
  message(FATAL_ERROR "a run after the end should begin anew, not with '${first_line}'")
endif()

# The first half does not end the job.
set(ENV{DIAPAUSE_FINISH_KEEP} all)
run(${HEAT} ${options} --iterations 150 --name halves)
run(${HEAT} ${options} --iterations 300 --name halves --output halves.raw --progress halves.progress)
expect_same_as_plain(halves.raw)
file(STRINGS ${DIRECTORY}/halves.progress first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^121 300 ")
  message(FATAL_ERROR "the second half should begin after the checkpoint of iteration 120, not with '${first_line}'")
endif()
