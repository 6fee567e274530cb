#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace attnscope {

/// Totals over the launches of one shape on one device, timed by the device's own clock.
/// A value.
struct LaunchProfile {
  std::string device;   ///< its number and name: "0 NVIDIA H100"
  std::string kernel;   ///< "row sums", "copy to the host" …
  std::string product;  ///< what multiplies: "mma", "cublas" …; empty where nothing does
  /// Thread blocks; 0 for copies, and for cuBLAS, which chooses and does not tell.
  std::array<int64_t, 3> grid{};
  int threads = 0;           ///< of a block
  int registers = 0;         ///< of a thread
  int64_t shared_bytes = 0;  ///< of a block
  int resident_blocks = 0;   ///< that a multiprocessor holds at once
  double occupancy = 0;      ///< share of the warps that a multiprocessor can hold, in [0, 1]
  int multiprocessors = 0;   ///< of the device
  int splits = 0;            ///< blocks among which the keys of a tile of rows are shared out
  int64_t launches = 0;
  double seconds = 0;
  double flops = 0;  ///< of products of queries and keys, or weights and values; 0: none here
  double bytes = 0;  ///< of device memory: inputs once, and outputs

  int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  bool has_shape() const { return blocks() > 0; }
  /// False where some multiprocessors have nothing to do.
  bool fills_device() const { return !has_shape() || blocks() >= multiprocessors; }
};

}  // namespace attnscope
