// The tile unit: its emulation against the definition of the instructions, the instructions against
// the emulation, what f16 and f32 tensors become for it, and its exponential.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/backend_factory.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/common/tile_unit.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/simd/cpu_dispatch.h"
#include "kernels/cpu/simd/key_rows.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace attnscope::test {
namespace {

constexpr int64_t kPairs = 32;  // 64 channels

float widen(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/// The type of a pair's two numbers.
struct Bf16Number {
  static float value(uint32_t bits) { return widen(bits << 16); }
};
struct F16Number {
  static float value(uint32_t bits) { return to_float(f16{static_cast<uint16_t>(bits)}); }
};

/// A subnormal number is 0 of its sign.
float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// Rows of queries [32][kPairs] and a panel of keys [kPairs][32], pairs of bf16 or f16.
struct Operands {
  alignas(64) uint32_t q[kTileUnitRows * kPairs];
  alignas(64) uint32_t k[kPairs * kPanelKeys];

  /// Fills q and k with the bits that `number` gives, two numbers a pair.
  template <typename Number>
  explicit Operands(Number number) {
    for (uint32_t& pair : q) pair = number() << 16 | number();
    for (uint32_t& pair : k) pair = number() << 16 | number();
  }

  /// Every step as Intel writes it down, one number at a time.
  template <typename Number>
  float defined_product(int64_t row, int64_t key) const {
    float sum = 0;
    for (int64_t step = 0; step < kPairs; step += 16) {
      float low = 0;
      float high = 0;
      for (int64_t pair = step; pair < step + 16; ++pair) {
        const uint32_t a = q[row * kPairs + pair];
        const uint32_t b = k[pair * kPanelKeys + key];
        low = flushed(std::fma(flushed(Number::value(a & 0xffffu)),
                               flushed(Number::value(b & 0xffffu)), low));
        high = flushed(
            std::fma(flushed(Number::value(a >> 16)), flushed(Number::value(b >> 16)), high));
      }
      sum = flushed(sum + flushed(low + high));
    }
    return sum;
  }

  std::vector<float> products(const CpuKernels::Products& kernels) const {
    std::vector<float> memory(static_cast<size_t>(kTileUnitRows * kBlockKeys) + 16, -1.0f);
    auto* out = reinterpret_cast<float*>(round_up(reinterpret_cast<intptr_t>(memory.data()), 64));
    const FlushDenormals flush;
    kernels.raw({.q = reinterpret_cast<const float*>(q),
                 .k = reinterpret_cast<const float*>(k),
                 .steps = kPairs,
                 .rows = kTileUnitRows,
                 .panels = 1,
                 .out = out,
                 .out_stride = kBlockKeys});
    std::vector<float> sums;
    for (int64_t row = 0; row < kTileUnitRows; ++row) {
      sums.insert(sums.end(), out + row * kBlockKeys, out + row * kBlockKeys + kPanelKeys);
    }
    // Other panels stay as they were.
    CHECK(out[kPanelKeys] == -1.0f);
    return sums;
  }
};

/// Products by the kernel that takes `keys` keys as rows, for `rows` queries; others are −1.
std::vector<float> key_row_products(const Operands& operands, const CpuKernels::Products& kernels,
                                    int64_t rows, int64_t keys) {
  std::vector<uint32_t> k(static_cast<size_t>(round_up(keys, kKeyRowTile) * kPairs));
  alignas(64) uint32_t q[kPairs * kKeyRowTile] = {};
  for (int64_t pair = 0; pair < kPairs; ++pair) {
    for (int64_t key = 0; key < keys; ++key) {
      k[static_cast<size_t>(key * kPairs + pair)] = operands.k[pair * kPanelKeys + key];
    }
    for (int64_t row = 0; row < rows; ++row) {
      q[pair * kKeyRowTile + row] = operands.q[row * kPairs + pair];
    }
  }
  std::vector<float> out(static_cast<size_t>(kTileUnitRows * kPanelKeys), -1.0f);
  const FlushDenormals flush;
  kernels.key_rows({.keys = reinterpret_cast<const std::byte*>(k.data()),
                    .key_stride = kPairs * 4,
                    .count = keys,
                    .queries = reinterpret_cast<const float*>(q),
                    .rows = rows,
                    .pairs = kPairs,
                    .out = out.data(),
                    .out_stride = kPanelKeys});
  return out;
}

/// Numbers of all exponents; where terms cancel, and where results are subnormal.
std::vector<std::unique_ptr<Operands>> many_operands() {
  static std::mt19937 random(5);
  std::vector<std::unique_ptr<Operands>> all;
  const auto of_exponents = [&](unsigned lowest, unsigned count) {
    all.push_back(std::make_unique<Operands>([=] {
      const unsigned bits = random();
      return (bits & 0x807fu) | (lowest + (bits >> 16) % count) << 7;
    }));
  };
  for (int i = 0; i < 20; ++i) {
    of_exponents(120, 8);
    of_exponents(100, 60);
    of_exponents(0, 2);    // subnormal operands
    of_exponents(55, 16);  // products about 2⁻¹²⁶
  }
  return all;
}

/// f16 numbers of all exponents, subnormal ones among them; and subnormal ones alone.
std::vector<std::unique_ptr<Operands>> many_f16_operands() {
  static std::mt19937 random(7);
  std::vector<std::unique_ptr<Operands>> all;
  const auto of_exponents = [&](unsigned lowest, unsigned count) {
    all.push_back(std::make_unique<Operands>([=] {
      const unsigned bits = random();
      return (bits & 0x83ffu) | (lowest + (bits >> 16) % count) << 10;
    }));
  };
  for (int i = 0; i < 20; ++i) {
    of_exponents(12, 6);
    of_exponents(0, 31);
    of_exponents(0, 1);
  }
  return all;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

/// Products that are not what the instruction is defined to give.
template <typename Number>
int wrong_products(const Operands& operands, const CpuKernels::Products& kernels) {
  const std::vector<float> sums = operands.products(kernels);
  int wrong = 0;
  for (int64_t i = 0; i < kTileUnitRows * kPanelKeys; ++i) {
    const float expected = operands.defined_product<Number>(i / kPanelKeys, i % kPanelKeys);
    wrong += same_bits(sums[static_cast<size_t>(i)], expected) ? 0 : 1;
  }
  return wrong;
}

std::vector<const CpuKernels*> emulating_kernels() {
  std::vector<const CpuKernels*> all;
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    if (kernels->tiles_emulated.raw != nullptr) all.push_back(kernels);
  }
  return all;
}

/// One row of `values` as a head of K or Q.
HeadTensor head_of(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(dtype_bytes(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    const f16 half = to_f16(values[i]);
    if (dtype == DType::f16) std::memcpy(bytes.data() + 2 * i, &half, 2);
    if (dtype == DType::f32) std::memcpy(bytes.data() + 4 * i, &values[i], 4);
  }
  return HeadTensor(
      std::make_shared<MemoryTensor>(
          "k", dtype, std::vector<int64_t>{1, static_cast<int64_t>(values.size())}, bytes),
      Layout::sd);
}

}  // namespace

TEST_CASE("the emulated tile unit adds as the instruction is defined") {
  const auto kernels = emulating_kernels();
  if (kernels.empty()) return skip_test("no instruction set here has fused multiply-adds");
  for (const auto& operands : many_operands()) {
    for (const CpuKernels* k : kernels) {
      INFO(k->isa);
      CHECK(wrong_products<Bf16Number>(*operands, k->tiles_emulated) == 0);
    }
  }
  for (const auto& operands : many_f16_operands()) {
    for (const CpuKernels* k : kernels) {
      INFO(k->isa << ", f16");
      CHECK(wrong_products<F16Number>(*operands, k->f16_tiles_emulated) == 0);
    }
  }
}

TEST_CASE("the tile unit gives the bytes of its emulation") {
  const CpuKernels& kernels = best_cpu_kernels();
  if (kernels.tiles.raw == nullptr) return skip_test("no AMX to test: " + tile_unit().obstacle);
  for (const auto& operands : many_operands()) {
    const auto native = operands->products(kernels.tiles);
    const auto emulated = operands->products(kernels.tiles_emulated);
    CHECK(std::equal(native.begin(), native.end(), emulated.begin(), same_bits));
  }
}

TEST_CASE("the tile unit of f16 gives the bytes of its emulation") {
  const CpuKernels& kernels = best_cpu_kernels();
  if (kernels.f16_tiles.raw == nullptr) return skip_test("no AMX with fp16 to test");
  for (const auto& operands : many_f16_operands()) {
    const auto native = operands->products(kernels.f16_tiles);
    const auto emulated = operands->products(kernels.f16_tiles_emulated);
    CHECK(std::equal(native.begin(), native.end(), emulated.begin(), same_bits));
  }
}

TEST_CASE("keys as rows give the bytes of packed ones") {
  std::vector<std::pair<const CpuKernels*, const CpuKernels::Products*>> all;
  for (const CpuKernels* k : emulating_kernels()) {
    all.emplace_back(k, &k->tiles_emulated);
    all.emplace_back(k, &k->f16_tiles_emulated);
  }
  const CpuKernels& best = best_cpu_kernels();
  for (const CpuKernels::Products* products : {&best.tiles, &best.f16_tiles}) {
    if (products->raw != nullptr) all.emplace_back(&best, products);
  }
  if (all.empty()) return skip_test("no instruction set here has fused multiply-adds");
  // Whatever the numbers mean; finite ones of both kinds.
  for (const auto& operands : many_f16_operands()) {
    for (const auto& [isa, kernels] : all) {
      for (const auto& [rows, keys] : {std::pair(1, 32), {16, 32}, {5, 17}, {12, 3}}) {
        INFO(isa->isa << ", " << rows << " rows, " << keys << " keys");
        const std::vector<float> packed = operands->products(*kernels);
        const std::vector<float> given = key_row_products(*operands, *kernels, rows, keys);
        int wrong = 0;
        for (int64_t i = 0; i < kTileUnitRows * kPanelKeys; ++i) {
          const bool there = i / kPanelKeys < rows && i % kPanelKeys < keys;
          // Whole tiles of keys are written.
          const bool beside = i / kPanelKeys < rows && i % kPanelKeys < round_up(keys, kKeyRowTile);
          const auto at = static_cast<size_t>(i);
          if (there) wrong += same_bits(given[at], packed[at]) ? 0 : 1;
          if (!beside) wrong += given[at] == -1.0f ? 0 : 1;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("the largest bits tell of every number") {
  std::mt19937 random(9);
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const int64_t bytes = dtype_bytes(dtype);
      for (const int64_t count : {1, 31, 64, 257}) {
        // From an odd address on.
        std::vector<std::byte> data(static_cast<size_t>(count * bytes) + 1);
        for (std::byte& byte : data) byte = static_cast<std::byte>(random() % 64);
        for (const int64_t at : {int64_t{0}, count / 2, count - 1}) {
          const uint32_t large = dtype == DType::f32 ? 0xff800001u : 0xff81u;
          std::vector<std::byte> spoilt = data;
          std::memcpy(spoilt.data() + 1 + at * bytes, &large, static_cast<size_t>(bytes));
          INFO(kernels->isa << ", " << dtype_name(dtype) << ", " << at << " of " << count);
          CHECK(kernels->largest_bits(dtype, data.data() + 1, count) < 0x40000000u);
          CHECK(kernels->largest_bits(dtype, spoilt.data() + 1, count) ==
                (large & (dtype == DType::f32 ? 0x7fffffffu : 0x7fffu)));
        }
      }
    }
  }
}

TEST_CASE("f16 and f32 numbers are the sums of their parts") {
  std::mt19937 random(11);
  std::vector<float> values = {0.0f,     -0.0f,         1.0f,          -1.0f / 3, 65504.0f,
                               0x1p-24f, 0x1.8p-20f,    0x1.fffffep0f, 1e30f,     -1e-30f,
                               0x1p127f, 3.4028235e38f, -FLT_MAX};
  while (values.size() < 1024) {
    values.push_back(std::ldexp(std::uniform_real_distribution<float>(-2, 2)(random),
                                static_cast<int>(random() % 80) - 40));
  }
  for (const DType dtype : {DType::f16, DType::f32}) {
    std::vector<float> given = values;
    for (float& x : given) {
      if (dtype != DType::f16) continue;
      x = to_float(to_f16(std::clamp(x, -65504.0f, 65504.0f)));
    }
    const PackedFormat format{dtype, 1024, ScoreFunction::softmax, PackedProducts::tiles};
    std::vector<float> panel(static_cast<size_t>(packed_key_elements(format, 1)));
    const PackedKeys packed = pack_keys(format, head_of(dtype, given), 0, 0, 1, panel.data());
    const int64_t pairs = format.steps() / format.parts();
    int wrong = 0;
    double squares = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      double sum = 0;
      for (int64_t part = 0; part < format.parts(); ++part) {
        uint32_t pair;
        std::memcpy(
            &pair,
            &panel[static_cast<size_t>((part * pairs + static_cast<int64_t>(i / 2)) * kPanelKeys)],
            sizeof(pair));
        const float number = widen(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
        CHECK(std::isfinite(number));
        sum += static_cast<double>(number);
      }
      wrong += sum == static_cast<double>(given[i]) ? 0 : 1;
      squares += static_cast<double>(given[i]) * static_cast<double>(given[i]);
    }
    CHECK(wrong == 0);
    if (dtype == DType::f16) {
      CHECK(std::fabs(static_cast<double>(packed.largest_key) / std::sqrt(squares) - 1) < 1e-5);
    } else {
      CHECK(std::isinf(packed.largest_key));
    }
  }
}

TEST_CASE(
    "powers by the table are right to a few units in the last place, wherever the reference") {
  const auto kernels = emulating_kernels();
  if (kernels.empty()) return skip_test("no instruction set here has fused multiply-adds");
  // One channel: q runs over numbers, k is 1, so that the product is q itself.
  const SplitFactor factor{1.4426950216293335f, 1.9259629911266175e-8f};
  alignas(64) static float q[kMaxGroupRows * 16];
  alignas(64) static float k[kBlockPanels * 16 * kPanelKeys];
  alignas(64) static float out[2][kMaxGroupRows * kBlockKeys];
  std::mt19937 random(3);
  std::vector<std::vector<float>> of_sets;
  for (int round = 0; round < 40; ++round) {
    const float width = round < 30 ? 30.0f : 20000.0f;
    const auto number = [&](float w) {
      const float x = std::uniform_real_distribution<float>(-w, w)(random);
      uint32_t bits;
      std::memcpy(&bits, &x, sizeof(bits));
      return bits >> 16;
    };
    std::memset(q, 0, sizeof q);
    std::memset(k, 0, sizeof k);
    for (int64_t row = 0; row < kMaxGroupRows; ++row) {
      const uint32_t bits = number(width);
      std::memcpy(&q[row / kTileUnitRows * kTileUnitRows * 16 + row % kTileUnitRows * 16], &bits,
                  4);
    }
    for (int64_t key = 0; key < kBlockKeys; ++key) {
      const uint32_t bits = number(1.0f);
      std::memcpy(&k[key / kPanelKeys * 16 * kPanelKeys + key % kPanelKeys], &bits, 4);
    }
    std::vector<float> entries;
    for (const CpuKernels* isa : kernels) {
      const FlushDenormals flush;
      ProductBlock block{.q = q,
                         .k = k,
                         .steps = 16,
                         .rows = kMaxGroupRows,
                         .panels = 255,
                         .out = out[0],
                         .out_stride = kBlockKeys};
      RowReferences rows{};
      isa->tiles_emulated.softmax(block, factor, rows);
      block.out = out[1];
      for (float& reference : rows.references) reference = 7;
      isa->tiles_emulated.softmax(block, factor, rows);
      double worst = 0;
      int moved = 0;
      for (int64_t i = 0; i < kMaxGroupRows * kBlockKeys; ++i) {
        const int64_t row = i / kBlockKeys;
        const int64_t key = i % kBlockKeys;
        uint32_t a, b;
        std::memcpy(&a, &q[row * 16], 4);
        std::memcpy(&b, &k[key / kPanelKeys * 16 * kPanelKeys + key % kPanelKeys], 4);
        const float product = widen(a << 16) * widen(b << 16);
        const double expected = std::exp(static_cast<double>(product));
        if (expected < 0x1p-110 || expected > 0x1p120) continue;
        worst = std::max(worst, std::fabs(static_cast<double>(out[0][i]) / expected - 1));
        moved += out[0][i] == out[1][i] * 128 ? 0 : 1;
      }
      INFO(isa->isa << ", |x| up to " << width << ": " << worst);
      CHECK(worst > 1e-9);
      CHECK(worst < 2.3e-7);
      CHECK(moved == 0);
      if (entries.empty()) entries.assign(out[0], out[0] + kMaxGroupRows * kBlockKeys);
      // Beyond, instruction sets become infinite at their own places, and no sum is sound.
      CHECK(std::equal(entries.begin(), entries.end(), out[0], [](float a, float b) {
        return same_bits(a, b) || (a >= 0x1p127f && b >= 0x1p127f);
      }));
    }
  }
}

TEST_CASE("what tiles compute is recorded under their name, what they do not is not") {
  const auto kernels = emulating_kernels();
  if (kernels.empty()) return skip_test("no instruction set here has fused multiply-adds");
  const auto backend = make_cpu_backend({.threads = 1, .products = CpuProducts::tiles_emulated});
  CHECK(backend->name() == "cpu-amx");
  CHECK(backend->description().find("AMX") != std::string::npos);
  const auto with_f16 =
      make_cpu_backend({.threads = 1, .products = CpuProducts::f16_tiles_emulated});
  CHECK(with_f16->name() == "cpu-amx-fp16");
  const Shape shape{1, 1, 1, 3, 40, 8};
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const Oracle oracle({.shape = shape, .dtype = dtype});
    CHECK(backend->name_for(oracle.problem()) == "cpu-amx");
    CHECK(with_f16->name_for(oracle.problem()) ==
          (dtype == DType::f16 ? "cpu-amx-fp16" : "cpu-amx"));
  }
  CHECK(with_f16->name_for(Oracle({.shape = shape, .score = ScoreFunction::sigmoid}).problem()) ==
        "cpu");
  CHECK(backend->name_for(Oracle({.shape = shape}).problem()) == "cpu-amx");
  for (const ScoreFunction score : {ScoreFunction::sigmoid, ScoreFunction::linear_relu}) {
    CHECK(backend->name_for(Oracle({.shape = shape, .score = score}).problem()) == "cpu");
  }
  CHECK(backend->name_for(Oracle({.shape = {1, 1, 1, 3, 40, 1026}}).problem()) == "cpu");
}

TEST_CASE("instructions that are not here are refused by name, and automatic goes without") {
  const auto refuses = [](BackendKind kind, const std::string& name) {
    try {
      make_backend(kind, {.threads = 1});
      FAIL(name << " was made");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unavailable);
      CHECK(std::string(error.what()).rfind("backend " + name + ": ", 0) == 0);
    }
  };
  const bool amx = cpu_products_obstacle(CpuProducts::tiles).empty();
  if (amx) {
    CHECK(make_backend(BackendKind::cpu_amx, {.threads = 1})->name() == "cpu-amx");
  } else {
    refuses(BackendKind::cpu_amx, "cpu-amx");
  }
  const bool f16_amx = cpu_products_obstacle(CpuProducts::f16_tiles).empty();
  if (f16_amx) {
    CHECK(amx);
    CHECK(make_backend(BackendKind::cpu_amx_fp16, {.threads = 1})->name() == "cpu-amx-fp16");
  } else {
    refuses(BackendKind::cpu_amx_fp16, "cpu-amx-fp16");
  }
  if (best_cpu_kernels().bf16.softmax == nullptr) refuses(BackendKind::cpu_bf16, "cpu-bf16");
  if (!best_cpu_kernels().fused_multiply_add) refuses(BackendKind::cpu_fma, "cpu-fma");
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    const std::string obstacle = cpu_products_obstacle(CpuProducts::floats, kernels);
    CHECK((obstacle == "") == kernels->fused_multiply_add);
  }
  const std::string best = make_cpu_backend({.threads = 1})->name();
  CHECK((best == "cpu-amx-fp16") == f16_amx);
  CHECK((best == "cpu-amx") == (amx && !f16_amx));
  CHECK(!make_backend(BackendKind::cpu, {.threads = 1})->name().starts_with("cpu-amx"));
  if (best_cpu_kernels().fused_multiply_add) {
    CHECK(make_backend(BackendKind::cpu_fma, {.threads = 1})->name() == "cpu");
  }
}

}  // namespace attnscope::test
