#pragma once

#include <memory>
#include <optional>

#include "viewer/gl/block_texture.h"
#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// What lies over a block of a mask: nothing (transparent) where it is kept, else a veil, or by the
/// weight that is lost there, where `most_lost` is the most of a block.
ImU32 veil_colour(const Theme& theme, const HeadMask& mask, size_t block,
                  std::optional<double> most_lost);
/// most_lost() where the scene shows the weight that its mask loses, and it is known.
std::optional<double> shown_loss(const Scene& scene);

/// The sparse mask over the matrix: what it drops lies under a veil, block by block,
/// or has a colour by the weight that is lost there.
class MaskOverlay {
 public:
  /// Clipped by the caller.
  void draw(const Ui& ui, const Scene& scene, const ViewTransform& view);
  int64_t texture_bytes() const { return texture_.bytes(); }

 private:
  void upload(const Ui& ui, const std::shared_ptr<const HeadMask>& mask,
              std::optional<double> most_lost);

  gl::BlockTexture texture_;
  std::shared_ptr<const HeadMask> of_;  ///< what the texture was made of
  ImU32 veil_ = 0;
  bool lost_ = false;
};

}  // namespace attnscope
