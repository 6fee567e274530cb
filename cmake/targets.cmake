# Flags that every target of the project shares, and the one way to make a folder's library.
add_library(attnscope_flags INTERFACE)
target_compile_options(attnscope_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps within std::string's own concatenation (its bug 105651).
  target_compile_options(attnscope_flags INTERFACE -Wno-restrict)
endif()
if(ATTNSCOPE_WERROR)
  target_compile_options(attnscope_flags INTERFACE -Werror)
endif()
if(ATTNSCOPE_SANITIZE)
  target_compile_options(attnscope_flags INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all
                         # GCC sees uninitialised use in the code that it instrumented itself.
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         # What a target goes without: its property, because options of its own
                         # come before these.
                         $<$<BOOL:$<TARGET_PROPERTY:ATTNSCOPE_NO_SANITIZE>>:-fno-sanitize=$<TARGET_PROPERTY:ATTNSCOPE_NO_SANITIZE>>)
  target_link_options(attnscope_flags INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE})
endif()

# What spends its time in files and text gains nothing from optimised sanitizer builds, which take
# two to three times as long to compile where a library is all headers (JSON, the parser).
function(attnscope_skip_sanitized_optimisation target)
  if(ATTNSCOPE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# The headers that every file of a target includes again are parsed once in sanitizer builds, which
# check behaviour; the others compile each file from its own includes, and so check those.
# attnscope_precompile(target HEADERS…)
function(attnscope_precompile target)
  if(ATTNSCOPE_SANITIZE)
    target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <functional> <map>
                              <memory> <mutex> <optional> <span> <string> <vector> ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Lets ccache see through them.
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()

# attnscope_library(NAME SOURCES …  PUBLIC targets…  PRIVATE targets…): target attnscope_NAME,
# alias attnscope::NAME. Includes are written from the project's root: "core/base/error.h".
function(attnscope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(attnscope_${name} STATIC ${ARG_SOURCES})
  add_library(attnscope::${name} ALIAS attnscope_${name})
  target_include_directories(attnscope_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(attnscope_${name} PUBLIC ${ARG_PUBLIC} PRIVATE attnscope_flags ${ARG_PRIVATE})
  list(FIND ARG_PRIVATE nlohmann_json::nlohmann_json json)
  if(json EQUAL -1)
    attnscope_precompile(attnscope_${name})
  else()
    attnscope_precompile(attnscope_${name} <fmt/format.h> <nlohmann/json.hpp>)
  endif()
endfunction()
