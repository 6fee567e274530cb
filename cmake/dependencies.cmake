# Everything the project needs from outside, each as one target. Config packages are tried before
# pkg-config, so that distributions and conda environments both work.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# HDF5's static library where it is there, else the shared one. Debian's shared one loads thirty
# libraries (curl, OpenSSL, Kerberos …) for a driver that nothing here uses, which took as long as all
# else that a short command does; of the static one, --as-needed leaves them out.
option(ATTNSCOPE_STATIC_HDF5 "Link HDF5 statically where its static library is there" ON)
set(HDF5_USE_STATIC_LIBRARIES ${ATTNSCOPE_STATIC_HDF5})
find_package(HDF5 1.10 REQUIRED COMPONENTS C HL)
set(needed_by_hdf5 ${HDF5_C_LIBRARIES})
list(FILTER needed_by_hdf5 EXCLUDE REGEX "/lib(hdf5|pthread|dl|m)[^/]*$")
add_library(attnscope_hdf5 INTERFACE)
target_link_libraries(attnscope_hdf5 INTERFACE hdf5::hdf5_hl hdf5::hdf5 ${needed_by_hdf5}
                      Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(attnscope_hdf5 INTERFACE "LINKER:--as-needed")

find_package(GIF 5.1 REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)

# Headers that are compiled where they are used. Debian's pkg-config file would add a library of them.
find_path(STB_INCLUDE_DIR stb_truetype.h PATH_SUFFIXES stb)
if(NOT STB_INCLUDE_DIR)
  message(FATAL_ERROR "The text in pictures needs stb_truetype.h: install libstb-dev (docs/install.md), "
                      "or say where it is with -DSTB_INCLUDE_DIR=FOLDER.")
endif()
add_library(attnscope_stb INTERFACE)
target_include_directories(attnscope_stb SYSTEM INTERFACE "${STB_INCLUDE_DIR}")

find_package(fmt REQUIRED)

pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

find_package(nlohmann_json QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  pkg_check_modules(nlohmann_json REQUIRED IMPORTED_TARGET nlohmann_json)
  add_library(nlohmann_json::nlohmann_json ALIAS PkgConfig::nlohmann_json)
endif()

find_package(CLI11 QUIET)
if(NOT TARGET CLI11::CLI11)
  pkg_check_modules(CLI11 REQUIRED IMPORTED_TARGET CLI11)
  add_library(CLI11::CLI11 ALIAS PkgConfig::CLI11)
endif()

# Boost.Beast, headers alone: HTTP and WebSocket of `attnscope serve`.
find_path(BOOST_INCLUDE_DIR boost/beast/websocket.hpp)
if(NOT BOOST_INCLUDE_DIR)
  message(FATAL_ERROR "`attnscope serve` needs Boost.Beast (Boost 1.74 or later): install libboost-dev "
                      "(docs/install.md), or say where it is with -DBOOST_INCLUDE_DIR=FOLDER.")
endif()
add_library(attnscope_beast INTERFACE)
target_include_directories(attnscope_beast SYSTEM INTERFACE "${BOOST_INCLUDE_DIR}")
target_link_libraries(attnscope_beast INTERFACE Threads::Threads)

# The window. Debian's Dear ImGui has its GLFW and OpenGL backends built in; elsewhere they may lie in
# libraries of their own, and IMGUI_LIBRARIES may name them all.
if(ATTNSCOPE_VIEWER)
  pkg_check_modules(glfw3 IMPORTED_TARGET glfw3)
  pkg_check_modules(epoxy IMPORTED_TARGET epoxy)
  pkg_check_modules(freetype2 IMPORTED_TARGET freetype2)
  pkg_check_modules(stb QUIET IMPORTED_TARGET stb)
  find_path(IMGUI_INCLUDE_DIR imgui.h PATH_SUFFIXES imgui)
  find_path(IMGUI_BACKENDS_INCLUDE_DIR imgui_impl_glfw.h
            HINTS "${IMGUI_INCLUDE_DIR}/backends" PATH_SUFFIXES imgui/backends backends)
  find_library(IMGUI_LIBRARY imgui)
  set(missing "")
  foreach(package glfw3 epoxy freetype2)
    if(NOT TARGET PkgConfig::${package})
      string(APPEND missing " ${package}")
    endif()
  endforeach()
  if(NOT IMGUI_INCLUDE_DIR OR NOT IMGUI_BACKENDS_INCLUDE_DIR OR NOT IMGUI_LIBRARY)
    string(APPEND missing " imgui (with its glfw and opengl3 backends)")
  endif()
  if(missing)
    message(FATAL_ERROR "The window needs:${missing}. Install libimgui-dev libglfw3-dev libepoxy-dev "
                        "libfreetype-dev (docs/install.md), or configure with "
                        "-DATTNSCOPE_VIEWER=OFF to build everything but the window.")
  endif()
  add_library(attnscope_imgui INTERFACE)
  target_include_directories(attnscope_imgui SYSTEM INTERFACE "${IMGUI_INCLUDE_DIR}"
                             "${IMGUI_BACKENDS_INCLUDE_DIR}")
  target_link_libraries(attnscope_imgui INTERFACE "${IMGUI_LIBRARY}" PkgConfig::freetype2
                        PkgConfig::glfw3 ${CMAKE_DL_LIBS})
  if(TARGET PkgConfig::stb)
    target_link_libraries(attnscope_imgui INTERFACE PkgConfig::stb)
  endif()
endif()
