# What the build for browsers needs from outside, by the names of cmake/rooms.cmake's third parties: headers
# of the distribution's packages alone, which are compiled where they are used. They are linked to a
# folder of their own: the system's whole include folder would hide emscripten's C library.
set(attnscope_web_headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${attnscope_web_headers}")

# attnscope_web_header(NAME PACKAGE): NAME, a header or a folder of headers, in that folder.
function(attnscope_web_header name package)
  find_path(ATTNSCOPE_WEB_${name} "${name}" PATHS ${ATTNSCOPE_WEB_HEADER_FOLDERS} /usr/include /usr/local/include
            NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(ATTNSCOPE_WEB_${name})
  if(NOT ATTNSCOPE_WEB_${name})
    message(FATAL_ERROR "The build for browsers needs ${name} of ${package} (-DATTNSCOPE_WEB_HEADER_FOLDERS=FOLDER "
                        "where it lies elsewhere)")
  endif()
  file(CREATE_LINK "${ATTNSCOPE_WEB_${name}}/${name}" "${attnscope_web_headers}/${name}" SYMBOLIC)
endfunction()
attnscope_web_header(hwy libhwy-dev)
attnscope_web_header(fmt libfmt-dev)
attnscope_web_header(nlohmann nlohmann-json3-dev)
attnscope_web_header(stb libstb-dev)

add_library(attnscope_web_libraries INTERFACE)
target_include_directories(attnscope_web_libraries SYSTEM INTERFACE "${attnscope_web_headers}")
add_library(Threads::Threads ALIAS attnscope_web_libraries)
add_library(PkgConfig::hwy ALIAS attnscope_web_libraries)
add_library(fmt::fmt ALIAS attnscope_web_libraries)
add_library(nlohmann_json::nlohmann_json ALIAS attnscope_web_libraries)
add_library(attnscope_stb INTERFACE)
target_include_directories(attnscope_stb SYSTEM INTERFACE "${attnscope_web_headers}/stb")

add_compile_definitions(FMT_HEADER_ONLY)
# One target, SIMD128; without its library, whose part is to find out which there are.
add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
add_compile_options(-msimd128 -fwasm-exceptions)
add_link_options(-fwasm-exceptions)
include_directories(BEFORE SYSTEM "${PROJECT_SOURCE_DIR}/web/shim")
