# Everything the project needs from outside, each as one target. Config packages are tried before
# pkg-config, so that distributions and conda environments both work.
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is not here, by which libraries are found. On Debian `scripts/setup` installs all that "
                      "is needed; elsewhere docs/install.md lists it.")
endif()

# attnscope_need(FOUND WHAT PACKAGE [OPTION]): where FOUND is false, WHAT is missing, which Debian's PACKAGE
# brings. All that is missing is told at once.
set(missing "")
function(attnscope_need found what package)
  if(NOT found)
    set(line "\n  ${what} (Debian: ${package})")
    if(ARGN)
      string(APPEND line ", or say where it is with ${ARGN}")
    endif()
    set(missing "${missing}${line}" PARENT_SCOPE)
  endif()
endfunction()

# HDF5's static library where it is there, else the shared one. Debian's shared one loads thirty
# libraries (curl, OpenSSL, Kerberos …) for a driver that nothing here uses, which took as long as all
# else that a short command does; of the static one, --as-needed leaves them out.
option(ATTNSCOPE_STATIC_HDF5 "Link HDF5 statically where its static library is there" ON)
set(HDF5_USE_STATIC_LIBRARIES ${ATTNSCOPE_STATIC_HDF5})
find_package(HDF5 1.10 QUIET COMPONENTS C HL)
attnscope_need("${HDF5_FOUND}" "HDF5 1.10 or later, C and HL" libhdf5-dev)
set(needed_by_hdf5 ${HDF5_C_LIBRARIES})
list(FILTER needed_by_hdf5 EXCLUDE REGEX "/lib(hdf5|pthread|dl|m)[^/]*$")
add_library(attnscope_hdf5 INTERFACE)
target_link_libraries(attnscope_hdf5 INTERFACE hdf5::hdf5_hl hdf5::hdf5 ${needed_by_hdf5}
                      Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(attnscope_hdf5 INTERFACE "LINKER:--as-needed")

find_package(GIF 5.1 QUIET)
attnscope_need("${GIF_FOUND}" "giflib 5.1 or later" libgif-dev)
find_package(PNG QUIET)
attnscope_need("${PNG_FOUND}" libpng libpng-dev)
find_package(ZLIB QUIET)
attnscope_need("${ZLIB_FOUND}" zlib zlib1g-dev)

# Headers that are compiled where they are used. Debian's pkg-config file would add a library of them.
find_path(STB_INCLUDE_DIR stb_truetype.h PATH_SUFFIXES stb)
attnscope_need("${STB_INCLUDE_DIR}" stb_truetype.h libstb-dev -DSTB_INCLUDE_DIR=FOLDER)
add_library(attnscope_stb INTERFACE)
target_include_directories(attnscope_stb SYSTEM INTERFACE "${STB_INCLUDE_DIR}")

find_package(fmt QUIET)
attnscope_need("${fmt_FOUND}" fmt libfmt-dev)

pkg_check_modules(hwy QUIET IMPORTED_TARGET libhwy)
attnscope_need("${hwy_FOUND}" "Highway 1.0.3 or later" libhwy-dev)
pkg_check_modules(xxhash QUIET IMPORTED_TARGET libxxhash)
attnscope_need("${xxhash_FOUND}" xxHash libxxhash-dev)

find_package(nlohmann_json QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  pkg_check_modules(nlohmann_json QUIET IMPORTED_TARGET nlohmann_json)
  attnscope_need("${nlohmann_json_FOUND}" "JSON for Modern C++" nlohmann-json3-dev)
  if(TARGET PkgConfig::nlohmann_json)
    add_library(nlohmann_json::nlohmann_json ALIAS PkgConfig::nlohmann_json)
  endif()
endif()

find_package(CLI11 QUIET)
if(NOT TARGET CLI11::CLI11)
  pkg_check_modules(CLI11 QUIET IMPORTED_TARGET CLI11)
  attnscope_need("${CLI11_FOUND}" CLI11 libcli11-dev)
  if(TARGET PkgConfig::CLI11)
    add_library(CLI11::CLI11 ALIAS PkgConfig::CLI11)
  endif()
endif()

# Boost, headers alone: Beast (HTTP and WebSocket of `attnscope serve`), Math, base64.
find_path(BOOST_INCLUDE_DIR boost/beast/websocket.hpp)
attnscope_need("${BOOST_INCLUDE_DIR}" "Boost 1.74 or later" libboost-dev -DBOOST_INCLUDE_DIR=FOLDER)
add_library(attnscope_boost INTERFACE)
target_include_directories(attnscope_boost SYSTEM INTERFACE "${BOOST_INCLUDE_DIR}")
target_link_libraries(attnscope_boost INTERFACE Threads::Threads)

# The window. Debian's Dear ImGui has its GLFW and OpenGL backends built in; elsewhere they may lie in
# libraries of their own, and IMGUI_LIBRARIES may name them all.
if(ATTNSCOPE_VIEWER)
  foreach(package glfw3 epoxy freetype2)
    pkg_check_modules(${package} QUIET IMPORTED_TARGET ${package})
  endforeach()
  set(without "; or leave out the window with -DATTNSCOPE_VIEWER=OFF")
  attnscope_need("${glfw3_FOUND}" "GLFW 3.3" "libglfw3-dev${without}")
  attnscope_need("${epoxy_FOUND}" "libepoxy" "libepoxy-dev${without}")
  attnscope_need("${freetype2_FOUND}" "FreeType" "libfreetype-dev${without}")
  pkg_check_modules(stb QUIET IMPORTED_TARGET stb)
  find_path(IMGUI_INCLUDE_DIR imgui.h PATH_SUFFIXES imgui)
  find_path(IMGUI_BACKENDS_INCLUDE_DIR imgui_impl_glfw.h
            HINTS "${IMGUI_INCLUDE_DIR}/backends" PATH_SUFFIXES imgui/backends backends)
  find_library(IMGUI_LIBRARY imgui)
  if(NOT IMGUI_INCLUDE_DIR OR NOT IMGUI_BACKENDS_INCLUDE_DIR OR NOT IMGUI_LIBRARY)
    attnscope_need(FALSE "Dear ImGui with its GLFW and OpenGL 3 backends" "libimgui-dev${without}")
  endif()
endif()
if(missing)
  message(FATAL_ERROR "Not found:${missing}\nOn Debian `scripts/setup` installs all that is needed; elsewhere "
                      "docs/install.md lists it.")
endif()
if(ATTNSCOPE_VIEWER)
  add_library(attnscope_imgui INTERFACE)
  target_include_directories(attnscope_imgui SYSTEM INTERFACE "${IMGUI_INCLUDE_DIR}"
                             "${IMGUI_BACKENDS_INCLUDE_DIR}")
  target_link_libraries(attnscope_imgui INTERFACE "${IMGUI_LIBRARY}" PkgConfig::freetype2
                        PkgConfig::glfw3 ${CMAKE_DL_LIBS})
  if(TARGET PkgConfig::stb)
    target_link_libraries(attnscope_imgui INTERFACE PkgConfig::stb)
  endif()
endif()
