# What the CUDA backend is made of, but for the module's entry points: compiled by nvcc for the
# module, and as C++ for the tests, which run it on an emulation of CUDA.
set(ATTNSCOPE_CUDA_KERNELS
  kernel/combine_kernels.cu
  kernel/mma_kernels.cu
  kernel/stored_kernels.cu
  kernel/wgmma_kernels.cu)
set(ATTNSCOPE_CUDA_HOST
  host/device.cu
  host/device_backend.cu
  host/device_head.cu
  host/device_keys.cu
  host/emit_steps.cu
  host/gl_link.cu
  host/lane.cu
  host/launch_log.cu
  host/output_steps.cu
  host/reduce_plan.cu
  host/reduce_steps.cu
  host/texel_keeper.cu
  host/texel_steps.cu)
set(ATTNSCOPE_CUDA_PLAIN
  host/head_format.cpp
  host/known_answers.cpp
  host/launch_work.cpp
  host/mask_tiles.cpp
  host/split_plan.cpp)
