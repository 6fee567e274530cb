#include <algorithm>

#include "kernels/cuda/kernel/launch_set.h"
#include "kernels/cuda/kernel/wgmma_product.h"

namespace attnscope::cuda {
namespace {

template <class Tag>
const KernelSet* mma_kernels() {
  return std::is_same_v<Tag, HalfTag> ? mma_f16_kernels() : mma_bf16_kernels();
}

/// Of all three kernels.
template <class Tag>
int64_t shared_bytes(int padded_dim) {
  return std::max(WgmmaProduct<Tag>::shared_bytes(padded_dim),
                  mma_kernels<Tag>()->shared_bytes(padded_dim));
}

/// Row sums and entries by wgmma; reductions, where a block has one tile only and most of its work
/// comes after the products, by mma.sync.
template <class Tag>
KernelSet make_set() {
  KernelSet set = *mma_kernels<Tag>();
  set.name = "wgmma";
  // The instructions are those of one generation.
  set.capability = 90;
  set.end_capability = 91;
  set.shared_bytes = shared_bytes<Tag>;
  RowLaunches<WgmmaProduct<Tag>>::put(set);
  return set;
}

}  // namespace

#ifdef ATTNSCOPE_SM90A
const KernelSet* wgmma_f16_kernels() {
  static const KernelSet set = make_set<HalfTag>();
  return &set;
}

const KernelSet* wgmma_bf16_kernels() {
  static const KernelSet set = make_set<BfloatTag>();
  return &set;
}
#else
// Without code for sm_90a there is nothing that a device could run.
const KernelSet* wgmma_f16_kernels() { return nullptr; }
const KernelSet* wgmma_bf16_kernels() { return nullptr; }
#endif

}  // namespace attnscope::cuda
