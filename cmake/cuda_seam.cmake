# The program and the CUDA module (kernels/cuda/module.h) share classes: they fit together only where
# both were compiled from the same headers. attnscope::cuda_seam carries a hash of these as
# ATTNSCOPE_CUDA_SEAM; whoever changes one of them need not think of it.
#
# attnscope_headers_below(RESULT HEADERS…): the headers (paths from the project's root) and all that
# they include of the project's, sorted.
function(attnscope_headers_below result)
  set(open ${ARGN})
  set(found "")
  while(open)
    list(POP_FRONT open header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found "${header}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" included "${line}")
      list(APPEND open "${included}")
    endforeach()
  endwhile()
  list(SORT found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# All whose objects cross from one to the other.
attnscope_headers_below(headers
  kernels/cuda/module.h core/stream/device_facet.h core/stream/value_panels.h
  core/reduce/panel_reduction.h)
set(text "")
foreach(header IN LISTS headers)
  file(SHA256 "${PROJECT_SOURCE_DIR}/${header}" hash)
  string(APPEND text "${header} ${hash}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${header}")
endforeach()
string(SHA256 seam "${text}")
string(SUBSTRING "${seam}" 0 12 seam)
add_library(attnscope_cuda_seam INTERFACE)
target_compile_definitions(attnscope_cuda_seam INTERFACE ATTNSCOPE_CUDA_SEAM="${seam}")
add_library(attnscope::cuda_seam ALIAS attnscope_cuda_seam)
