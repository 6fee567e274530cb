# The window in a page (web/window): whether it is built, which emscripten does within the main build, in a
# build folder of its own. Sets ATTNSCOPE_WEB_PAGE, the page's files, and ATTNSCOPE_WEB_PAGE_TARGET, which makes them;
# both are empty in a build without the page. The engine of pages in files needs none of this (engine.cmake).
set(ATTNSCOPE_WEB "AUTO" CACHE STRING
    "Build the page of attnscope serve: AUTO (where there are emscripten and ImGui's sources), ON or OFF")
set_property(CACHE ATTNSCOPE_WEB PROPERTY STRINGS AUTO ON OFF)
set(ATTNSCOPE_WEB_PAGE "")
set(ATTNSCOPE_WEB_PAGE_TARGET "")

if(NOT ATTNSCOPE_WEB MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ATTNSCOPE_WEB is ${ATTNSCOPE_WEB}: expected AUTO, ON or OFF.")
endif()
if(ATTNSCOPE_WEB STREQUAL "OFF")
  return()
endif()
if(ATTNSCOPE_SANITIZE)
  set(missing "a build without sanitizers")
else()
  include(cmake/emscripten.cmake)
  attnscope_find_emscripten("${CMAKE_CXX_COMPILER_LAUNCHER}")
  set(missing "${emscripten_missing}")
endif()
if(NOT missing)
  # The page is compiled with ImGui, whose sources scripts/setup web fetches.
  set(cache "$ENV{XDG_CACHE_HOME}")
  if(NOT cache)
    set(cache "$ENV{HOME}/.cache")
  endif()
  file(GLOB fetched "${cache}/attnscope-web/imgui-*")
  find_path(ATTNSCOPE_IMGUI_SOURCES imgui_draw.cpp PATHS ${fetched} NO_DEFAULT_PATH
            DOC "The sources of Dear ImGui 1.86, as its project distributes them")
  mark_as_advanced(ATTNSCOPE_IMGUI_SOURCES)
  if(NOT ATTNSCOPE_IMGUI_SOURCES)
    set(missing "the sources of ImGui (scripts/setup web fetches them, or -DATTNSCOPE_IMGUI_SOURCES=FOLDER)")
  endif()
endif()
if(missing)
  if(ATTNSCOPE_WEB STREQUAL "ON")
    message(FATAL_ERROR "ATTNSCOPE_WEB is ON, which needs ${missing}.")
  endif()
  message(STATUS "Web: the page of attnscope serve is left out, which needs ${missing}")
  return()
endif()

set(ATTNSCOPE_WEB_PAGE index.html window.css page.js window.js window.wasm)
list(TRANSFORM ATTNSCOPE_WEB_PAGE PREPEND "${PROJECT_BINARY_DIR}/web/bin/")
set(ATTNSCOPE_WEB_PAGE_TARGET attnscope_web)
set(environment ${emscripten_environment} "NINJA_STATUS=[page %f/%t] ")
include(ExternalProject)
ExternalProject_Add(attnscope_web
  PREFIX "${PROJECT_BINARY_DIR}/web/project"
  SOURCE_DIR "${PROJECT_SOURCE_DIR}"
  BINARY_DIR "${PROJECT_BINARY_DIR}/web"
  CONFIGURE_COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${CMAKE_COMMAND}" -G "${CMAKE_GENERATOR}"
                    -S <SOURCE_DIR> -B <BINARY_DIR> "-DCMAKE_TOOLCHAIN_FILE=${emscripten_toolchain}"
                    -DCMAKE_BUILD_TYPE=Release -DATTNSCOPE_PRECOMPILE=OFF
                    -DATTNSCOPE_UNITY=${ATTNSCOPE_UNITY} -DATTNSCOPE_WERROR=${ATTNSCOPE_WERROR}
                    "-DATTNSCOPE_IMGUI_SOURCES=${ATTNSCOPE_IMGUI_SOURCES}"
  BUILD_COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${CMAKE_COMMAND}" --build <BINARY_DIR>
  INSTALL_COMMAND ""
  BUILD_ALWAYS ON  # which files have changed is known in there
  BUILD_BYPRODUCTS ${ATTNSCOPE_WEB_PAGE}
  USES_TERMINAL_BUILD ON)
message(STATUS "Web: emscripten ${emscripten_version}, ${ATTNSCOPE_EMSCRIPTEN_ROOT}")
