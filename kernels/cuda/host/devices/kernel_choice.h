// Which kernels a device runs, and what a build has left out for it.
#pragma once

#include <string>

#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/kernel/kernel_set.h"
#include "kernels/cuda/module.h"

namespace attnscope::cuda {

/// True where the build has the kernels (`set` is not null), and the device runs them.
bool runs(const KernelSet* set, const Device& device);

/// Throws Error(unavailable) where the kernels that were chosen cannot run.
void require_kernels(DeviceKernels kernels, const Device& device);

/// A line that says which kernels a device of this compute capability would run that are not in the
/// build, `has_wgmma` and `has_mma`; empty where none is.
std::string missing_kernels(const std::string& device, int capability, bool has_wgmma,
                            bool has_mma);

}  // namespace attnscope::cuda
