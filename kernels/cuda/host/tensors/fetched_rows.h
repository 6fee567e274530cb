// How rows that lie in a device's memory come to the device that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/layout.h"
#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/profile/launch_log.h"
#include "kernels/cuda/host/tensors/head_format.h"
#include "kernels/cuda/kernel/tensor_rows.h"

namespace attnscope::cuda {

enum class RowsWay {
  host,    ///< read on the host, and copied from there
  gather,  ///< they lie on this device: a kernel packs them
  peer,    ///< they are copied from another device that this one reaches
};

/// The way of a tensor's rows to `device`. `rows` are those of one of its heads
/// (HeadTensor::device_rows).
RowsWay way_of(const std::optional<DeviceRows>& rows, const HeadFormat& format, Device& device);

/// Why a tensor that lies in a device's memory takes the way through the host, for people; empty
/// where it does not lie there, or does not take it.
std::string host_way_reason(const HeadTensor& tensor, const HeadFormat& format, Device& device);

/// Queues what brings all of `rows` to `to`, packed, by one of the ways but the host's.
void fetch_rows(RowsWay way, const DeviceRows& rows, std::byte* to, cudaStream_t stream,
                LaunchLog& log);

/// Queues the same of rows `places` [count] (device pointer) of `rows`, which lie on this device.
void gather_listed_rows(const DeviceRows& rows, const int64_t* places, int64_t count, std::byte* to,
                        cudaStream_t stream, LaunchLog& log);

/// Rows as kernels take them: `rows` must be few enough for one launch.
TensorRows tensor_rows(const DeviceRows& rows);

}  // namespace attnscope::cuda
