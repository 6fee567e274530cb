#pragma once

#include <memory>

#include "core/tensor/device_reader.h"

namespace attnscope::cuda {

/// The memory of all devices that CUDA sees, for those who compute elsewhere. Takes at most 1 MiB
/// of each device that it reads, and as much page-locked memory.
std::unique_ptr<DeviceReader> make_device_reader();

}  // namespace attnscope::cuda
