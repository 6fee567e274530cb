# Flags that every target of the project shares, and the one way to make a folder's library.
# attnscope_warnings: without what the sanitizers add.
add_library(attnscope_warnings INTERFACE)
target_compile_options(attnscope_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps within std::string's own concatenation (its bug 105651).
  target_compile_options(attnscope_warnings INTERFACE -Wno-restrict)
endif()
if(ATTNSCOPE_WERROR)
  target_compile_options(attnscope_warnings INTERFACE -Werror)
endif()
add_library(attnscope_flags INTERFACE)
target_link_libraries(attnscope_flags INTERFACE attnscope_warnings)
# GCC looks for memory to free less often: an eighth less time for units of many headers, and a quarter more
# memory.
target_compile_options(attnscope_flags INTERFACE
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=400000>)
if(ATTNSCOPE_SANITIZE)
  target_compile_options(attnscope_flags INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all
                         # GCC sees uninitialised use in the code that it instrumented itself.
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         # What a target goes without: its property, because options of its own
                         # come before these.
                         $<$<BOOL:$<TARGET_PROPERTY:ATTNSCOPE_NO_SANITIZE>>:-fno-sanitize=$<TARGET_PROPERTY:ATTNSCOPE_NO_SANITIZE>>)
  target_link_options(attnscope_flags INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND ATTNSCOPE_SANITIZE MATCHES "address")
    # What UndefinedBehaviorSanitizer says of each place in the code are millions of addresses: of a
    # program that may lie anywhere, the loader adjusts them all at each start.
    string(APPEND CMAKE_EXE_LINKER_FLAGS " -no-pie")
  endif()
endif()

# What spends its time in files and text gains nothing from builds that are optimised for
# AddressSanitizer, which take half as long again to compile where a library is all headers (JSON, the
# parser). For ThreadSanitizer, which watches no variable that is kept in a register, optimised ones
# take less. Nor does UndefinedBehaviorSanitizer look at each pointer there, which takes a third of the
# compiler's time: AddressSanitizer sees what a wrong one does. To be called before attnscope_precompile.
set(ATTNSCOPE_POINTER_CHECKS alignment nonnull-attribute null object-size pointer-overflow
    returns-nonnull-attribute vptr)
function(attnscope_skip_sanitized_optimisation target)
  if(ATTNSCOPE_SANITIZE AND NOT ATTNSCOPE_SANITIZE MATCHES "thread")
    target_compile_options(${target} PRIVATE -O0)
    list(JOIN ATTNSCOPE_POINTER_CHECKS "," checks)
    set_target_properties(${target} PROPERTIES ATTNSCOPE_NO_SANITIZE "${checks}")
  endif()
endfunction()

# The same of optimised builds: a quarter less to compile. To be called before attnscope_precompile.
function(attnscope_optimise_lightly target)
  if(NOT ATTNSCOPE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# The headers that most files of a target include again are parsed once; targets that name the same
# ones share the result where they are compiled alike: at the same level, watched by the same
# sanitizers.
# GCC compiles whatever uses it by the options that it was made with: a target with options of its
# own that change code, like -ffp-contract, goes without (DISABLE_PRECOMPILE_HEADERS).
# That each file includes what it uses is seen where clang-tidy compiles it (scripts/lint), and for
# headers by headers_alone.
# attnscope_precompile(target HEADERS…): to be called when the target's options are complete.
function(attnscope_precompile target)
  if(NOT ATTNSCOPE_PRECOMPILE)
    return()
  endif()
  set(headers <algorithm> <cmath> <filesystem> <functional> <map> <memory> <mutex> <optional> <span>
              <string> <vector> ${ARGN})
  get_target_property(options ${target} COMPILE_OPTIONS)
  string(REGEX MATCHALL "-O[0-3]" levels "${options}")
  get_target_property(unwatched ${target} ATTNSCOPE_NO_SANITIZE)
  set(part)
  # Macros that a precompiled header was made with have to be those of whoever uses it.
  get_target_property(linked ${target} LINK_LIBRARIES)
  if("attnscope::cuda_seam" IN_LIST linked)
    string(APPEND part _seam)
  endif()
  # A folder's own flags, too (tests/cli).
  string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" flags)
  string(MAKE_C_IDENTIFIER "ATTNSCOPE_PRECOMPILED_${levels}_${unwatched}_${part}_${${flags}}_${ARGN}"
         owner_property)
  get_property(owner GLOBAL PROPERTY ${owner_property})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${headers})
    set_property(GLOBAL PROPERTY ${owner_property} ${target})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Lets ccache see through them. What a precompiled header forgets are the pragmas by which
    # the standard library's strings keep GCC 12's false alarms quiet.
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds
                           -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# attnscope_unite(OUT NAME SOURCES…): OUT is what is to be compiled for sources of one library. Sixteen at a
# time are compiled as one: what headers and templates cost is paid once for them all. What is local to a
# file must therefore have a name of its own within its library. Sources with options of their own, and
# those that SKIP_UNITY_BUILD_INCLUSION, are compiled alone: these must be set before. NAME is that of the
# units. Unlike CMake's own, they name files by their paths below the project, so that a compiler cache
# knows those of another clone or build.
function(attnscope_unite out name)
  set(alone "")
  set(united "")
  foreach(file IN LISTS ARGN)
    get_source_file_property(options "${file}" COMPILE_OPTIONS)
    get_source_file_property(definitions "${file}" COMPILE_DEFINITIONS)
    get_source_file_property(skipped "${file}" SKIP_UNITY_BUILD_INCLUSION)
    if(options OR definitions OR skipped OR NOT ATTNSCOPE_UNITY)
      list(APPEND alone "${file}")
    else()
      file(RELATIVE_PATH file "${PROJECT_SOURCE_DIR}" "${file}")
      list(APPEND united "${file}")
    endif()
  endforeach()
  list(LENGTH united files)
  math(EXPR groups "(${files} + 15) / 16")
  # Of equal size, rather than sixteen and a rest.
  foreach(group RANGE 1 ${groups})
    if(files EQUAL 0)
      break()
    endif()
    math(EXPR first "(${group} - 1) * ${files} / ${groups}")
    math(EXPR count "${group} * ${files} / ${groups} - ${first}")
    list(SUBLIST united ${first} ${count} part)
    list(TRANSFORM part REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN part "" includes)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/units/${name}_${group}.cpp")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "${includes}" @ONLY)
    list(APPEND alone "${unit}")
  endforeach()
  set(${out} ${alone} PARENT_SCOPE)
endfunction()

# Libraries of text, files and panes are light, but for those that compute pixels. The last list names the
# libraries that are fast enough without optimisation where a sanitizer slows all down.
set(ATTNSCOPE_LIGHT_LIBRARIES "^(cli|io_.*|viewer_.*|web_figure|web_report)$")
set(ATTNSCOPE_PIXEL_LIBRARIES "^(io_pictures|viewer_tiles|viewer_textures)$")
# Files of two rooms of these are never compiled as one: their own code takes the compiler's time rather than
# headers (a tenth would be gained in core), and GCC 12 sees frees that are none in united pictures.
set(ATTNSCOPE_ROOMS_APART "^(core|io_pictures|viewer_.*)$")
set(ATTNSCOPE_LIGHT_SANITIZED_LIBRARIES "^(cli|io_.*|viewer_view|viewer_script|viewer_remote|viewer_remote_web)$")

# The CUDA module and Python's have libraries in them and need code that may lie anywhere. Programs take the
# same code, so that it is compiled once for all of them; calls within a file stay open to inlining, as in
# a program's own code, and are as fast.
function(attnscope_position_independent target)
  if(NOT ATTNSCOPE_SANITIZE AND NOT EMSCRIPTEN)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
endfunction()

# attnscope_library(NAME SOURCES …  PUBLIC targets…): target attnscope_NAME,
# alias attnscope::NAME. Includes are written from the project's root: "core/base/error.h".
function(attnscope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC" ${ARGN})
  add_library(attnscope_${name} STATIC ${ARG_SOURCES})
  add_library(attnscope::${name} ALIAS attnscope_${name})
  target_include_directories(attnscope_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(attnscope_${name} PUBLIC ${ARG_PUBLIC} PRIVATE attnscope_flags)
  attnscope_position_independent(attnscope_${name})
  set(headers "")
  if(name MATCHES "${ATTNSCOPE_LIGHT_LIBRARIES}" AND NOT name MATCHES "${ATTNSCOPE_PIXEL_LIBRARIES}")
    attnscope_optimise_lightly(attnscope_${name})
    # Most of them need both: all share one.
    set(headers <fmt/format.h> <nlohmann/json.hpp>)
  endif()
  if(name MATCHES "${ATTNSCOPE_LIGHT_SANITIZED_LIBRARIES}")
    attnscope_skip_sanitized_optimisation(attnscope_${name})
  endif()
  # A header is shared with others where a file of this library makes it.
  foreach(file IN LISTS ARG_SOURCES)
    get_source_file_property(skips "${file}" SKIP_PRECOMPILE_HEADERS)
    if(NOT skips)
      attnscope_precompile(attnscope_${name} ${headers})
      break()
    endif()
  endforeach()
endfunction()
