#include "viewer/panels/map/mask_brushing.h"

#include <algorithm>
#include <cmath>

#include "viewer/view/maps/head_mask.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

struct Span {
  int64_t begin = 0, end = 0;
};

/// The blocks from one place to another, whole, as far as the map goes.
Span blocks_between(double a, double b, int64_t block, int64_t extent) {
  const auto place = [&](double at) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(at)), 0, extent - 1);
  };
  const int64_t first = std::min(place(a), place(b)) / block;
  const int64_t last = std::max(place(a), place(b)) / block;
  return {first * block, std::min((last + 1) * block, extent)};
}

}  // namespace

bool MaskBrushing::is_chosen(const Scene& scene) {
  const ViewState& state = scene.state;
  return state.mask.brush != MaskBrush::off && state.order.is_stored() && !scene.other.state;
}

void MaskBrushing::drag(const Scene& scene, double query, double key, PanelRequests& requests) {
  const int64_t rows = scene.geometry.rows, cols = scene.geometry.cols;
  const int64_t block = mask_block(rows, cols);
  const Span queries = blocks_between(from_->query, query, block, rows);
  const Span keys = blocks_between(from_->key, key, block, cols);
  now_ = {queries.begin, queries.end, keys.begin, keys.end,
          scene.state.mask.brush == MaskBrush::keep};
  if (ImGui::IsItemActive()) return;
  from_.reset();
  MaskLook look = scene.state.mask;
  // Of no mask, which keeps everything.
  if (look.text.empty()) look.text = "none";
  look.edits.push_back(now_);
  requests.act(action::SetMask{std::move(look)});
}

void MaskBrushing::draw(const Ui& ui, const Scene& scene, const ViewTransform& view) const {
  if (!from_) return;
  const ImVec2 low{view.x(static_cast<double>(now_.k0)), view.y(static_cast<double>(now_.q0))};
  const ImVec2 high{view.x(static_cast<double>(now_.k1)), view.y(static_cast<double>(now_.q1))};
  const bool keep = scene.state.mask.brush == MaskBrush::keep;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(low, high, faded(keep ? ui.theme.text : ui.theme.window, 0.35f));
  draw.AddRect(low, high, ui.theme.text, 0, 0, ui.px(1.5f));
}

}  // namespace attnscope
