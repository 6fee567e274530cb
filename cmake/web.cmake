# What runs in a browser (web/): whether it is built, which emscripten does within the main build, in a
# build folder of its own. Sets ATTNSCOPE_WEB_BUILT, and where that is true ATTNSCOPE_WEB_FOLDER, in which the
# target attnscope_web leaves the files of ATTNSCOPE_WEB_FILES.
set(ATTNSCOPE_WEB "AUTO" CACHE STRING "Build what runs in a browser: AUTO (where there is emscripten), ON or OFF")
set_property(CACHE ATTNSCOPE_WEB PROPERTY STRINGS AUTO ON OFF)
set(ATTNSCOPE_WEB_BUILT FALSE)

if(NOT ATTNSCOPE_WEB MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ATTNSCOPE_WEB is ${ATTNSCOPE_WEB}: expected AUTO, ON or OFF.")
endif()
if(ATTNSCOPE_WEB STREQUAL "OFF")
  return()
endif()
set(missing "")
if(ATTNSCOPE_SANITIZE)
  set(missing "a build without sanitizers")
else()
  find_program(ATTNSCOPE_EMCC emcc)
  mark_as_advanced(ATTNSCOPE_EMCC)
  if(NOT ATTNSCOPE_EMCC)
    set(missing "emscripten (scripts/setup web installs it)")
  else()
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env NODE_PATH=/usr/share/nodejs "${ATTNSCOPE_EMCC}" --version
                    OUTPUT_VARIABLE version RESULT_VARIABLE failed ERROR_QUIET)
    string(REGEX MATCH "^emcc [^\n]* ([0-9]+\\.[0-9]+\\.[0-9]+)" version "${version}")
    set(version "${CMAKE_MATCH_1}")
    if(failed OR NOT version OR version VERSION_LESS 3.1.6)
      set(missing "emscripten 3.1.6 or later, which ${ATTNSCOPE_EMCC} is not (-DATTNSCOPE_EMCC=FILE)")
    endif()
  endif()
endif()
if(missing)
  if(ATTNSCOPE_WEB STREQUAL "ON")
    message(FATAL_ERROR "ATTNSCOPE_WEB is ON, which needs ${missing}.")
  endif()
  message(STATUS "Web: the page is left out, which needs ${missing}")
  return()
endif()

# emscripten lies where its compiler's name leads to, and its toolchain file below that.
get_filename_component(root "${ATTNSCOPE_EMCC}" REALPATH)
get_filename_component(root "${root}" DIRECTORY)
set(ATTNSCOPE_EMSCRIPTEN_ROOT "${root}" CACHE PATH "emscripten's folder, in which cmake/Modules lies")
mark_as_advanced(ATTNSCOPE_EMSCRIPTEN_ROOT)
set(toolchain "${ATTNSCOPE_EMSCRIPTEN_ROOT}/cmake/Modules/Platform/Emscripten.cmake")
if(NOT EXISTS "${toolchain}")
  message(FATAL_ERROR "${toolchain} is not there: say where emscripten is with -DATTNSCOPE_EMSCRIPTEN_ROOT=FOLDER, or "
                      "configure with -DATTNSCOPE_WEB=OFF.")
endif()

set(ATTNSCOPE_WEB_BUILT TRUE)
set(ATTNSCOPE_WEB_FOLDER "${PROJECT_BINARY_DIR}/web/bin")
set(ATTNSCOPE_WEB_FILES engine.wasm)
# The page with the window is compiled with ImGui, whose sources scripts/setup web fetches.
set(cache "$ENV{XDG_CACHE_HOME}")
if(NOT cache)
  set(cache "$ENV{HOME}/.cache")
endif()
file(GLOB fetched "${cache}/attnscope-web/imgui-*")
find_path(ATTNSCOPE_IMGUI_SOURCES imgui_draw.cpp PATHS ${fetched} NO_DEFAULT_PATH
          DOC "The sources of Dear ImGui 1.86, as its project distributes them")
mark_as_advanced(ATTNSCOPE_IMGUI_SOURCES)
set(ATTNSCOPE_WEB_PAGE "")
if(ATTNSCOPE_IMGUI_SOURCES)
  set(page index.html window.css page.js window.js window.wasm)
  list(APPEND ATTNSCOPE_WEB_FILES ${page})
  list(TRANSFORM page PREPEND "${ATTNSCOPE_WEB_FOLDER}/" OUTPUT_VARIABLE ATTNSCOPE_WEB_PAGE)
  set(ATTNSCOPE_WEB_PAGE_TARGET attnscope_web)
elseif(ATTNSCOPE_WEB STREQUAL "ON")
  message(FATAL_ERROR "ATTNSCOPE_WEB is ON, which needs the sources of ImGui (scripts/setup web fetches them, or "
                      "-DATTNSCOPE_IMGUI_SOURCES=FOLDER).")
else()
  message(STATUS "Web: the window is left out, which needs the sources of ImGui (scripts/setup web)")
endif()
# Debian's emscripten runs on any node, whose own scripts are found by this path alone; compiled files
# are kept by the cache that the main build has: emscripten puts it before the compiler itself, which is
# known again wherever it is called from.
set(environment --unset=CMAKE_CXX_COMPILER_LAUNCHER NODE_PATH=/usr/share/nodejs "NINJA_STATUS=[page %f/%t] ")
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  list(APPEND environment "EM_COMPILER_WRAPPER=${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
set(byproducts ${ATTNSCOPE_WEB_FILES})
list(TRANSFORM byproducts PREPEND "${ATTNSCOPE_WEB_FOLDER}/")
include(ExternalProject)
ExternalProject_Add(attnscope_web
  PREFIX "${PROJECT_BINARY_DIR}/web/project"
  SOURCE_DIR "${PROJECT_SOURCE_DIR}"
  BINARY_DIR "${PROJECT_BINARY_DIR}/web"
  CONFIGURE_COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${CMAKE_COMMAND}" -G "${CMAKE_GENERATOR}"
                    -S <SOURCE_DIR> -B <BINARY_DIR> "-DCMAKE_TOOLCHAIN_FILE=${toolchain}"
                    -DCMAKE_BUILD_TYPE=Release -DATTNSCOPE_PRECOMPILE=OFF
                    -DATTNSCOPE_UNITY=${ATTNSCOPE_UNITY} -DATTNSCOPE_WERROR=${ATTNSCOPE_WERROR}
                    "-DATTNSCOPE_IMGUI_SOURCES=${ATTNSCOPE_IMGUI_SOURCES}"
  BUILD_COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${CMAKE_COMMAND}" --build <BINARY_DIR>
  INSTALL_COMMAND ""
  BUILD_ALWAYS ON  # which files have changed is known in there
  BUILD_BYPRODUCTS ${byproducts}
  USES_TERMINAL_BUILD ON)
message(STATUS "Web: emscripten ${version}, ${ATTNSCOPE_EMSCRIPTEN_ROOT}")
