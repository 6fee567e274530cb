// Takes the place of mma_kernels.cu and wgmma_kernels.cu in builds without CuTe's headers.
#include "kernels/cuda/kernel/kernel_set.h"

namespace attnscope::cuda {

const KernelSet* wgmma_f16_kernels() { return nullptr; }
const KernelSet* wgmma_bf16_kernels() { return nullptr; }
const KernelSet* mma_f16_kernels() { return nullptr; }
const KernelSet* mma_bf16_kernels() { return nullptr; }

}  // namespace attnscope::cuda
