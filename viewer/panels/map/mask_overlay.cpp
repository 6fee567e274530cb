#include "viewer/panels/map/mask_overlay.h"

#include "viewer/panels/legend.h"

namespace attnscope {

ImU32 veil_colour(const Theme& theme, const HeadMask& mask, size_t block,
                  std::optional<double> most_lost) {
  const ImU32 veil = dropped_colour(theme);
  if (mask.kept[block] != 0) return veil & ~IM_COL32_A_MASK;
  if (!most_lost) return veil;
  return lost_colour(theme, *most_lost > 0 ? mask.mass[block] / *most_lost : 0);
}

std::optional<double> shown_loss(const Scene& scene) {
  if (!scene.state.mask.lost || scene.mask->mass.empty()) return std::nullopt;
  return most_lost(*scene.mask);
}

void MaskOverlay::upload(const Ui& ui, const std::shared_ptr<const HeadMask>& mask,
                         std::optional<double> most_lost) {
  const ImU32 veil = dropped_colour(ui.theme);
  // The numbers come later, and change no block.
  const bool same = of_ && of_->request == mask->request && of_->problem.empty();
  of_ = mask;
  if (same && veil == veil_ && most_lost.has_value() == lost_) return;
  veil_ = veil;
  lost_ = most_lost.has_value();
  std::vector<uint32_t> colours(mask->kept.size());
  for (size_t i = 0; i < colours.size(); ++i) {
    colours[i] = veil_colour(ui.theme, *mask, i, most_lost);
  }
  texture_.upload(static_cast<int>(mask->query_blocks), static_cast<int>(mask->key_blocks),
                  colours);
}

void MaskOverlay::draw(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  if (!scene.mask || !scene.mask->problem.empty()) return;
  const HeadMask& mask = *scene.mask;
  upload(ui, scene.mask, shown_loss(scene));
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
