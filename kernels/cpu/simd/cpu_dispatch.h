#pragma once

#include <vector>

#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope {

/// The best instruction set of this processor.
const CpuKernels& best_cpu_kernels();
/// All that this processor has, best first.
const std::vector<const CpuKernels*>& available_cpu_kernels();

}  // namespace attnscope
