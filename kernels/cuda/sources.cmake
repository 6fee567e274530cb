# What the CUDA backend is made of, but for the module's entry points: compiled by nvcc for the
# module, and as C++ for the tests, which run it on an emulation of CUDA.
set(ATTNSCOPE_CUDA_KERNELS
  combine_kernels.cu
  mma_kernels.cu
  stored_kernels.cu
  wgmma_kernels.cu)
set(ATTNSCOPE_CUDA_HOST
  device.cu
  device_backend.cu
  device_head.cu
  device_keys.cu
  emit_steps.cu
  gl_link.cu
  lane.cu
  launch_log.cu
  output_steps.cu
  reduce_plan.cu
  reduce_steps.cu
  texel_keeper.cu
  texel_steps.cu)
set(ATTNSCOPE_CUDA_PLAIN
  head_format.cpp
  known_answers.cpp
  launch_work.cpp
  mask_tiles.cpp
  split_plan.cpp)
