#include "viewer/panels/map/mask_overlay.h"

#include <algorithm>

#include "viewer/panels/legend.h"

namespace attnscope {

void MaskOverlay::upload(const Ui& ui, const std::shared_ptr<const HeadMask>& mask, bool lost) {
  const ImU32 veil = dropped_colour(ui.theme);
  // The numbers come later, and change no block.
  const bool same = of_ && of_->request == mask->request && of_->problem.empty();
  of_ = mask;
  if (same && veil == veil_ && lost == lost_) return;
  veil_ = veil;
  lost_ = lost;
  std::vector<uint32_t> colours(mask->kept.size());
  const double most = lost ? most_lost(*mask) : 0;
  for (size_t i = 0; i < colours.size(); ++i) {
    if (mask->kept[i] != 0) {
      colours[i] = veil & ~IM_COL32_A_MASK;
    } else {
      colours[i] = lost ? lost_colour(ui.theme, most > 0 ? mask->mass[i] / most : 0) : veil;
    }
  }
  texture_.upload(static_cast<int>(mask->query_blocks), static_cast<int>(mask->key_blocks),
                  colours);
}

void MaskOverlay::draw(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  if (!scene.mask || !scene.mask->problem.empty()) return;
  const HeadMask& mask = *scene.mask;
  upload(ui, scene.mask, scene.state.mask.lost && !mask.mass.empty());
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
