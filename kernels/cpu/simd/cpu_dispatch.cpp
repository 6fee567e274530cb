#include "kernels/cpu/simd/cpu_dispatch.h"

#include <algorithm>
#include <iterator>

#include "kernels/common/tile_unit.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/cpu/simd/targets.h"

#define HWY_TARGET_INCLUDE "kernels/cpu/simd/cpu_dispatch.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/simd/encode-inl.h"
#include "kernels/cpu/simd/exp2-inl.h"
#include "kernels/cpu/simd/key_rows-inl.h"
#include "kernels/cpu/simd/lane_totals-inl.h"
#include "kernels/cpu/simd/reductions-inl.h"
#include "kernels/cpu/simd/score_epilogues-inl.h"
#include "kernels/cpu/simd/tile_kernels-inl.h"
#include "kernels/cpu/simd/value_product-inl.h"

#undef ATTNSCOPE_HAVE_BF16_INSTRUCTION
#if HWY_TARGET == HWY_AVX3
#define ATTNSCOPE_HAVE_BF16_INSTRUCTION 1
#else
#define ATTNSCOPE_HAVE_BF16_INSTRUCTION 0
#endif

// Dot products of float32 panels.
HWY_BEFORE_NAMESPACE();
#define ATTNSCOPE_DOT_NAMESPACE dot_f32
#define ATTNSCOPE_DOT(sum, a, b) hn::MulAdd(a, b, sum)
#define ATTNSCOPE_DOT_PRODUCTS 1
#include "kernels/cpu/simd/product_block-inl.h"
#undef ATTNSCOPE_DOT
#undef ATTNSCOPE_DOT_NAMESPACE
#undef ATTNSCOPE_DOT_PRODUCTS
HWY_AFTER_NAMESPACE();

// vdpbf16ps in float32 instructions: the odd halves' products are added first.
HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {
HWY_INLINE FloatVec dot_pairs(FloatVec sum, FloatVec a, FloatVec b) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto odd = hn::Set(du, 0xffff0000u);
  const auto a_bits = hn::BitCast(du, a);
  const auto b_bits = hn::BitCast(du, b);
  sum = hn::MulAdd(hn::BitCast(d, hn::And(a_bits, odd)), hn::BitCast(d, hn::And(b_bits, odd)), sum);
  return hn::MulAdd(hn::BitCast(d, hn::ShiftLeft<16>(a_bits)),
                    hn::BitCast(d, hn::ShiftLeft<16>(b_bits)), sum);
}
}  // namespace attnscope::HWY_NAMESPACE
#define ATTNSCOPE_DOT_NAMESPACE dot_bf16_emulated
#define ATTNSCOPE_DOT(sum, a, b) dot_pairs(sum, a, b)
#define ATTNSCOPE_DOT_PRODUCTS 2
#include "kernels/cpu/simd/product_block-inl.h"
#undef ATTNSCOPE_DOT
#undef ATTNSCOPE_DOT_NAMESPACE
HWY_AFTER_NAMESPACE();

#if ATTNSCOPE_HAVE_BF16_INSTRUCTION
// Highway has no target with AVX-512-BF16 before 1.0.5: one instruction is added to its AVX3.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512bf16")
namespace attnscope::HWY_NAMESPACE {
HWY_INLINE FloatVec dot_pairs_native(FloatVec sum, FloatVec a, FloatVec b) {
  return FloatVec{_mm512_dpbf16_ps(sum.raw, (__m512bh)a.raw, (__m512bh)b.raw)};
}
}  // namespace attnscope::HWY_NAMESPACE
#define ATTNSCOPE_DOT_NAMESPACE dot_bf16
#define ATTNSCOPE_DOT(sum, a, b) dot_pairs_native(sum, a, b)
#include "kernels/cpu/simd/product_block-inl.h"
#undef ATTNSCOPE_DOT
#undef ATTNSCOPE_DOT_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#undef ATTNSCOPE_DOT_PRODUCTS

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

/// Numbers that spin_exp2 and spin_table_exp2 take the exponentials of.
constexpr int64_t kSpinCount = 2048;

double spin_exp2(int64_t iterations, const float* source, float* destination) {
  const FloatTag d;
  const FloatVec high = hn::Set(d, kLog2eHigh);
  const FloatVec low = hn::Set(d, kLog2eLow);
  const FloatVec reference = hn::Zero(d);
  for (int64_t i = 0; i < iterations; ++i) {
    for (int64_t at = 0; at < kSpinCount; at += kLanes) {
      hn::Store(scaled_exp2(d, hn::Load(d, source + at), high, low, reference), d,
                destination + at);
    }
  }
  return static_cast<double>(kSpinCount * iterations);
}

double spin_table_exp2(int64_t iterations, const float* source, float* destination) {
  const FloatTag d;
  const ExpTable table(SplitFactor{kLog2eHigh, kLog2eLow});
  const FloatVec row = hn::Set(d, ExpTable::row_constant(0));
  for (int64_t i = 0; i < iterations; ++i) {
    for (int64_t at = 0; at < kSpinCount; at += kLanes) {
      hn::Store(table.power(hn::Load(d, source + at), row).value(), d, destination + at);
    }
  }
  return static_cast<double>(kSpinCount * iterations);
}

const CpuKernels& kernels() {
  static const CpuKernels table = [] {
    CpuKernels k;
#if HWY_TARGET == HWY_AVX3
    k.isa = "AVX-512";
#elif HWY_TARGET == HWY_AVX2
    k.isa = "AVX2";
#elif HWY_TARGET == HWY_NEON
    k.isa = "NEON";
#elif HWY_TARGET == HWY_WASM
    k.isa = "SIMD128";
#else
    k.isa = "scalar";
#endif
    k.fused_multiply_add = HWY_NATIVE_FMA != 0;
    k.f32 = {.raw = dot_f32::multiply_block,
             .softmax = dot_f32::softmax_block,
             .spin = dot_f32::spin_dot};
    k.bf16_emulated = {.raw = dot_bf16_emulated::multiply_block,
                       .softmax = dot_bf16_emulated::softmax_block,
                       .spin = dot_bf16_emulated::spin_dot};
#if ATTNSCOPE_HAVE_BF16_INSTRUCTION
    if (__builtin_cpu_supports("avx512bf16")) {
      k.bf16 = {.raw = dot_bf16::multiply_block,
                .softmax = dot_bf16::softmax_block,
                .spin = dot_bf16::spin_dot};
    }
#endif
    k.tiles_emulated = bf16_tile_kernels(false);
    k.f16_tiles_emulated = f16_tile_kernels(false);
    if (tile_unit().usable) {
      k.tiles = bf16_tile_kernels(true);
      if (tile_unit().multiplies_f16) k.f16_tiles = f16_tile_kernels(true);
    }
    k.largest_bits = largest_bits;
    k.split_rows = split_rows;
    k.cap_pass = cap_pass;
    k.softmax_pass = softmax_pass;
    k.far_softmax_pass = far_softmax_pass;
    k.exponent_maxima = exponent_maxima;
    k.linear_pass = linear_pass;
    k.sigmoid_pass = sigmoid_pass;
    k.logit_pass = logit_pass;
    k.encode_weights = encode_weights;
    k.encode_logits = encode_logits;
    k.reduce_rows = reduce_rows;
    k.add_box = add_box;
    k.multiply_values = multiply_values;
    k.add_scaled = add_scaled;
    k.add_diagonals = add_diagonals;
    k.find_weight = find_weight;
    k.negative_plogp = negative_plogp;
    k.spin_exp2 = spin_exp2;
    k.spin_table_exp2 = spin_table_exp2;
    return k;
  }();
  return table;
}

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnscope {

#if HWY_ARCH_X86

// Which target the processor has is asked here and not of Highway, whose library times a clock for
// milliseconds whenever a process loads it.
namespace {

bool supports_avx2() {
  constexpr unsigned kHalfFloats = 1u << 29;   // CPUID 1, ECX
  constexpr unsigned kLeadingZeros = 1u << 5;  // CPUID 80000001, ECX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kHalfFloats) == 0) return false;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d) == 0 || (c & kLeadingZeros) == 0) return false;
  // These answers take into account which registers the system saves.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}

bool supports_avx3() {
  return supports_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
}

std::vector<const CpuKernels*> find_kernels() {
  std::vector<const CpuKernels*> found;
#if HWY_TARGETS & HWY_AVX3
  if (supports_avx3()) found.push_back(&N_AVX3::kernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  if (supports_avx2()) found.push_back(&N_AVX2::kernels());
#endif
#if HWY_STATIC_TARGET != HWY_AVX3 && HWY_STATIC_TARGET != HWY_AVX2
  // This instruction set is the build's least one: every processor that it is for has it.
  found.push_back(&HWY_STATIC_DISPATCH(kernels)());
#endif
  return found;
}
}  // namespace

#elif HWY_ARCH_WASM

namespace {
// A module has one instruction set, or does not load.
std::vector<const CpuKernels*> find_kernels() { return {&HWY_STATIC_DISPATCH(kernels)()}; }
}  // namespace

#else

HWY_EXPORT(kernels);

namespace {
// The entry of Highway's table for one instruction set: its own choice, which all of the process
// share, stays as it is.
const CpuKernels& kernels_for(int64_t target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  // Builds for one instruction set alone have a table of one entry.
  const size_t last = std::size(HWY_DISPATCH_TABLE(kernels)) - 1;
  return HWY_DISPATCH_TABLE(kernels)[std::min(chosen.GetIndex(), last)]();
}

std::vector<const CpuKernels*> find_kernels() {
  std::vector<const CpuKernels*> found;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    found.push_back(&kernels_for(target));
  }
  return found;
}
}  // namespace

#endif

const std::vector<const CpuKernels*>& available_cpu_kernels() {
  static const std::vector<const CpuKernels*> kernels_of_processor = find_kernels();
  return kernels_of_processor;
}

const CpuKernels& best_cpu_kernels() { return *available_cpu_kernels().front(); }

}  // namespace attnscope
#endif  // HWY_ONCE
