#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/problem/token_grid.h"
#include "core/reference/synthetic_heads.h"

namespace attnscope {

/// A synthetic capture: a call for each of steps × layers, all with the same heads but
/// other random values, one batch item, scale 1/√head_dim.
struct SyntheticCapture {
  TokenGrid tokens;
  std::string model;            ///< shown
  std::vector<HeadKind> kinds;  ///< of every query head
  int64_t head_dim = 0;
  int64_t layers = 1;
  int64_t steps = 1;
  DType dtype = DType::bf16;  ///< bf16, f16 or f32
  bool values = false;        ///< V as well
  uint64_t seed = 0;

  int64_t calls() const { return layers * steps; }
};

/// Checks what can be checked before anything is written, and returns the bytes of all tensors.
/// Throws Error(usage) for heads that the grid or head_dim cannot hold, for sizes beyond 2^63, and
/// for a single file with several calls.
int64_t check_synthetic_capture(const SyntheticCapture& capture, const std::filesystem::path& out);

struct SyntheticWriteControl {
  bool force = false;
  std::stop_token stop{};
  std::function<void(int64_t bytes)> progress{};  ///< bytes of tensors written so far
};

/// Writes OUT.safetensors, or a folder OUT with capture.json and a file a call, in rows of a few
/// hundred tokens: memory does not grow with the capture. A folder is built as OUT.part, its
/// capture.json last, and renamed. `force` replaces an earlier capture, and nothing else: a folder
/// with anything but a capture's files is refused. Throws Error(file) and Error(resource), and
/// Error(interrupted) once a stop was requested; then nothing is left behind.
void write_synthetic_capture(const SyntheticCapture& capture, const std::filesystem::path& out,
                             const SyntheticWriteControl& control);

}  // namespace attnscope
