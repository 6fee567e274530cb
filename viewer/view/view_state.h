#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/problem/token_order.h"
#include "core/products/differences/map_difference.h"
#include "core/products/pooled_map.h"
#include "io/pictures/colour_scale.h"
#include "viewer/view/looks/atlas_look.h"
#include "viewer/view/looks/film_look.h"
#include "viewer/view/looks/mask_look.h"
#include "viewer/view/looks/timeline_look.h"
#include "viewer/view/looks/tracks_look.h"
#include "viewer/view/looks/volume_look.h"
#include "viewer/view/looks/words_look.h"
#include "viewer/view/maps/map_tile.h"
#include "viewer/view/pins.h"

namespace attnscope {

struct MapSource;

/// The quantity that is drawn: weights, logits, or weights times the number of keys (lift, a
/// scaling of the weights that drawing does).
enum class ViewProduct : uint8_t { weights, logits, lift };
enum class ViewPane : uint8_t {
  matrix,
  query,
  histogram,
  atlas,
  words,
  volume,
  timeline,
  mask,
  frames,
  ranked
};  ///< grows with later panels
enum class ViewTheme : uint8_t { dark, light };

/// A part of the map in entries, half-open and not rounded: queries [q0, q1) × keys [k0, k1).
struct MapRect {
  double q0 = 0, q1 = 0, k0 = 0, k1 = 0;
  friend bool operator==(const MapRect&, const MapRect&) = default;
};

/// The tokens whose attention the query volume shows, where no words are chosen.
struct ChosenQuery {
  std::vector<int64_t> tokens;  ///< places in the sequence, ascending; several: their mean
  friend bool operator==(const ChosenQuery&, const ChosenQuery&) = default;
};

struct ColourRange {
  bool automatic = true;  ///< by the mass of what is seen exactly: mass_ends()
  double low = 0, high = 0;
  bool whole = false;  ///< automatic: from the least to the greatest of what is seen
  friend bool operator==(const ColourRange&, const ColourRange&) = default;
};

/// Another head that is looked at beside the state's own (side A), and how the two are told apart.
struct OtherSide {
  HeadId head;  ///< of side B; of a second capture, its calls stand behind those of the first
  Difference difference = Difference::off;
  /// Share of the map's width: left of it A is seen, right of it B; none: one map all over.
  std::optional<float> split = {};
  /// Locked: B has A's part of the map, the ends of A's colours, and is read where A is read.
  bool lock_zoom = true, lock_range = true, lock_cursor = true;
  MapRect rect = {};       ///< of B, where its zoom is its own
  ColourRange range = {};  ///< of the difference's colours; of signed ones as far below 0 as above
  bool ranked = false;     ///< rows are listed by their divergence
  friend bool operator==(const OtherSide&, const OtherSide&) = default;
};

/// The orders in which the tokens of the matrix's sides stand.
struct MapOrder {
  TokenOrder rows, keys;
  bool is_stored() const {
    return rows.kind == TokenOrder::Kind::stored && keys.kind == TokenOrder::Kind::stored;
  }
  friend bool operator==(const MapOrder&, const MapOrder&) = default;
};

/// The share of the width that the right column takes unless told; it is not narrow then.
inline constexpr float kUsualColumn = 0.36f;

/// Everything that is looked at, and how. A value without window, GL or threads; saved as the
/// session. Defaults are those of a capture that was just opened.
struct ViewState {
  HeadId head;
  /// The part of the map that is seen, by places: where these are not those of the sequence,
  /// `order` says what stands there.
  MapRect rect;
  std::optional<ChosenQuery> query;  ///< picked; none: the query follows the mouse
  bool reverse = false;
  /// The segment of the token map that the film shows; empty, or where it is not there: the video.
  std::string segment;
  ViewProduct product = ViewProduct::weights;
  Pool pool = Pool::max;
  ScaleKind scale = ScaleKind::log2;
  std::string colormap = "viridis";
  ColourRange range;
  ViewTheme theme = ViewTheme::dark;
  std::optional<ViewPane> maximised;
  bool show_histogram = true;
  AtlasLook atlas = {};
  VolumeLook volume = {};
  TimelineLook timeline = {};
  TracksLook tracks = {};
  bool show_frames = false;  ///< the mass between frames
  bool magnifier = false;    ///< the entries around the mouse, beside it
  Pins pins = {};            ///< of the map, whichever head of its size is shown
  WordsLook words = {};
  FilmLook film = {};
  MaskLook mask = {};
  MapOrder order = {};  ///< that the matrix's tokens stand in
  MapOrder other_order = {TokenOrder::parse("yxt"), TokenOrder::parse("yxt")};  ///< one key away
  /// The TileSource::order_number() of `order` in states that are shown; 0 in all others.
  int64_t order_number = 0;
  bool equal_axes = false;              ///< an entry of the matrix is as high as it is wide
  float split_query = kUsualColumn;     ///< share of the window's width that the right column takes
  std::optional<OtherSide> other = {};  ///< none: nothing is compared

  /// The head as tiles of its map name it.
  HeadId map_head() const {
    HeadId id = head;
    id.order = order_number;
    return id;
  }
  /// The comparison that the map shows; nothing where it is shown as it is.
  std::optional<Against> against() const {
    if (!other || other->difference == Difference::off) return std::nullopt;
    Against against{other->head, other->difference};
    against.other.order = order_number;
    return against;
  }
  friend bool operator==(const ViewState&, const ViewState&) = default;
};

/// The facts of one open call that apply_action() must know: sizes, and what there is of it.
struct CallLimits {
  int64_t rows = 0;   ///< queries
  int64_t cols = 0;   ///< keys
  int64_t batch = 0;  ///< items
  int64_t heads = 0;
  bool one_sequence = true;            ///< queries and keys are the same tokens
  bool weights = true, logits = true;  ///< what there is of its maps
  int64_t text = 0;                    ///< tokens of the prompt, among keys or queries
  OrderedSide query_side = {}, key_side = {};
  bool evicted = false;  ///< a cache had dropped some of its keys
  bool entries = true;   ///< there are single entries, not only blocks of them
  friend bool operator==(const CallLimits&, const CallLimits&) = default;
};
struct ViewLimits {
  std::vector<CallLimits> calls;  ///< in their order
  bool computed = true;           ///< maps are; else they are read from an export

  static ViewLimits of(const std::vector<MapSource>& calls);
  bool has(const HeadId& head) const;
  /// Of the call that `head` is in, which must be there.
  const CallLimits& of_call(const HeadId& head) const;
};

/// The pane below the query: of ranked rows, mask, mass between frames and histogram the one that
/// is shown. apply_action() sees to it that of the first three at most one is, and the histogram
/// stands behind them; nothing: the query has the place.
std::optional<ViewPane> pane_below(const ViewState& state);

/// The whole map.
MapRect fit_rect(int64_t rows, int64_t cols);

/// `rect` as it can be shown on a map of this size: on each axis within the map, with at least 4
/// entries (fewer where the map has fewer) and at most all of them. Sizes are changed about the
/// middle, then it is moved. Throws Error(usage) for an empty rectangle or one that is not finite.
MapRect clamped_rect(const MapRect& rect, int64_t rows, int64_t cols);

/// The scale that a product is shown on first: logits (which may be negative) linear, others log.
ScaleKind usual_scale(ViewProduct product);
/// Of a call that does not have the product that is shown: the one that it has, on its usual scale.
void fit_product(ViewState& state, const CallLimits& call);
/// True where all of a product's values have a place on a scale: logits have none on log and sqrt.
bool scale_suits(ScaleKind scale, ViewProduct product);

/// True where a range has a place on a scale: a log scale has none for 0, sqrt none below it.
bool range_suits(const ColourRange& range, ScaleKind scale);

/// The scale that a difference is shown on where weights are shown on `scale`: one that has a place
/// for all of its values.
ScaleKind difference_scale(ScaleKind scale, Difference how);

/// A capture that was just opened: its first head, all of it. The limits must not be empty.
ViewState opened_view(const ViewLimits& limits);

}  // namespace attnscope
