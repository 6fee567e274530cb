# The CUDA module (kernels/cuda): whether it is built, and with what. Sets ATTNSCOPE_CUDA_BUILT,
# and where that is true makes
#   attnscope::cute         CuTe's headers, only where ATTNSCOPE_CUTE_FOUND
#   attnscope_cuda_flags    the project's warnings as nvcc takes them
# and ATTNSCOPE_CUBLAS_INCLUDE, cuBLAS's headers, and ATTNSCOPE_CUBLAS_FOLDER, where the module finds
# libcublas when it loads it.
set(ATTNSCOPE_CUDA "AUTO" CACHE STRING "Build the CUDA backend: AUTO (where it can be), ON or OFF")
set_property(CACHE ATTNSCOPE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ATTNSCOPE_CUBLAS_ROOT "" CACHE PATH "Folder with cuBLAS's include/ and lib/, beside the CUDA toolkit's")
set(ATTNSCOPE_CUTLASS_ROOT "" CACHE PATH "Folder with CUTLASS's headers (cute/tensor.hpp), or with include/")
set(ATTNSCOPE_CUDA_BUILT FALSE)
set(ATTNSCOPE_CUTE_FOUND FALSE)

if(NOT ATTNSCOPE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ATTNSCOPE_CUDA is ${ATTNSCOPE_CUDA}: expected AUTO, ON or OFF.")
endif()

# attnscope_find_nvcc(MISSING): sets CMAKE_CUDA_COMPILER and ATTNSCOPE_NVCC_VERSION, or in the
# variable MISSING what is missing. Enables no language: that cannot be undone.
macro(attnscope_find_nvcc missing)
  set(${missing} "")
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # one may have been installed since
    if(NOT DEFINED ENV{CUDACXX})
      # The toolkit's own folder is on few people's PATH.
      find_program(ATTNSCOPE_NVCC nvcc HINTS "$ENV{CUDA_PATH}/bin" PATHS /usr/local/cuda/bin)
      mark_as_advanced(ATTNSCOPE_NVCC)
      if(ATTNSCOPE_NVCC)
        set(ENV{CUDACXX} "${ATTNSCOPE_NVCC}")
      endif()
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${missing} "a CUDA compiler that works (nvcc 12 or later; -DCMAKE_CUDA_COMPILER=FILE)")
  else()
    execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version
                    OUTPUT_VARIABLE ATTNSCOPE_NVCC_TEXT ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" ATTNSCOPE_NVCC_TEXT "${ATTNSCOPE_NVCC_TEXT}")
    set(ATTNSCOPE_NVCC_VERSION "${CMAKE_MATCH_1}")
    if(ATTNSCOPE_NVCC_VERSION VERSION_LESS 12)
      set(${missing} "nvcc 12 or later (${CMAKE_CUDA_COMPILER} is not; -DCMAKE_CUDA_COMPILER=FILE)")
    endif()
  endif()
endmacro()

# Sets ATTNSCOPE_CUBLAS_LIBRARY, _LT and _INCLUDE, from ATTNSCOPE_CUBLAS_ROOT where that is given, else
# from the toolkit. Of another major version than the compiler's is none.
function(attnscope_find_cublas)
  string(REGEX REPLACE "\\..*" "" major "${ATTNSCOPE_NVCC_VERSION}")
  set(CMAKE_FIND_LIBRARY_SUFFIXES ".so.${major}" ".so")
  unset(ATTNSCOPE_CUBLAS_LIBRARY CACHE)
  unset(ATTNSCOPE_CUBLAS_LT CACHE)
  unset(ATTNSCOPE_CUBLAS_INCLUDE CACHE)
  if(ATTNSCOPE_CUBLAS_ROOT)
    set(places PATHS "${ATTNSCOPE_CUBLAS_ROOT}" NO_DEFAULT_PATH)
  else()
    find_package(CUDAToolkit QUIET)
    # Either is there without the other where a toolkit is in pieces.
    set(places HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_INCLUDE_DIRS})
    if(TARGET CUDA::cublas)
      get_target_property(library CUDA::cublas IMPORTED_LOCATION)
      set(ATTNSCOPE_CUBLAS_LIBRARY "${library}" CACHE FILEPATH "cuBLAS")
    endif()
  endif()
  find_library(ATTNSCOPE_CUBLAS_LIBRARY cublas ${places} PATH_SUFFIXES lib lib64)
  find_library(ATTNSCOPE_CUBLAS_LT cublasLt ${places} PATH_SUFFIXES lib lib64)
  find_path(ATTNSCOPE_CUBLAS_INCLUDE cublas_v2.h ${places} PATH_SUFFIXES include)
  mark_as_advanced(ATTNSCOPE_CUBLAS_LIBRARY ATTNSCOPE_CUBLAS_LT ATTNSCOPE_CUBLAS_INCLUDE)
endfunction()

# Missing things are errors where the user asked for CUDA, else one line. Returns from the file.
macro(attnscope_cuda_lacks what)
  if(ATTNSCOPE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ATTNSCOPE_CUDA=ON needs ${what}. See docs/install.md.")
  endif()
  message(STATUS "CUDA: not built, for want of ${what}")
  return()
endmacro()

if(ATTNSCOPE_CUDA STREQUAL "OFF")
  return()
endif()
if(ATTNSCOPE_SANITIZE)
  attnscope_cuda_lacks("a build without sanitizers")
endif()
attnscope_find_nvcc(missing)
if(missing)
  attnscope_cuda_lacks("${missing}")
endif()
attnscope_find_cublas()
if(NOT ATTNSCOPE_CUBLAS_LIBRARY OR NOT ATTNSCOPE_CUBLAS_LT OR NOT ATTNSCOPE_CUBLAS_INCLUDE)
  set(place "the toolkit of ${CMAKE_CUDA_COMPILER}")
  if(ATTNSCOPE_CUBLAS_ROOT)
    set(place "${ATTNSCOPE_CUBLAS_ROOT}")
  endif()
  attnscope_cuda_lacks("cuBLAS ${ATTNSCOPE_NVCC_VERSION} with its headers, which ${place} has not (-DATTNSCOPE_CUBLAS_ROOT=FOLDER; scripts/cuda-libraries gets it)")
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90a-real)
  if(ATTNSCOPE_NVCC_VERSION VERSION_LESS 12.8)
    list(APPEND CMAKE_CUDA_ARCHITECTURES 90-virtual)
  else()
    list(APPEND CMAKE_CUDA_ARCHITECTURES 120-real 100)  # code and PTX, for what comes after
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER AND DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
enable_language(CUDA)
find_package(CUDAToolkit QUIET REQUIRED)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake before 3.26 does not know that nvcc has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

get_filename_component(ATTNSCOPE_CUBLAS_FOLDER "${ATTNSCOPE_CUBLAS_LIBRARY}" DIRECTORY)

# Only the headers: CuTe has nothing to link.
unset(ATTNSCOPE_CUTE_INCLUDE CACHE)
if(ATTNSCOPE_CUTLASS_ROOT)
  find_path(ATTNSCOPE_CUTE_INCLUDE cute/tensor.hpp PATHS "${ATTNSCOPE_CUTLASS_ROOT}"
            "${ATTNSCOPE_CUTLASS_ROOT}/include" NO_DEFAULT_PATH)
else()
  find_path(ATTNSCOPE_CUTE_INCLUDE cute/tensor.hpp HINTS ${CUDAToolkit_INCLUDE_DIRS})
endif()
mark_as_advanced(ATTNSCOPE_CUTE_INCLUDE)
if(ATTNSCOPE_CUTE_INCLUDE)
  set(ATTNSCOPE_CUTE_FOUND TRUE)
  add_library(attnscope_cute INTERFACE)
  add_library(attnscope::cute ALIAS attnscope_cute)
  target_include_directories(attnscope_cute SYSTEM INTERFACE "${ATTNSCOPE_CUTE_INCLUDE}")
  target_compile_options(attnscope_cute INTERFACE
                         $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
elseif(ATTNSCOPE_CUTLASS_ROOT AND ATTNSCOPE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "ATTNSCOPE_CUTLASS_ROOT=${ATTNSCOPE_CUTLASS_ROOT} has neither "
                      "cute/tensor.hpp nor include/cute/tensor.hpp.")
endif()

add_library(attnscope_cuda_flags INTERFACE)
set(host_flags -Wall,-Wextra,-Wshadow,-Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # nvcc writes pointers to members with parentheses, which the host's compiler finds unnecessary.
  string(APPEND host_flags ,-Wno-parentheses)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  string(APPEND host_flags ,-Wno-restrict)  # see cmake/targets.cmake
endif()
target_compile_options(attnscope_cuda_flags INTERFACE
                       $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_flags}>)
if(ATTNSCOPE_WERROR)
  target_compile_options(attnscope_cuda_flags INTERFACE
                         "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
endif()

set(ATTNSCOPE_CUDA_BUILT TRUE)
list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
set(without "")
if(NOT ATTNSCOPE_CUTE_FOUND)
  set(without "; without fused kernels, which need CuTe's headers (-DATTNSCOPE_CUTLASS_ROOT=FOLDER)")
elseif(NOT "${CMAKE_CUDA_ARCHITECTURES}" MATCHES "90a")
  # native, 90 and all-major are not it: wgmma is of 90a alone. CMake has taken $CUDAARCHS in.
  set(without "; without wgmma, for want of 90a among the architectures: an H100 takes mma")
endif()
message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${architectures}, ${ATTNSCOPE_CUBLAS_LIBRARY}${without}")
