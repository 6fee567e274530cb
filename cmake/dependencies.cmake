# Everything the project needs from outside, each as one target. Config packages are tried before
# pkg-config, so that distributions and conda environments both work.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

find_package(HDF5 1.10 REQUIRED COMPONENTS C HL)

find_package(GIF 5.1 REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)

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
