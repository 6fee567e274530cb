#include "kernels/cpu/keys/packed_head.h"

#include <sys/mman.h>

#include <cassert>
#include <new>
#include <numbers>

#include "core/base/checked_math.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/packing/key_packer.h"

namespace attnscope {
namespace {

SplitFactor split(double factor) {
  const auto high = static_cast<float>(factor);
  return {high, static_cast<float>(factor - static_cast<double>(high))};
}

std::optional<CapFactors> cap_factors_of(const AttentionProblem& call, int64_t head) {
  const double cap = call.score().cap;
  if (cap == 0) return std::nullopt;
  return CapFactors{split(call.scale(head) / cap), split(cap / call.scale(head))};
}

/// In large pages where the system has them: touching 30 MB in pages of 4 KiB takes as long as
/// packing it.
PanelMemory allocate_panels(int64_t elements) {
  constexpr int64_t kLargePage = int64_t{2} << 20;
  const int64_t bytes = round_up(elements * 4, 64);
  const bool large = bytes >= kLargePage;
  void* memory = nullptr;
  const auto alignment = static_cast<size_t>(large ? kLargePage : 64);
  if (posix_memalign(&memory, alignment, static_cast<size_t>(bytes)) != 0) throw std::bad_alloc();
#if defined(__linux__)
  // Advice: whether it is taken changes nothing but time. What lies behind the last whole page may
  // be others' memory.
  if (large) madvise(memory, static_cast<size_t>(bytes / kLargePage * kLargePage), MADV_HUGEPAGE);
#endif
  return PanelMemory(static_cast<float*>(memory));
}

}  // namespace

PackedHead::PackedHead(const AttentionProblem& call, int64_t batch_item, int64_t query_head,
                       const PackedFormat& packed_format, const CpuKernels& isa_kernels,
                       const CpuKernels::Products& isa_products, int most_threads,
                       const KnownProducts& known_products)
    : problem(call),
      batch(batch_item),
      head(query_head),
      format(packed_format),
      kernels(isa_kernels),
      products(isa_products),
      exponent_factor(split(call.scale(query_head) * std::numbers::log2e)),
      logit_factor(split(call.scale(query_head))),
      cap_factors(cap_factors_of(call, query_head)),
      threads(most_threads),
      known(known_products),
      largest_key(known.largest_key) {}

PackedHead::PackedHead(const AttentionProblem& call, int64_t batch_item, int64_t query_head,
                       const PackedFormat& packed_format, const CpuKernels& isa_kernels,
                       const CpuKernels::Products& isa_products,
                       const KnownProducts& known_products)
    : PackedHead(call, batch_item, query_head, packed_format, isa_kernels, isa_products, 1,
                 known_products) {}

PackedHead::PackedHead(const AttentionProblem& call, int64_t batch_item, int64_t query_head,
                       const PackedFormat& packed_format, const CpuKernels& isa_kernels,
                       const CpuKernels::Products& isa_products, KeyKeeping keeping,
                       int most_threads)
    : PackedHead(call, batch_item, query_head, packed_format, isa_kernels, isa_products,
                 most_threads, KnownProducts{}) {
  const int64_t key_head = call.kv_head(head);
  if (keeping == KeyKeeping::streamed) {
    assert(format.products != PackedProducts::tiles && "rows have to be held against all keys");
    key_exponent = KeyPacker(format, call.k(), batch, key_head, kBlockKeys).key_exponent();
    return;
  }
  panels = allocate_panels(packed_key_elements(format, call.num_keys()));
  const PackedKeys packed = pack_keys(format, call.k(), batch, key_head, threads, panels.get());
  key_exponent = packed.exponent;
  largest_key = packed.largest_key;
}

}  // namespace attnscope
