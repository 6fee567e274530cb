// The emulated runtime: memory, lazy streams, events, faults.
#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/cuda/emulation/address_sanitizer.h"
#include "tests/cuda/emulation_tests/emulation_helpers.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

constexpr unsigned char kPoison = 0xff;

bool all_are(const unsigned char* bytes, std::size_t count, unsigned char value) {
  return std::all_of(bytes, bytes + count, [&](unsigned char byte) { return byte == value; });
}

__global__ void fill(unsigned char* bytes, unsigned char value) {
  bytes[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

cudaError_t launch_on(cudaStream_t stream, void (*kernel)(unsigned char*, unsigned char),
                      unsigned char* bytes, unsigned char value) {
  cudaLaunchConfig_t config{};
  config.gridDim = 2;
  config.blockDim = 32;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, bytes, value);
}

/// Two streams, 64 bytes of device memory and 64 of page-locked memory.
struct TwoStreams : FreshDevice {
  TwoStreams() {
    REQUIRE(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    REQUIRE(cudaHostAlloc(&host, 64, cudaHostAllocDefault) == cudaSuccess);
  }
  ~TwoStreams() {
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaFree(device);
    cudaFreeHost(host);
  }
  cudaError_t copy_back(cudaStream_t stream) {
    return cudaMemcpyAsync(host, device, 64, cudaMemcpyDeviceToHost, stream);
  }

  cudaStream_t first = nullptr, second = nullptr;
  unsigned char* device = nullptr;
  unsigned char* host = nullptr;
};

TEST_CASE_METHOD(TwoStreams, "what is queued runs when something waits for it") {
  CHECK(all_are(host, 64, kPoison));
  REQUIRE(launch_on(first, &fill, device, 7) == cudaSuccess);
  std::memset(host, 1, 64);
  REQUIRE(copy_back(first) == cudaSuccess);
  // Not there yet, and no longer what it was.
  CHECK(all_are(host, 64, kPoison));
  CHECK(cudaStreamQuery(first) == cudaErrorNotReady);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(all_are(host, 64, 7));
  CHECK(cudaStreamQuery(first) == cudaSuccess);
  CHECK(emulation::counters().bytes_to_host == 64);
}

TEST_CASE_METHOD(TwoStreams, "streams wait for each other by events alone") {
  cudaEvent_t filled = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(launch_on(first, &fill, device, 9) == cudaSuccess);
  REQUIRE(cudaEventRecord(filled, first) == cudaSuccess);
  REQUIRE(launch_on(first, &fill, device, 10) == cudaSuccess);
  SECTION("without") {
    REQUIRE(copy_back(second) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
    CHECK(all_are(host, 64, kPoison));
  }
  SECTION("with") {
    REQUIRE(cudaStreamWaitEvent(second, filled, 0) == cudaSuccess);
    REQUIRE(copy_back(second) == cudaSuccess);
    CHECK(cudaEventQuery(filled) == cudaErrorNotReady);
    REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
    CHECK(all_are(host, 64, 9));
    CHECK(cudaEventQuery(filled) == cudaSuccess);
  }
  SECTION("an event is waited for by the host") {
    REQUIRE(cudaEventSynchronize(filled) == cudaSuccess);
    REQUIRE(copy_back(second) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
    CHECK(all_are(host, 64, 9));
  }
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(copy_back(second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(all_are(host, 64, 10));
  CHECK(cudaEventDestroy(filled) == cudaSuccess);
}

TEST_CASE_METHOD(TwoStreams, "page-locked memory may be reused in the order of a stream") {
  std::memset(host, 3, 64);
  REQUIRE(cudaMemcpyAsync(device, host, 64, cudaMemcpyHostToDevice, first) == cudaSuccess);
  REQUIRE(copy_back(first) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(all_are(host, 64, 3));
  // The source is read when the copy runs: who changes it before is seen.
  REQUIRE(cudaMemcpyAsync(device, host, 64, cudaMemcpyHostToDevice, first) == cudaSuccess);
  std::memset(host, 4, 64);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  unsigned char seen[64];
  REQUIRE(cudaMemcpy(seen, device, 64, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(all_are(seen, 64, 4));
}

TEST_CASE_METHOD(TwoStreams, "copies of rows keep to their pitches") {
  for (unsigned char i = 0; i < 64; ++i) {
    host[i] = i;
  }
  REQUIRE(cudaMemsetAsync(device, 0, 64, first) == cudaSuccess);
  REQUIRE(cudaMemcpy2DAsync(device, 8, host, 16, 3, 4, cudaMemcpyHostToDevice, first) ==
          cudaSuccess);
  CHECK(cudaMemcpy2DAsync(device, 2, host, 16, 3, 4, cudaMemcpyHostToDevice, first) ==
        cudaErrorInvalidPitchValue);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  unsigned char seen[64];
  REQUIRE(cudaMemcpy(seen, device, 64, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (unsigned i = 0; i < 64; ++i) {
    CHECK(seen[i] == (i % 8 < 3 && i < 32 ? i / 8 * 16 + i % 8 : 0));
  }
}

TEST_CASE_METHOD(TwoStreams, "copies are checked against allocations") {
  unsigned char pageable[65] = {};
  CHECK(cudaMemcpy(device, pageable, 65, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device, pageable, 64, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaFree(pageable) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  const std::string words =
      last_words([&] { cudaMemcpyAsync(device, pageable, 64, cudaMemcpyHostToDevice, first); });
  CHECK(words.find("pageable") != std::string::npos);
  emulation::allow_pageable_copies(true);
  CHECK(cudaMemcpyAsync(device, pageable, 64, cudaMemcpyHostToDevice, first) == cudaSuccess);
}

__global__ void write_at(unsigned char* bytes, long index) { bytes[index] = 1; }

TEST_CASE_METHOD(TwoStreams, "writes next to an allocation end the program") {
  for (const long index : {-1L, 64L}) {
    const std::string words = last_words([&] {
      launch(&write_at, 1, 1, 0, device, index);
      cudaDeviceSynchronize();
      cudaFree(device);
    });
#if ATTNSCOPE_EMULATION_ASAN
    CHECK(words.find("use-after-poison") != std::string::npos);
#else
    CHECK(words.find("bytes next to an allocation of 64 device bytes") != std::string::npos);
#endif
  }
}

TEST_CASE_METHOD(TwoStreams, "launches are checked as a device's runtime does") {
  const auto with = [&](dim3 grid, dim3 block, std::size_t shared) {
    return launch(&fill, grid, block, shared, device, static_cast<unsigned char>(1));
  };
  CHECK(with(1, 1025, 0) == cudaErrorInvalidConfiguration);
  CHECK(with(0, 32, 0) == cudaErrorInvalidConfiguration);
  CHECK(with(dim3(1, 65536), 32, 0) == cudaErrorInvalidConfiguration);
  CHECK(with(2, 32, 48 << 10) == cudaSuccess);
  CHECK(with(2, 32, (48 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(&fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 164 << 10) ==
        cudaErrorInvalidValue);
  REQUIRE(cudaFuncSetAttribute(&fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10) ==
          cudaSuccess);
  CHECK(with(2, 32, 96 << 10) == cudaSuccess);
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fill, 256, 80 << 10) ==
        cudaSuccess);
  CHECK(blocks == 2);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(emulation::launches_of("fill") == 2);
}

TEST_CASE_METHOD(FreshDevice, "devices are what the test says") {
  int count = -1;
  emulation::set_devices({});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 0);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 1) == cudaErrorNoDevice);
  emulation::Device small;
  small.name = "Small";
  small.major = 7;
  small.memory = 1000;
  small.memory_of_others = 300;
  emulation::set_devices({emulation::Device{}, small});
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  CHECK(std::string(properties.name) == "Small");
  int major = 0;
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 1) == cudaSuccess);
  CHECK(major == 7);
  CHECK(cudaMalloc(&memory, 701) == cudaErrorMemoryAllocation);
  REQUIRE(cudaMalloc(&memory, 600) == cudaSuccess);
  std::size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free == 100);
  CHECK(total == 1000);
  CHECK(cudaFree(memory) == cudaSuccess);
  emulation::fail_device_count(cudaErrorInsufficientDriver);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
}

TEST_CASE_METHOD(TwoStreams, "calls fail where the test says") {
  void* memory = nullptr;
  SECTION("allocations") {
    emulation::limit_device_memory(100);
    CHECK(cudaMalloc(&memory, 37) == cudaErrorMemoryAllocation);
    CHECK(memory == nullptr);
    REQUIRE(cudaMalloc(&memory, 36) == cudaSuccess);
    CHECK(emulation::counters().device_bytes == 100);
    CHECK(cudaFree(memory) == cudaSuccess);
    emulation::fail_every_malloc(2);
    REQUIRE(cudaMalloc(&memory, 1) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 1) == cudaErrorMemoryAllocation);
    CHECK(emulation::counters().device_allocations == 1);
  }
  SECTION("once") {
    emulation::fail(emulation::Call::kLaunch, 2, cudaErrorLaunchOutOfResources);
    CHECK(launch_on(first, &fill, device, 1) == cudaSuccess);
    CHECK(launch_on(first, &fill, device, 2) == cudaErrorLaunchOutOfResources);
    CHECK(cudaPeekAtLastError() == cudaErrorLaunchOutOfResources);
    CHECK(launch_on(first, &fill, device, 3) == cudaSuccess);
    CHECK(cudaStreamSynchronize(first) == cudaSuccess);
  }
  SECTION("for good") {
    emulation::fail(emulation::Call::kCopy, 1, cudaErrorECCUncorrectable,
                    emulation::Failure::kSticky);
    CHECK(copy_back(first) == cudaErrorECCUncorrectable);
    CHECK(cudaMalloc(&memory, 1) == cudaErrorECCUncorrectable);
    CHECK(cudaGetLastError() == cudaErrorECCUncorrectable);
    CHECK(cudaGetLastError() == cudaErrorECCUncorrectable);
  }
  SECTION("when it runs") {
    emulation::fail(emulation::Call::kLaunch, 1, cudaErrorIllegalAddress,
                    emulation::Failure::kWhenRun);
    REQUIRE(cudaMemsetAsync(device, 5, 64, first) == cudaSuccess);
    CHECK(launch_on(first, &fill, device, 1) == cudaSuccess);
    CHECK(copy_back(first) == cudaSuccess);
    CHECK(cudaStreamSynchronize(first) == cudaErrorIllegalAddress);
    CHECK(all_are(host, 64, kPoison));
    CHECK(launch_on(second, &fill, device, 1) == cudaErrorIllegalAddress);
  }
}

TEST_CASE_METHOD(TwoStreams, "the time between events is told of timed ones that have passed") {
  cudaEvent_t begin = nullptr, end = nullptr, untimed = nullptr;
  REQUIRE(cudaEventCreate(&begin) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(begin, first) == cudaSuccess);
  REQUIRE(launch_on(first, &fill, device, 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, first) == cudaSuccess);
  REQUIRE(cudaEventRecord(untimed, first) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorNotReady);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(milliseconds == -1);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&milliseconds, untimed, end) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  CHECK(milliseconds > 0);
  for (const cudaEvent_t event : {begin, end, untimed}) {
    CHECK(cudaEventDestroy(event) == cudaSuccess);
  }
}

TEST_CASE_METHOD(TwoStreams, "counters tell what is left behind") {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  CHECK(emulation::counters().streams == 2);
  CHECK(emulation::counters().events == 1);
  CHECK(emulation::counters().device_allocations == 1);
  CHECK(emulation::counters().host_bytes == 64);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaStreamDestroy(std::exchange(first, nullptr)) == cudaSuccess);
  CHECK(cudaFree(std::exchange(device, nullptr)) == cudaSuccess);
  CHECK(emulation::counters().streams == 1);
  CHECK(emulation::counters().events == 0);
  CHECK(emulation::counters().device_allocations == 0);
  CHECK(emulation::counters().peak_device_bytes == 64);
}

TEST_CASE_METHOD(FreshDevice, "host threads use the device at once") {
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (unsigned char t = 0; t < 4; ++t) {
    threads.emplace_back([t, &right] {
      cudaStream_t stream = nullptr;
      unsigned char* device = nullptr;
      std::vector<unsigned char> seen(64);
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMalloc(&device, 64);
      for (int round = 0; round < 20; ++round) {
        const auto value = static_cast<unsigned char>(t * 20 + round);
        launch_on(stream, &fill, device, value);
        cudaStreamSynchronize(stream);
        cudaMemcpy(seen.data(), device, 64, cudaMemcpyDeviceToHost);
        right[t] += all_are(seen.data(), 64, value) ? 1 : 0;
      }
      cudaFree(device);
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(right == std::vector<int>(4, 20));
  CHECK(emulation::counters().device_allocations == 0);
}

}  // namespace
}  // namespace attnscope::test
