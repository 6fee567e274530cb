# A machine that has emscripten, or not, but no sources of ImGui: the program is built without its page, and
# -DATTNSCOPE_WEB=ON says what is missing.
# cmake -DROOT=… -DFOLDER=… -P check_no_imgui.cmake
cmake_policy(VERSION 3.21)
# configure(WEB): its exit code in `code`, its words in `said`.
macro(configure web)
  file(REMOVE_RECURSE "${FOLDER}")
  file(MAKE_DIRECTORY "${FOLDER}/cache")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "XDG_CACHE_HOME=${FOLDER}/cache" "${CMAKE_COMMAND}" -S "${ROOT}"
                          -B "${FOLDER}/build" -DATTNSCOPE_WEB=${web} -DATTNSCOPE_TESTS=OFF -DATTNSCOPE_VIEWER=OFF
                          -DATTNSCOPE_CUDA=OFF -DATTNSCOPE_MPI=OFF
                  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE code)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
endmacro()

configure(AUTO)
if(NOT code EQUAL 0 OR NOT said MATCHES "Web: the page of attnscope serve is left out, which needs .*scripts/setup web")
  message(FATAL_ERROR "AUTO: exit code ${code}: ${said}")
endif()
# Its steps would be in the build, which could not be done.
if(EXISTS "${FOLDER}/build/web/project")
  message(FATAL_ERROR "AUTO: a build without the sources of ImGui has the page's steps in it")
endif()
configure(ON)
if(code EQUAL 0 OR NOT said MATCHES "ATTNSCOPE_WEB is ON, which needs .*scripts/setup web")
  message(FATAL_ERROR "ON: exit code ${code}: ${said}")
endif()
