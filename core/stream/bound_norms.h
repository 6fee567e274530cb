#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// The norms of all rows of a task, computed when its head is bound, many rows at a time: what a
/// device wants that few rows leave half empty (DeviceFacet::norm_panel_rows). Immutable from then
/// on; thread-safe.
class BoundNorms {
 public:
  /// `rows` at a time; `stopped` is asked between them, and may be empty. Throws what reading and
  /// computing throw, Error(interrupted) once it was stopped.
  BoundNorms(const HeadTask& task, const BoundHead& head, const TileBackend& backend, int64_t rows,
             const std::function<bool()>& stopped);

  /// In the order of the task's rows.
  std::span<const RowNorm> norms() const { return norms_; }

  /// Bytes that the norms take, and more that computing them needs. Overflow is INT64_MAX.
  static int64_t bytes(const HeadTask& task);
  static int64_t transient_bytes(const HeadTask& task, const TileBackend& backend, int64_t rows);

 private:
  std::vector<RowNorm> norms_;
};

}  // namespace attnscope
