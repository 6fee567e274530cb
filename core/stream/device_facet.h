#pragma once

#include <memory>
#include <vector>

#include "core/stream/device_texels.h"
#include "core/stream/launch_profile.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// The abilities besides tiles of a backend with a device of its own (TileBackend::device):
/// how many rows fill it, times of its launches, and the way from there to a window's textures.
/// Thread-safe but where said otherwise; lives as long as its backend.
class DeviceFacet {
 public:
  virtual ~DeviceFacet() = default;

  /// Time and number of launches so far, by shape, where the device was asked to time them (empty
  /// otherwise); may be called while heads compute, whose calls under way are not in it yet.
  virtual std::vector<LaunchProfile> launch_profile() const = 0;

  /// Rows whose norms alone are best computed by one call of BoundHead::row_norms, because fewer
  /// leave the device half empty: plan_tiles makes panels of so many where no entries are wanted.
  /// 0: as many as the sink wants.
  virtual int64_t norm_panel_rows(const AttentionProblem& problem) const = 0;

  /// `head`, which this backend bound, as one that pools its entries itself; null: the caller pools
  /// what emit() yields. Lives as long as the head.
  virtual const TexelPooler* pooler(const BoundHead& head) const = 0;

  /// Brings texels straight to the textures of the calling thread's OpenGL context; one link at a
  /// time. Throws Error(unavailable) where the context belongs to none of the backend's devices.
  virtual std::unique_ptr<TextureLink> link_textures() const = 0;
};

}  // namespace attnscope
