#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_runtime_api.h"

/// The control of the emulated CUDA by tests: its devices, its faults, and its counters.
///
/// The emulation runs host code and kernels of a .cu file on the CPU, and is built to show
/// mistakes:
///  - Device and page-locked memory is filled with 0xff (NaN) when it is allocated and lies between
///    guard bytes, which are checked when it is freed. Dynamic shared memory is filled so for each
///    block, and guarded. Broken guards end the program with a message.
///  - Streams are lazy: what is queued runs when something waits for it (a synchronisation, a
///    synchronous copy, cudaFree; a query runs one operation), on the host thread that waits. The
///    target of a copy to the host is filled with 0xff until the copy runs, unless something still
///    queued is to read it.
///  - Blocks run one after another, in an order that is neither the grid's nor its reverse; the
///    threads of a block take turns at barriers and warp operations, from a different one in each
///    block. copy_async_16 fills its target with 0xff and copies when it is waited for.
///  - Bulk copies fill their target with 0xff and arrive when their barrier is waited for; products
///    of warpgroups are made when they are waited for, from the bytes that shared memory holds
///    then.
///  - The program ends with a message where the order of things is undefined on a device: threads
///    of a block at different barriers, lanes of a warp at different operations, barriers in shared
///    memory that nobody will reach, copies that nobody waited for, asynchronous copies of pageable
///    memory.
///
/// Functions here are thread-safe, but meant to be called while no other thread uses CUDA.
namespace attnscope::cuda::emulation {

struct Device {
  std::string name = "Emulated device";
  int major = 8;
  int minor = 0;
  int multiprocessors = 4;
  std::size_t memory = std::size_t{1} << 30;
  /// Of that, what others hold: cudaMemGetInfo says so, and cudaMalloc fails beyond it.
  std::size_t memory_of_others = 0;
  std::size_t shared_per_block_optin = 163 * 1024;
  std::size_t shared_per_multiprocessor = 164 * 1024;
  std::size_t l2_cache = 40 << 20;

  /// One of compute capability major.0, with the shared memory of that generation (8, 9 or 12).
  static Device of(int major) {
    Device device;
    device.major = major;
    if (major == 9) {
      device.shared_per_block_optin = 227 * 1024;
      device.shared_per_multiprocessor = 228 * 1024;
    }
    if (major == 12) {
      device.shared_per_block_optin = 99 * 1024;
      device.shared_per_multiprocessor = 100 * 1024;
    }
    return device;
  }
};

/// Calls that can be made to fail. kLaunch and kCopy count every launch and every copy or memset.
enum class Call {
  kLaunch,
  kCopy,
  kMalloc,
  kHostAlloc,
  kCreateStream,
  kCreateEvent,
  kRecordEvent,
  kSynchronize,  ///< of streams, events and devices
  kFunction,     ///< cudaFuncSetAttribute, cudaFuncGetAttributes, the occupancy
  kDevice,       ///< cudaSetDevice, cudaGetDeviceProperties, cudaDeviceGetAttribute
  kMemGetInfo,
  kGraphics,  ///< all that shares textures, but for giving them back
  kNumCalls
};

enum class Failure {
  kOnce,    ///< that call alone
  kSticky,  ///< and every later call, as after a broken kernel
  /// kLaunch and kCopy: the call succeeds, the operation fails when it runs, and the call that
  /// waits for it and every later one return the error. Others: as kSticky.
  kWhenRun
};

struct Counters {
  std::uint64_t launches = 0;
  std::uint64_t gemms = 0;
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t bytes_within_device = 0;
  std::uint64_t bytes_between_devices = 0;
  std::uint64_t synchronisations = 0;
  std::size_t device_allocations = 0;  ///< live
  std::size_t device_bytes = 0;        ///< live
  std::size_t peak_device_bytes = 0;
  std::size_t host_allocations = 0;    ///< live
  std::size_t host_bytes = 0;          ///< live
  std::size_t streams = 0;             ///< live
  std::size_t events = 0;              ///< live
  std::size_t cublas_handles = 0;      ///< live
  std::size_t graphics_resources = 0;  ///< live
};

/// One device as Device{} describes it, no faults, no errors, counters at zero; what is still
/// allocated or queued is dropped (guards are checked).
void reset();

/// The machine's devices; none: cudaErrorNoDevice.
void set_devices(std::vector<Device> devices);

/// The error that cudaGetDeviceCount returns from now on; cudaSuccess: it answers.
void fail_device_count(cudaError_t error);

/// The nth (from 1) of these calls from now on fails with the error.
void fail(Call call, int nth, cudaError_t error, Failure failure = Failure::kOnce);

/// The nth (from 1) product of cuBLAS from now on returns the status (a cublasStatus_t).
void fail_gemm(int nth, int status);

/// True: warpgroups multiply wrongly, every product is a little too large.
void spoil_warpgroups(bool spoil);

/// True: cuBLAS multiplies wrongly, every product is a little too large.
void spoil_gemms(bool spoil);

/// True: the order in which cuBLAS sums products follows from their shape, as that of the algorithm
/// that it chooses may. False: it is always that of k.
void order_gemms_by_shape(bool order);

/// True: atomic additions of integers are wrong, each adds a 64th too much.
void spoil_sums(bool spoil);

/// True: copies between devices are wrong, by a byte of each.
void spoil_peer_copies(bool spoil);

/// True: there is no cuBLAS on the machine.
void hide_cublas(bool hide);
bool is_cublas_hidden();

/// cudaMalloc fails when more than this many bytes would be live.
void limit_device_memory(std::size_t bytes);

/// Every k-th cudaMalloc from now on fails; 0: none.
void fail_every_malloc(int k);

/// True: cudaMemcpyAsync takes pageable host memory (it copies at once, then).
void allow_pageable_copies(bool allow);

Counters counters();

/// True: no device can reach another's memory; copies between them work nevertheless.
void part_devices(bool apart);
bool are_devices_apart();

/// Launches of one kernel: by its address, or of all those whose demangled name holds the text.
std::uint64_t launches_of(const void* kernel);
std::uint64_t launches_of(std::string_view name);
inline std::uint64_t launches_of(const char* name) { return launches_of(std::string_view(name)); }

}  // namespace attnscope::cuda::emulation
