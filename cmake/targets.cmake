# Flags that every target of the project shares, and the one way to make a folder's library.
add_library(attnscope_flags INTERFACE)
target_compile_options(attnscope_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(ATTNSCOPE_WERROR)
  target_compile_options(attnscope_flags INTERFACE -Werror)
endif()
if(ATTNSCOPE_SANITIZE)
  target_compile_options(attnscope_flags INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all
                         # GCC sees uninitialised use in the code that it instrumented itself.
                         -Wno-maybe-uninitialized)
  target_link_options(attnscope_flags INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE})
endif()

# attnscope_library(NAME SOURCES …  PUBLIC targets…  PRIVATE targets…): target attnscope_NAME,
# alias attnscope::NAME. Includes are written from the project's root: "core/error.h".
function(attnscope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(attnscope_${name} STATIC ${ARG_SOURCES})
  add_library(attnscope::${name} ALIAS attnscope_${name})
  target_include_directories(attnscope_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(attnscope_${name} PUBLIC ${ARG_PUBLIC} PRIVATE attnscope_flags ${ARG_PRIVATE})
endfunction()
