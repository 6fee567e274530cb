# Writes OUTPUT, which compiles the tests of FILES as one: all that they include first, so that headers
# come once and outside of any namespace, then each file in a namespace of its own, so that no name of
# one is in another's way. Paths are those below ROOT, so that a compiler cache knows the tests of
# another clone.
set(includes "")
set(bodies "")
set(number 0)
foreach(file IN LISTS FILES)
  file(STRINGS "${file}" odd REGEX "${ALONE}" LIMIT_COUNT 1)
  if(odd)
    message(FATAL_ERROR "${file} has \"${odd}\" now and must be compiled alone: call CMake again")
  endif()
  file(STRINGS "${file}" own REGEX "^#include ")
  list(APPEND includes ${own})
  file(RELATIVE_PATH file "${ROOT}" "${file}")
  math(EXPR number "${number} + 1")
  string(APPEND bodies "namespace unit_${number} {\n#include \"${file}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES includes)
string(REPLACE ";" "\n" includes "${includes}")
file(WRITE "${OUTPUT}" "${includes}\n${bodies}")
