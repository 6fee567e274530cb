#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "viewer/state/map_tile.h"

namespace attnscope {

/// What is drawn: weights, logits, or weights times the number of keys.
enum class ViewProduct : uint8_t { weights, logits, lift };
enum class ViewPool : uint8_t { max, mean };
enum class ViewScale : uint8_t { log, linear, sqrt, symlog };
enum class ViewPane : uint8_t { matrix, query, histogram };  ///< grows with later panels
enum class ViewTheme : uint8_t { dark, light };

/// A part of the map in entries, half-open and not rounded: queries [q0, q1) × keys [k0, k1).
struct MapRect {
  double q0 = 0, q1 = 0, k0 = 0, k1 = 0;
  friend bool operator==(const MapRect&, const MapRect&) = default;
};

/// The tokens whose attention the query volume shows.
struct ChosenQuery {
  std::vector<int64_t> tokens;  ///< places in the sequence, ascending; several: their mean
  friend bool operator==(const ChosenQuery&, const ChosenQuery&) = default;
};

struct ColourRange {
  bool automatic = true;  ///< 1 % to 99.9 % of what is seen exactly
  double low = 0, high = 0;
  friend bool operator==(const ColourRange&, const ColourRange&) = default;
};

/// Everything that is looked at, and how. A value without window, GL or threads; saved as the
/// session. Defaults are those of a capture that was just opened.
struct ViewState {
  HeadId head;
  MapRect rect;
  std::optional<ChosenQuery> query;  ///< picked; none: the query follows the mouse
  bool reverse = false;
  ViewProduct product = ViewProduct::weights;
  ViewPool pool = ViewPool::max;
  ViewScale scale = ViewScale::log;
  std::string colormap = "viridis";
  ColourRange range;
  ViewTheme theme = ViewTheme::dark;
  std::optional<ViewPane> maximised;
  bool show_histogram = true;
  float split_query = 0.36f;  ///< share of the window's width that the right column takes
  friend bool operator==(const ViewState&, const ViewState&) = default;
};

/// What can be done to the state; each is one step of undo (those that follow each other at once
/// and only move or zoom make one step together).
namespace action {
struct SelectHead {
  HeadId head;
};
struct SetRect {
  MapRect rect;
};
struct ZoomAt {
  double query, key, factor;
};  ///< keeps the entry under the cursor in its place
struct Pan {
  double queries, keys;
};
struct Fit {};
struct PickQuery {
  ChosenQuery query;
};
struct DropQuery {};
struct SetReverse {
  bool on;
};
struct SetProduct {
  ViewProduct product;
};
struct SetPool {
  ViewPool pool;
};
struct SetScale {
  ViewScale scale;
};
struct SetColormap {
  std::string name;
};
struct SetRange {
  ColourRange range;
};
struct SetTheme {
  ViewTheme theme;
};
struct Maximise {
  std::optional<ViewPane> pane;
};
struct ShowHistogram {
  bool on;
};
struct SetSplit {
  float share;
};
}  // namespace action
using Action =
    std::variant<action::SelectHead, action::SetRect, action::ZoomAt, action::Pan, action::Fit,
                 action::PickQuery, action::DropQuery, action::SetReverse, action::SetProduct,
                 action::SetPool, action::SetScale, action::SetColormap, action::SetRange,
                 action::SetTheme, action::Maximise, action::ShowHistogram, action::SetSplit>;

}  // namespace attnscope
