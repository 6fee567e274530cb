# Writes a C++ file with a build's own facts, and leaves one that says the same alone, so that a commit
# compiles no other file anew.
# cmake -DSOURCE=… -DCUDA=true|false -DLACKS="cuda mpi …" -DOUTPUT=… -P build_facts.cmake
# SOURCE: a checkout of the sources; they may also be a folder without git, or lie in another's.
set(commit "")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE}" rev-parse --show-toplevel --short=8 HEAD
                  OUTPUT_VARIABLE told ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(source "${SOURCE}" REALPATH)
  if(NOT failed AND told MATCHES "^(.*)\n([0-9a-f]+)$" AND CMAKE_MATCH_1 STREQUAL source)
    set(commit "${CMAKE_MATCH_2}")
  endif()
endif()
string(REGEX REPLACE "([a-z]+)" "\"\\1\"" lacks "${LACKS}")
string(REPLACE " " ", " lacks "${lacks}")
set(text "#include \"cli/program_version.h\"

namespace attnscope {

BuildFacts build_facts() { return {\"${commit}\", ${CUDA}, {${lacks}}}; }

}  // namespace attnscope
")
set(written "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" written)
endif()
if(NOT written STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
