#include "kernels/cuda/kernel/launch_set.h"
#include "kernels/cuda/kernel/stored_product.h"

namespace attnscope::cuda {

const KernelSet& stored_kernels() {
  static const KernelSet set = LaunchSet<StoredProduct>::set("cublas", true, 0);
  return set;
}

}  // namespace attnscope::cuda
