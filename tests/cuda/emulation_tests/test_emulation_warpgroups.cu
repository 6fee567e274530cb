// Warpgroups on the emulation: what the operations of warpgroup.h give, in an order that shows a
// missing wait, and what ends the program.
#include <warpgroup.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "kernels/cuda/kernel/tile_args.h"
#include "tests/cuda/emulation_tests/emulation_helpers.h"

namespace attnscope::test {
namespace {

using namespace attnscope::cuda;

constexpr unsigned kOperands = 2 * kChunkBytes;  // rows and keys of one chunk
constexpr unsigned kShared = kOperands + 4 * sizeof(uint64_t);

/// Accumulators [64, 128] of the first 64 rows with all keys; `rows` and `keys` one chunk each.
template <class Tag>
__global__ void multiply(const unsigned char* rows, const unsigned char* keys, float* out) {
  unsigned char* const shared = dynamic_shared_memory();
  auto* const barrier = reinterpret_cast<uint64_t*>(shared + kOperands);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_fence();
  }
  block_barrier();
  if (threadIdx.x == 0) {
    barrier_arrive_expect(barrier, kOperands);
    copy_bulk(shared, rows, kChunkBytes, barrier);
    copy_bulk(shared + kChunkBytes, keys, kChunkBytes, barrier);
  }
  barrier_wait(barrier, 0);
  float d[1][16][4];
  wgmma_begin(d);
  for (int step = 0; step < 4; ++step) {
    wgmma_64x128x16(d[0], shared + step * 32, shared + kChunkBytes + step * 32, step > 0, Tag());
  }
  wgmma_commit();
  wgmma_wait(d);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int group = 0; group < 16; ++group) {
    for (int i = 0; i < 4; ++i) {
      const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4 + i / 2 * 8;
      out[row * 128 + group * 8 + lane % 4 * 2 + i % 2] = d[0][group][i];
    }
  }
}

/// A chunk of random numbers that 16 bits hold exactly, and the numbers, [128, 64].
struct Chunk {
  std::vector<unsigned char> bytes = std::vector<unsigned char>(kChunkBytes);
  std::vector<double> values;

  Chunk(unsigned seed, bool bfloat) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> uniform(-64, 64);
    for (unsigned row = 0; row < 128; ++row) {
      for (unsigned channel = 0; channel < 64; ++channel) {
        const float value = static_cast<float>(uniform(random)) / 16;
        values.push_back(static_cast<double>(value));
        const unsigned short bits = bfloat ? to_bfloat_bits(value) : to_half_bits(value);
        const unsigned place = channel / 8 ^ row % 8;
        std::memcpy(&bytes[row * 128 + place * 16 + channel % 8 * 2], &bits, 2);
      }
    }
  }
};

TEST_CASE_METHOD(FreshDevice, "a warpgroup's product is that of doubles") {
  for (const bool bfloat : {false, true}) {
    const Chunk rows(1, bfloat), keys(2, bfloat);
    const DeviceArray<unsigned char> device_rows(rows.bytes), device_keys(keys.bytes);
    const DeviceArray<float> out{std::vector<float>(64 * 128)};
    REQUIRE(cudaFuncSetAttribute(&multiply<HalfTag>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kShared) == cudaSuccess);
    REQUIRE(launch(bfloat ? &multiply<BfloatTag> : &multiply<HalfTag>, 3, 128, kShared,
                   device_rows.data(), device_keys.data(), out.data()) == cudaSuccess);
    const std::vector<float> got = out.read();
    for (size_t row = 0; row < 64; ++row) {
      for (size_t key = 0; key < 128; ++key) {
        double want = 0;
        for (size_t c = 0; c < 64; ++c)
          want += rows.values[row * 64 + c] * keys.values[key * 64 + c];
        // Sums of multiples of 2^-8 below 2^10: exact.
        REQUIRE(static_cast<double>(got[row * 128 + key]) == want);
      }
    }
  }
}

/// Runs `body` in a block of two warpgroups, with a barrier at the start of its shared memory.
template <class Body>
__device__ void with_barrier(unsigned arrivals, Body body) {
  auto* const barrier = reinterpret_cast<uint64_t*>(dynamic_shared_memory());
  if (threadIdx.x == 0) barrier_init(barrier, arrivals);
  block_barrier();
  body(barrier, dynamic_shared_memory() + 1024);
}

/// Every thread counts the rounds of the other warpgroup: neither may be more than one ahead.
__global__ void take_turns(const unsigned char*, int* out) {
  auto* const barriers = reinterpret_cast<uint64_t*>(dynamic_shared_memory());
  auto* const counts = reinterpret_cast<int*>(barriers + 2);
  if (threadIdx.x == 0) {
    barrier_init(barriers, 128);
    barrier_init(barriers + 1, 128);
    counts[0] = 0;
  }
  block_barrier();
  const bool writes = threadIdx.x < 128;
  for (unsigned round = 0; round < 5; ++round) {
    if (writes) {
      barrier_wait(barriers + 1, (round + 1) % 2);
      if (threadIdx.x == 0) ++counts[0];
      barrier_arrive(barriers);
    } else {
      barrier_wait(barriers, round % 2);
      out[round * 128 + threadIdx.x % 128] = counts[0];
      barrier_arrive(barriers + 1);
    }
  }
}

TEST_CASE_METHOD(FreshDevice, "warpgroups take turns by barriers in shared memory") {
  const DeviceArray<unsigned char> in(std::vector<unsigned char>(16));
  const DeviceArray<int> out{std::vector<int>(5 * 128)};
  REQUIRE(launch(&take_turns, 1, 256, 64, in.data(), out.data()) == cudaSuccess);
  const std::vector<int> got = out.read();
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<int>(i / 128) + 1);
}

__global__ void wait_for_ever(const unsigned char*) {
  with_barrier(2, [](uint64_t* barrier, unsigned char*) {
    if (threadIdx.x == 0) barrier_arrive(barrier);
    barrier_wait(barrier, 0);
  });
}
__global__ void arrive_too_often(const unsigned char*) {
  with_barrier(1, [](uint64_t* barrier, unsigned char*) {
    if (threadIdx.x != 0) return;
    barrier_arrive_expect(barrier, 16);
    barrier_arrive(barrier);
  });
}
__global__ void forget_copy(const unsigned char* in) {
  with_barrier(1, [in](uint64_t* barrier, unsigned char* to) {
    if (threadIdx.x != 0) return;
    barrier_arrive_expect(barrier, 64);
    copy_bulk(to, in, 64, barrier);
  });
}
__global__ void copy_more_than_expected(const unsigned char* in) {
  with_barrier(1, [in](uint64_t* barrier, unsigned char* to) {
    if (threadIdx.x == 0) {
      barrier_arrive_expect(barrier, 32);
      copy_bulk(to, in, 64, barrier);
    }
    barrier_wait(barrier, 0);
  });
}
__global__ void barrier_nowhere(const unsigned char*) {
  barrier_wait(reinterpret_cast<uint64_t*>(dynamic_shared_memory()), 0);
}
__global__ void products_without_wait(const unsigned char*) {
  float d[1][16][4];
  wgmma_begin(d);
  wgmma_64x128x16(d[0], dynamic_shared_memory(), dynamic_shared_memory(), false, HalfTag());
}
__global__ void products_without_begin(const unsigned char*) {
  float d[1][16][4];
  wgmma_64x128x16(d[0], dynamic_shared_memory(), dynamic_shared_memory(), false, HalfTag());
}
__global__ void products_uncommitted(const unsigned char*) {
  float d[1][16][4];
  wgmma_begin(d);
  wgmma_64x128x16(d[0], dynamic_shared_memory(), dynamic_shared_memory(), false, HalfTag());
  wgmma_wait(d);
}
__global__ void products_askew(const unsigned char*) {
  float d[1][16][4];
  wgmma_begin(d);
  wgmma_64x128x16(d[0], dynamic_shared_memory() + 128, dynamic_shared_memory(), false, HalfTag());
}
__global__ void too_many_registers(const unsigned char*) { registers_up<240>(); }
__global__ void registers_the_other_way(const unsigned char*) { registers_up<24>(); }

TEST_CASE_METHOD(FreshDevice, "what warpgroups may not do ends the program") {
  const DeviceArray<unsigned char> in(std::vector<unsigned char>(64));
  const auto ends = [&](void (*kernel)(const unsigned char*), unsigned threads, const char* part) {
    const std::string text = last_words([&] {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
      launch(kernel, 2, threads, kShared, in.data());
      cudaDeviceSynchronize();
    });
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  ends(&wait_for_ever, 256, "threads 0-255 wait for a barrier in shared memory");
  ends(&arrive_too_often, 128, "all arrivals of the phase have been");
  ends(&forget_copy, 128, "bulk copies that nobody had waited for");
  ends(&copy_more_than_expected, 128, "more bytes arrive");
  ends(&barrier_nowhere, 128, "no barrier at this address");
  ends(&products_without_wait, 128, "products that it had not waited for");
  ends(&products_without_begin, 128, "not those of wgmma_begin");
  ends(&products_uncommitted, 128, "not committed");
  ends(&products_askew, 128, "does not begin at eight rows");
  ends(&too_many_registers, 384, "wait for registers");
  ends(&registers_the_other_way, 384, "is the other way");
}

}  // namespace
}  // namespace attnscope::test
