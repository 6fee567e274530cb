#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/heads/head_sketch.h"
#include "core/problem/head_name.h"
#include "viewer/view/looks/atlas_look.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// A head of the atlas, with the facts that it was recorded under.
struct AtlasHead {
  HeadId id;
  HeadName name = {};
  bool shown = true;      ///< the filter lets it through
  bool selected = false;  ///< is in the look's list
  /// As `--pick` names it among those that stand beside it; empty: it cannot.
  std::string pick = {};
  friend bool operator==(const AtlasHead&, const AtlasHead&) = default;
};

/// A call of the atlas and its heads; of a sorted atlas all heads in one line without a label. No
/// label, too, where nobody recorded the layer.
struct AtlasLine {
  std::string label;
  std::vector<AtlasHead> heads;
  friend bool operator==(const AtlasLine&, const AtlasLine&) = default;
};

/// The calls that stand beside the one of `from`, by layer: those of its step, chunk, kind and
/// slot, with its branch and number of the batch. `from` is among them.
std::vector<AtlasLine> atlas_lines(std::span<const MapSource> calls, const HeadId& from);

/// Finds a head's sketch; null while there is none.
using FindSketch = std::function<std::shared_ptr<const HeadSketch>(const HeadId&)>;

/// The atlas as a look wants it. A value.
struct AtlasCells {
  /// By layer: lines with at least one head that is shown, others of a line left as holes. Sorted:
  /// one line of the heads that are shown, the largest number first, those without it last.
  std::vector<AtlasLine> lines;
  bool sorted = false;
  int64_t heads = 0, shown = 0, sketched = 0, exact = 0;  ///< in all; of the last two, of `heads`
  /// How many of those with a sketch have each class, by HeadClass; the filter has no say.
  std::array<int64_t, kHeadClasses> classes{};
  /// Of the look's metric over the heads that are shown; low ≤ high; none is known: nothing.
  std::optional<std::pair<double, double>> range;
  std::string problem;   ///< of the filter; empty: none
  int64_t selected = 0;  ///< heads, the filter has no say
  /// Why some of the list are not among these heads, a line; empty: all are.
  std::string selected_elsewhere;

  static AtlasCells of(std::vector<AtlasLine> lines, const AtlasLook& look, const FindSketch& find);
};

/// "layer 12 · head 3 · temporal", and a line for each number of the printed table of stats.
std::string atlas_text(const AtlasHead& head, const HeadSketch* sketch);
/// The names of the numbers that cells can show and be sorted by.
std::vector<std::string> atlas_metrics();
/// What cells can show beside thumbnails: their classes, and these numbers.
std::vector<std::string> atlas_contents();

}  // namespace attnscope
