#include "kernels/cuda/kernel/launch_set.h"
#include "kernels/cuda/kernel/mma_product.h"

namespace attnscope::cuda {

const KernelSet* mma_f16_kernels() {
  static const KernelSet set = LaunchSet<MmaProduct<HalfTag>>::set("mma", false, 80);
  return &set;
}

const KernelSet* mma_bf16_kernels() {
  static const KernelSet set = LaunchSet<MmaProduct<BfloatTag>>::set("mma", false, 80);
  return &set;
}

}  // namespace attnscope::cuda
