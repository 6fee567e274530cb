#pragma once

#include "cuda_runtime_api.h"

// Emulation of kernels/cuda/kernel/nvcc/gl_interop.h: the part of CUDA that knows OpenGL, whose
// names of textures are plain numbers here. See tests/cuda/emulation/graphics.h.

enum cudaGLDeviceList { cudaGLDeviceListAll = 1 };

cudaError_t cudaGLGetDevices(unsigned int* pCudaDeviceCount, int* pCudaDevices,
                             unsigned int cudaDeviceCount, cudaGLDeviceList deviceList);
cudaError_t cudaGraphicsGLRegisterImage(cudaGraphicsResource** resource, unsigned int image,
                                        unsigned int target, unsigned int flags);
