#include "viewer/view/comparison.h"

#include <fmt/core.h>

#include <vector>

#include "core/base/error.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// The words of a head that are not the same of both.
std::string short_name(const HeadValues& own, const HeadValues& other) {
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (own.step != other.step) add(fmt::format("S{}", own.step));
  if (own.place.chunk != other.place.chunk) add(fmt::format("C{}", own.place.chunk));
  if (own.branch != other.branch) add(one_line(own.branch));
  if (own.batch != other.batch && own.branch == other.branch)
    add(fmt::format("item {}", own.batch));
  if (own.kind != other.kind) add(std::string(kind_name(own.kind)));
  if (own.layer == kNoLayer || own.place.block != other.place.block) {
    if (own.layer == kNoLayer) add(one_line(own.place.block));
  }
  if (own.place.slot != other.place.slot) add(one_line(own.place.slot));
  const bool named = own.layer != kNoLayer && !own.place.unrecorded.layer;
  if (named) add(fmt::format("L{}", own.layer));
  add(fmt::format("H{}", own.head));
  return text;
}

}  // namespace

HeadId first_other(const ViewState& state, const HeadPicker& picker, const HeadPicker& others) {
  if (state.other) return state.other->head;
  return others.nearest_to(picker.values(state.head));
}

HeadId suggested_other(const ViewState& state, const HeadPicker& picker, const HeadPicker& others,
                       const std::function<bool(const HeadId&)>& suits) {
  const HeadId first = first_other(state, picker, others);
  if (first != state.head) return first;
  for (const HeadAxis axis : {HeadAxis::layer, HeadAxis::head, HeadAxis::step, HeadAxis::chunk,
                              HeadAxis::branch, HeadAxis::batch, HeadAxis::block, HeadAxis::slot}) {
    for (const int64_t by : {1, -1}) {
      const HeadId moved = others.move(first, axis, by);
      if (moved != first && suits(moved)) return moved;
    }
  }
  return first;
}

std::string other_text(const HeadValues& v) {
  std::string text = fmt::format("step {}", v.step);
  if (v.place.has_chunk()) text += fmt::format(" chunk {}", v.place.chunk);
  if (v.layer == kNoLayer) {
    text += " block " + one_line(v.place.block);
  } else {
    text += fmt::format(" layer {}", v.layer);
  }
  if (!v.place.slot.empty()) text += " slot " + one_line(v.place.slot);
  return text + fmt::format(" branch {} head {}", one_line(v.branch), v.head);
}

ViewState seen_as_other(const ViewState& state) {
  ViewState seen = state;
  seen.head = state.other->head;
  seen.rect = other_rect(state);
  seen.other.reset();
  return seen;
}

const MapRect& other_rect(const ViewState& state) {
  return state.other->lock_zoom ? state.rect : state.other->rect;
}

std::string difference_sign(Difference how) {
  switch (how) {
    case Difference::signed_difference:
      return "A \u2212 B";
    case Difference::absolute:
      return "|A \u2212 B|";
    case Difference::log_ratio:
      return "log\u2082 A/B";
    case Difference::off:
      break;
  }
  return "";
}

std::string sides_text(const HeadValues& a, const HeadValues& b, bool other_capture) {
  const std::string second = short_name(b, a) + (other_capture ? " of B's capture" : "");
  return short_name(a, b) + " \u2212 " + second;
}

Difference next_difference(const ViewState& state) {
  const Difference now = state.other ? state.other->difference : Difference::off;
  auto next = static_cast<size_t>(now);
  do {
    next = (next + 1) % difference_names().size();
  } while (!difference_suits(static_cast<Difference>(next), product_quantity(state.product)));
  return static_cast<Difference>(next);
}

}  // namespace attnscope
