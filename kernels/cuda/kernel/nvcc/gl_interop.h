#pragma once

// The part of CUDA that knows OpenGL, as nvcc compiles it. gl_link.cu includes this header as
// <gl_interop.h>: tests find another one of that name.

#if __has_include(<GL/gl.h>)
#include <cuda_gl_interop.h>
#else
// The header above needs OpenGL's, and the backend only names textures: what it uses of it.
#include <cuda_runtime_api.h>

extern "C" {

enum cudaGLDeviceList { cudaGLDeviceListAll = 1 };

cudaError_t CUDARTAPI cudaGLGetDevices(unsigned int* pCudaDeviceCount, int* pCudaDevices,
                                       unsigned int cudaDeviceCount, cudaGLDeviceList deviceList);
cudaError_t CUDARTAPI cudaGraphicsGLRegisterImage(cudaGraphicsResource** resource,
                                                  unsigned int image, unsigned int target,
                                                  unsigned int flags);
}
#endif
