#include <atomic>
#include <cstring>

#include "device_intrinsics.h"
#include "tensor_core.h"
#include "tests/cuda/emulation/block_runner.h"
#include "tests/cuda/emulation/control.h"
#include "tests/cuda/emulation/number_formats.h"
#include "tests/cuda/emulation/tensor_products.h"

namespace attnscope::cuda::emulation {
namespace {

std::atomic<bool> sums_spoilt = false;

struct ExchangeLane {
  std::uint64_t value;
  std::uint64_t result;
  unsigned source;
};

void exchange_all(void* const* lanes) {
  for (unsigned l = 0; l < kWarpSize; ++l) {
    auto* lane = static_cast<ExchangeLane*>(lanes[l]);
    lane->result = static_cast<const ExchangeLane*>(lanes[lane->source])->value;
  }
}

struct AnyLane {
  bool value;
  bool result;
};

void any_of_all(void* const* lanes) {
  bool any = false;
  for (unsigned l = 0; l < kWarpSize; ++l) {
    any = any || static_cast<const AnyLane*>(lanes[l])->value;
  }
  for (unsigned l = 0; l < kWarpSize; ++l) {
    static_cast<AnyLane*>(lanes[l])->result = any;
  }
}

struct ProductLane {
  float* d;
  const unsigned* a;
  const unsigned* b;
};

template <class Format>
void convert(const std::uint16_t* bits, unsigned count, float* values) {
  for (unsigned i = 0; i < count; i += 8) {
    Bits8 eight_bits;
    Float8 eight_values;
    std::memcpy(&eight_bits, bits + i, sizeof(eight_bits));
    Format::to_float(eight_bits, eight_values);
    std::memcpy(values + i, &eight_values, sizeof(eight_values));
  }
}

/// d += a·b with the fragments of mma.sync.m16n8k16 (PTX ISA): of a lane l, with g = l / 4 and
/// t = l % 4, a holds rows g, g + 8, g, g + 8 at columns 2t, 2t (of 0..7), 2t + 8, 2t + 8 (two
/// each); b holds column g at rows 2t and 2t + 8 (two each); d holds rows g, g, g + 8, g + 8 at
/// columns 2t, 2t + 1, 2t, 2t + 1. Sums are taken in float, in the order of k.
template <class Format>
void multiply_fragments(void* const* lanes) {
  constexpr unsigned kM = 16, kN = 8, kK = 16;
  std::uint16_t raw_a[kM * kK];
  std::uint16_t raw_b[kN * kK];  // by column
  float a[kM * kK];
  float b_columns[kN * kK];
  float b[kK * kN];
  float d[kM * kN];
  for (unsigned l = 0; l < kWarpSize; ++l) {
    const auto* lane = static_cast<const ProductLane*>(lanes[l]);
    const unsigned g = l / 4, t2 = l % 4 * 2;
    std::memcpy(&raw_a[g * kK + t2], &lane->a[0], 4);
    std::memcpy(&raw_a[(g + 8) * kK + t2], &lane->a[1], 4);
    std::memcpy(&raw_a[g * kK + t2 + 8], &lane->a[2], 4);
    std::memcpy(&raw_a[(g + 8) * kK + t2 + 8], &lane->a[3], 4);
    std::memcpy(&raw_b[g * kK + t2], &lane->b[0], 4);
    std::memcpy(&raw_b[g * kK + t2 + 8], &lane->b[1], 4);
    std::memcpy(&d[g * kN + t2], &lane->d[0], 8);
    std::memcpy(&d[(g + 8) * kN + t2], &lane->d[2], 8);
  }
  convert<Format>(raw_a, kM * kK, a);
  convert<Format>(raw_b, kN * kK, b_columns);
  for (unsigned k = 0; k < kK; ++k) {
    for (unsigned n = 0; n < kN; ++n) {
      b[k * kN + n] = b_columns[n * kK + k];
    }
  }
  add_products(a, b, kM, kK, kN, d);
  for (unsigned l = 0; l < kWarpSize; ++l) {
    const auto* lane = static_cast<const ProductLane*>(lanes[l]);
    const unsigned g = l / 4, t2 = l % 4 * 2;
    std::memcpy(&lane->d[0], &d[g * kN + t2], 8);
    std::memcpy(&lane->d[2], &d[(g + 8) * kN + t2], 8);
  }
}

template <class Format>
void multiply_together(float* d, const unsigned* a, const unsigned* b) {
  ProductLane lane{d, a, b};
  BlockRunner::running().warp_operation(WarpOperation::kProduct, &lane,
                                        &multiply_fragments<Format>);
}

struct LoadLane {
  unsigned* r;
  const unsigned char* row;
};

/// ldmatrix.x4: lane l names row l % 8 of matrix l / 8, eight elements of 16 bits; register j of a
/// lane gets elements 2 (l % 4) and the next of row l / 4 of matrix j.
void load_all(void* const* lanes) {
  for (unsigned l = 0; l < kWarpSize; ++l) {
    const auto* lane = static_cast<const LoadLane*>(lanes[l]);
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      const auto* source = static_cast<const LoadLane*>(lanes[matrix * 8 + l / 4]);
      std::memcpy(&lane->r[matrix], source->row + l % 4 * 4, 4);
    }
  }
}

}  // namespace

unsigned char* shared_of_block() { return BlockRunner::running().shared(); }

void wait_for_block() { BlockRunner::running().block_barrier(); }

void wait_for_warp() {
  BlockRunner::running().warp_operation(WarpOperation::kBarrier, nullptr, nullptr);
}

std::uint64_t exchange(std::uint64_t value, unsigned source_lane) {
  ExchangeLane lane{value, 0, source_lane};
  BlockRunner::running().warp_operation(WarpOperation::kShuffle, &lane, &exchange_all);
  return lane.result;
}

bool any_of_warp(bool value) {
  AnyLane lane{value, false};
  BlockRunner::running().warp_operation(WarpOperation::kAny, &lane, &any_of_all);
  return lane.result;
}

unsigned lane_of_thread() { return BlockRunner::running().lane(); }

unsigned short half_bits(float value) { return float_to_half(value); }
float half_value(unsigned short bits) { return to_float<Half>(bits); }

void multiply_half(float* d, const unsigned* a, const unsigned* b) {
  multiply_together<Half>(d, a, b);
}

void multiply_bfloat(float* d, const unsigned* a, const unsigned* b) {
  multiply_together<Bfloat>(d, a, b);
}

void load_matrices(unsigned* r, const void* shared_row) {
  BlockRunner& runner = BlockRunner::running();
  runner.check_shared(shared_row, 16, "load_matrix_x4");
  LoadLane lane{r, static_cast<const unsigned char*>(shared_row)};
  runner.warp_operation(WarpOperation::kLoadMatrix, &lane, &load_all);
}

void start_copy_16(void* shared, const void* global, bool valid) {
  BlockRunner::running().copy_async(shared, global, valid);
}

void spoil_sums(bool spoil) { sums_spoilt = spoil; }

std::uint64_t surplus_of_sum(std::uint64_t value) { return sums_spoilt ? value / 64 : 0; }

void commit_copies() { BlockRunner::running().commit_copies(); }

void wait_for_copies(unsigned left) { BlockRunner::running().wait_for_copies(left); }

}  // namespace attnscope::cuda::emulation
