# attnscope_find_emscripten(): where emscripten is and how it is called, for the window in a page (web.cmake) and
# the engine of pages (engine.cmake). Sets, for the caller,
#   emscripten_missing      what is needed in its place, in words; empty where it is there
#   emscripten_version      3.1.6; with that of its compiler in emscripten_compiler ("Debian clang version 14.0.6")
#   emscripten_toolchain    its toolchain file
#   emscripten_environment  words for `cmake -E env`. LAUNCHER is a compiler launcher, or empty.
# What a cache keeps of it are ATTNSCOPE_EMCC and ATTNSCOPE_EMSCRIPTEN_ROOT.
macro(attnscope_find_emscripten launcher)
  set(emscripten_missing "")
  # Debian's emscripten runs on any node, whose own scripts are found by this path alone.
  set(emscripten_environment --unset=CMAKE_CXX_COMPILER_LAUNCHER --unset=CFLAGS --unset=CXXFLAGS --unset=LDFLAGS
      --unset=EMCC_CFLAGS NODE_PATH=/usr/share/nodejs)
  # Compiled files are kept by the cache that the main build has: emscripten puts it before the compiler itself,
  # which is known again wherever it is called from.
  if("${launcher}" MATCHES "ccache")
    list(APPEND emscripten_environment "EM_COMPILER_WRAPPER=${launcher}")
  endif()
  find_program(ATTNSCOPE_EMCC emcc)
  mark_as_advanced(ATTNSCOPE_EMCC)
  if(NOT ATTNSCOPE_EMCC)
    set(emscripten_missing "emscripten (scripts/setup web installs it)")
  else()
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env ${emscripten_environment} "${ATTNSCOPE_EMCC}" -v
                    OUTPUT_VARIABLE emscripten_words ERROR_VARIABLE emscripten_words RESULT_VARIABLE emscripten_failed)
    string(REGEX MATCH "emcc [^\n]* ([0-9]+\\.[0-9]+\\.[0-9]+)" emscripten_version "${emscripten_words}")
    set(emscripten_version "${CMAKE_MATCH_1}")
    string(REGEX MATCH "[^\n]*clang version [^ \n]+" emscripten_compiler "${emscripten_words}")
    if(emscripten_failed OR NOT emscripten_version OR emscripten_version VERSION_LESS 3.1.6)
      set(emscripten_missing "emscripten 3.1.6 or later, which ${ATTNSCOPE_EMCC} is not (-DATTNSCOPE_EMCC=FILE)")
    endif()
  endif()
  if(NOT emscripten_missing)
    # emscripten lies where its compiler's name leads to, and its toolchain file below that.
    get_filename_component(emscripten_root "${ATTNSCOPE_EMCC}" REALPATH)
    get_filename_component(emscripten_root "${emscripten_root}" DIRECTORY)
    set(ATTNSCOPE_EMSCRIPTEN_ROOT "${emscripten_root}" CACHE PATH
        "emscripten's folder, in which cmake/Modules lies")
    mark_as_advanced(ATTNSCOPE_EMSCRIPTEN_ROOT)
    set(emscripten_toolchain "${ATTNSCOPE_EMSCRIPTEN_ROOT}/cmake/Modules/Platform/Emscripten.cmake")
    if(NOT EXISTS "${emscripten_toolchain}")
      set(emscripten_missing "${emscripten_toolchain} (-DATTNSCOPE_EMSCRIPTEN_ROOT=FOLDER says where emscripten is)")
    endif()
  endif()
endmacro()
