#include "viewer/panels/map/mask_overlay.h"

#include <algorithm>

#include "viewer/panels/legend.h"

namespace attnscope {

void MaskOverlay::upload(const Ui& ui, const std::shared_ptr<const HeadMask>& mask) {
  const ImU32 veil = dropped_colour(ui.theme);
  // The numbers come later, and change no block.
  const bool same = of_ && of_->request == mask->request && of_->problem.empty();
  of_ = mask;
  if (same && veil == veil_) return;
  veil_ = veil;
  std::vector<uint32_t> colours(mask->kept.size());
  std::transform(
      mask->kept.begin(), mask->kept.end(), colours.begin(),
      [&](uint8_t kept) -> uint32_t { return kept != 0 ? veil & ~IM_COL32_A_MASK : veil; });
  texture_.upload(static_cast<int>(mask->query_blocks), static_cast<int>(mask->key_blocks),
                  colours);
}

void MaskOverlay::draw(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  if (!scene.mask || !scene.mask->problem.empty()) return;
  upload(ui, scene.mask);
  const HeadMask& mask = *scene.mask;
  // The last blocks may go beyond the map's edge.
  const auto rows = static_cast<double>(scene.geometry.rows);
  const auto cols = static_cast<double>(scene.geometry.cols);
  const float u = static_cast<float>(cols / static_cast<double>(mask.key_blocks * mask.block));
  const float v = static_cast<float>(rows / static_cast<double>(mask.query_blocks * mask.block));
  ImGui::GetWindowDrawList()->AddImage(
      reinterpret_cast<ImTextureID>(static_cast<uintptr_t>(texture_.name())),
      {view.x(0), view.y(0)}, {view.x(cols), view.y(rows)}, {0, 0}, {u, v});
}

}  // namespace attnscope
