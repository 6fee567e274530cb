# Two types of one name, defined in different files, are one type to the language and two to its
# compilers: whichever code is linked first is used for both, and nobody says so. So outside of
# anonymous namespaces a class, struct, union or enumeration has a name that no other file of the
# house or of its tests defines in the same namespace, and so has an inline variable.
#
# What is read is what clang-format leaves (scripts/lint): what stands in a namespace is not
# indented, and a namespace ends in a comment with its name. Members and local types are not looked at.
# cmake -DROOT=… -P check_types.cmake
cmake_policy(VERSION 3.21)
include("${ROOT}/cmake/house.cmake")
include("${ROOT}/cmake/rooms.cmake")
get_property(rooms GLOBAL PROPERTY ATTNSCOPE_ROOMS)
set(bad "")
set(types 0)

# note(FILE NAME): that the file defines it, in the namespaces of `within`.
macro(note file name)
  list(JOIN within "::" full)
  string(APPEND full "::${name}")
  if(NOT DEFINED "home_of_${full}")
    set("home_of_${full}" "${file}")
    math(EXPR types "${types} + 1")
  elseif(NOT "${home_of_${full}}" STREQUAL "${file}")
    list(APPEND bad "${full} is defined in ${home_of_${full}} and in ${file}")
  endif()
endmacro()

# check_file(FILE): its definitions.
macro(check_file file)
  file(STRINGS "${ROOT}/${file}" lines
       REGEX "^((inline )?namespace([ :A-Za-z0-9_]*) {|}  // namespace|inline [^(]|(template ?<.*> ?)?(class|struct|union|enum) )")
  set(within "")
  set(anonymous 0)
  foreach(line IN LISTS lines)
    # Attributes and alignments say nothing of the name.
    string(REGEX REPLACE "\\[\\[[^]]*\\]\\] ?|alignas\\([^)]*\\) ?|^template ?<.*> ?" "" line "${line}")
    if(line MATCHES "^(inline )?namespace ([A-Za-z0-9_:]*) ?{")
      set(name "${CMAKE_MATCH_2}")
      if(name STREQUAL "")
        set(name "(anonymous)")
        math(EXPR anonymous "${anonymous} + 1")
      endif()
      list(APPEND within "${name}")
    elseif(line MATCHES "^}  // namespace ?([A-Za-z0-9_:]*)")
      set(name "${CMAKE_MATCH_1}")
      if(name STREQUAL "")
        set(name "(anonymous)")
        math(EXPR anonymous "${anonymous} - 1")
      endif()
      set(innermost "")
      list(POP_BACK within innermost)
      if(NOT innermost STREQUAL name)
        list(APPEND bad "${file}: namespace ${name} ends where namespace ${innermost} has not ended with its name")
        break()
      endif()
    elseif(anonymous GREATER 0)
      # Names that no other file sees.
    elseif(line MATCHES "^(class|struct|union|enum)( class| struct)? ([A-Za-z_][A-Za-z0-9_:]*(<.*>)?)( final)?( :.*| {.*)?$")
      set(name "${CMAKE_MATCH_3}")
      if(NOT line MATCHES "^[^{]*;$")
        note("${file}" "${name}")
      endif()
    elseif(line MATCHES "^inline [^(={;]*[ *&>]([A-Za-z_][A-Za-z0-9_]*)(\\[[^]]*\\])*( =|{|;)")
      note("${file}" "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  if(within AND NOT bad)
    list(APPEND bad "${file}: namespace ${within} does not end with its name")
  endif()
endmacro()

set(files "")
foreach(room IN LISTS rooms)
  file(GLOB found RELATIVE "${ROOT}" "${ROOT}/${room}/*.h" "${ROOT}/${room}/*.cpp" "${ROOT}/${room}/*.cu")
  list(APPEND files ${found})
endforeach()
file(GLOB_RECURSE found RELATIVE "${ROOT}" "${ROOT}/tests/*.h" "${ROOT}/tests/*.cpp" "${ROOT}/bench/*.h" "${ROOT}/bench/*.cpp")
# The emulation's headers stand in the place of those that nvcc compiles.
list(FILTER found EXCLUDE REGEX "^tests/cuda/emulation/include/")
list(APPEND files ${found})
foreach(file IN LISTS files)
  check_file("${file}")
endforeach()

list(LENGTH files count)
if(types LESS 500)
  list(APPEND bad "of ${count} files only ${types} types were found: something is wrong with this test")
endif()
if(bad)
  list(JOIN bad "\n  " text)
  message(FATAL_ERROR "one name, one type:\n  ${text}")
endif()
message(STATUS "${types} types and inline variables in ${count} files have names of their own")
