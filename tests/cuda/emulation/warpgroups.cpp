// Products of warpgroups, and how their registers are shared out.
#include <atomic>
#include <cstring>
#include <numeric>

#include "tests/cuda/emulation/block_runner.h"
#include "tests/cuda/emulation/control.h"
#include "tests/cuda/emulation/guarded_memory.h"
#include "tests/cuda/emulation/number_formats.h"
#include "tests/cuda/emulation/tensor_products.h"
#include "warpgroup.h"

namespace attnscope::cuda::emulation {
namespace {

std::atomic<bool> spoilt = false;

constexpr unsigned kRegisterFile = 65536;
constexpr unsigned kRows = 16, kKeys = 128, kChannels = 16;  // of one warp's share of a product

/// The 16 channels of a row that lies as wgmma_operand says, `start` being the offset in shared
/// memory of the operand: bits 4 to 6 of an address are those of its unit, times bits 7 to 9.
template <class Format>
void read_row(const unsigned char* shared, std::size_t start, unsigned row, float* values) {
  constexpr std::size_t kRowBytes = 128, kUnit = 16;
  for (unsigned unit = 0; unit < 2; ++unit) {
    const std::size_t address = start + row * kRowBytes + unit * kUnit;
    const std::size_t swizzled = address ^ (address >> 7 & 7) << 4;
    Bits8 bits;
    Float8 eight;
    std::memcpy(&bits, shared + swizzled, sizeof(bits));
    Format::to_float(bits, eight);
    std::memcpy(values + unit * 8, &eight, sizeof(eight));
  }
}

struct WaitLane {
  GroupProducts* products;
  unsigned warp;  // of its warpgroup
};

template <class Format>
void multiply(void* const* lanes, std::size_t product) {
  const auto* first = static_cast<const WaitLane*>(lanes[0]);
  const GroupProducts::Product& of_all = first->products->started[product];
  const unsigned char* const shared = BlockRunner::running().shared();
  float a[kRows][kChannels];
  float b[kChannels][kKeys];
  for (unsigned row = 0; row < kRows; ++row) {
    read_row<Format>(shared, static_cast<std::size_t>(of_all.a - shared), first->warp * kRows + row,
                     a[row]);
  }
  for (unsigned key = 0; key < kKeys; ++key) {
    float channels[kChannels];
    read_row<Format>(shared, static_cast<std::size_t>(of_all.b - shared), key, channels);
    for (unsigned k = 0; k < kChannels; ++k) b[k][key] = channels[k];
  }
  const auto d_of = [&](unsigned row, unsigned key) -> float& {
    const auto* lane = static_cast<const WaitLane*>(lanes[row % 8 * 4 + key % 8 / 2]);
    return lane->products->started[product].d[key / 8 * 4 + row / 8 * 2 + key % 2];
  };
  float sums[kRows][kKeys];
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned key = 0; key < kKeys; ++key) sums[row][key] = of_all.add ? d_of(row, key) : 0.0f;
  }
  add_products(&a[0][0], &b[0][0], kRows, kChannels, kKeys, &sums[0][0]);
  const float factor = spoilt ? 1.01f : 1.0f;
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned key = 0; key < kKeys; ++key) d_of(row, key) = sums[row][key] * factor;
  }
}

void multiply_all(void* const* lanes) {
  const GroupProducts& first = *static_cast<const WaitLane*>(lanes[0])->products;
  for (unsigned l = 1; l < kWarpSize; ++l) {
    const GroupProducts& other = *static_cast<const WaitLane*>(lanes[l])->products;
    bool same = other.started.size() == first.started.size();
    for (std::size_t i = 0; same && i < first.started.size(); ++i) {
      const GroupProducts::Product& x = first.started[i];
      const GroupProducts::Product& y = other.started[i];
      same = x.a == y.a && x.b == y.b && x.add == y.add && x.half == y.half;
    }
    if (!same) BlockRunner::running().fail("wgmma: the lanes of a warp gave different operands");
  }
  for (std::size_t i = 0; i < first.started.size(); ++i) {
    (first.started[i].half ? &multiply<Half> : &multiply<Bfloat>)(lanes, i);
  }
}

}  // namespace

void spoil_warpgroups(bool spoil) { spoilt = spoil; }

void BlockRunner::change_registers(unsigned count, bool up) {
  warp_operation(WarpOperation::kRegisters, nullptr, nullptr);
  unsigned& mine = registers_[current_ / kWarpSize];
  if (lane() == 0) {
    if (up ? count < mine : count > mine) {
      fail("registers: from " + std::to_string(mine) + " to " + std::to_string(count) +
           " is the other way");
    }
    const auto taken = [&] {
      return std::accumulate(registers_.begin(), registers_.end(), 0u) * kWarpSize;
    };
    while (up && taken() + (count - mine) * kWarpSize > kRegisterFile) poll("registers");
    mine = count;
  }
  warp_operation(WarpOperation::kRegisters, nullptr, nullptr);
}

void BlockRunner::begin_products(float* d, unsigned count) {
  GroupProducts& products = threads_[current_].products;
  if (products.begun != nullptr) {
    if (products.begun != d || products.accumulators.size() != count) {
      fail("wgmma_begin: other accumulators are in use");
    }
    return;
  }
  products.begun = d;
  products.accumulators.assign(d, d + count);
  std::memset(d, kPoison, count * sizeof(float));
}

void BlockRunner::start_product(float* d, const void* a, const void* b, bool add, bool half) {
  GroupProducts& products = threads_[current_].products;
  const float* const end = products.begun + products.accumulators.size();
  if (products.begun == nullptr || d < products.begun || d + kKeys / 2 > end) {
    fail("wgmma: the accumulators are not those of wgmma_begin");
  }
  constexpr std::size_t kWholeRows = 64 * 128, kAllKeys = 128 * 128, kAtom = 1024, kStep = 32;
  for (const void* operand : {a, b}) {
    const auto* const begin = static_cast<const unsigned char*>(operand);
    const auto offset = static_cast<std::size_t>(begin - shared_);
    if (offset % kAtom % kStep != 0 || offset % kAtom >= 128) {
      fail("wgmma: an operand does not begin at eight rows of 128 bytes and a step of 32");
    }
    check_shared(begin - offset % kAtom, operand == a ? kWholeRows : kAllKeys, "wgmma");
  }
  products.started.push_back(
      {d, static_cast<const unsigned char*>(a), static_cast<const unsigned char*>(b), add, half});
}

void BlockRunner::commit_products() {
  GroupProducts& products = threads_[current_].products;
  products.committed = products.started.size();
}

void BlockRunner::wait_for_products(float* d, unsigned count) {
  GroupProducts& products = threads_[current_].products;
  if (products.committed != products.started.size()) {
    fail("wgmma_wait with products that were not committed");
  }
  if (products.begun != d || products.accumulators.size() != count) {
    fail("wgmma_wait: the accumulators are not those of wgmma_begin");
  }
  std::memcpy(d, products.accumulators.data(), count * sizeof(float));
  WaitLane lane{&products, current_ / kWarpSize % 4};
  warp_operation(WarpOperation::kGroupProducts, &lane, &multiply_all);
  products.started.clear();
  products.committed = 0;
  products.begun = nullptr;
}

void change_registers(int count, bool up) {
  BlockRunner::running().change_registers(static_cast<unsigned>(count), up);
}

void begin_products(float* d, unsigned count) { BlockRunner::running().begin_products(d, count); }

void start_product(float* d, const void* a, const void* b, bool add, bool half) {
  BlockRunner::running().start_product(d, a, b, add, half);
}

void commit_products() { BlockRunner::running().commit_products(); }

void wait_for_products(float* d, unsigned count) {
  BlockRunner::running().wait_for_products(d, count);
}

}  // namespace attnscope::cuda::emulation
