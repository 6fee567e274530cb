#include "cuda_runtime_api.h"

namespace {

struct Entry {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define ENTRY(name, text) \
  Entry { name, #name, text }

constexpr Entry kEntries[] = {
    ENTRY(cudaSuccess, "no error"),
    ENTRY(cudaErrorInvalidValue, "invalid argument"),
    ENTRY(cudaErrorMemoryAllocation, "out of memory"),
    ENTRY(cudaErrorInitializationError, "initialization error"),
    ENTRY(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ENTRY(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ENTRY(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ENTRY(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ENTRY(cudaErrorInsufficientDriver,
          "CUDA driver version is insufficient for CUDA runtime version"),
    ENTRY(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    ENTRY(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ENTRY(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ENTRY(cudaErrorInvalidDevice, "invalid device ordinal"),
    ENTRY(cudaErrorStartupFailure, "startup failure in cuda runtime"),
    ENTRY(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    ENTRY(cudaErrorNoKernelImageForDevice,
          "no kernel image is available for execution on the device"),
    ENTRY(cudaErrorAlreadyMapped, "resource already mapped"),
    ENTRY(cudaErrorNotMapped, "resource not mapped"),
    ENTRY(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ENTRY(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    ENTRY(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ENTRY(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    ENTRY(cudaErrorUnsupportedPtxVersion,
          "the provided PTX was compiled with an unsupported toolchain"),
    ENTRY(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    ENTRY(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ENTRY(cudaErrorNotReady, "device not ready"),
    ENTRY(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ENTRY(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ENTRY(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ENTRY(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ENTRY(cudaErrorHardwareStackError, "hardware stack error"),
    ENTRY(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ENTRY(cudaErrorMisalignedAddress, "misaligned address"),
    ENTRY(cudaErrorLaunchFailure, "unspecified launch failure"),
    ENTRY(cudaErrorNotPermitted, "operation not permitted"),
    ENTRY(cudaErrorNotSupported, "operation not supported"),
    ENTRY(cudaErrorSystemNotReady, "system not yet initialized"),
    ENTRY(cudaErrorSystemDriverMismatch,
          "system has unsupported display driver / cuda driver combination"),
    ENTRY(cudaErrorUnknown, "unknown error"),
};
#undef ENTRY

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  for (const Entry& entry : kEntries) {
    if (entry.error == error) {
      return entry.name;
    }
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  for (const Entry& entry : kEntries) {
    if (entry.error == error) {
      return entry.text;
    }
  }
  return "unrecognized error code";
}
