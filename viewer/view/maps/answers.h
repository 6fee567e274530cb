#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "core/heads/head_sketch.h"
#include "viewer/view/maps/head_mask.h"
#include "viewer/view/maps/head_tracks.h"
#include "viewer/view/maps/map_tile.h"
#include "viewer/view/maps/video_frame.h"

namespace attnscope {

// The vocabulary between a window and who brings its maps: asks, their answers, wishes.

/// An entry whose numbers are wanted.
struct ProbeRequest {
  HeadId head;
  int64_t query = 0;
  int64_t key = 0;
  friend auto operator<=>(const ProbeRequest&, const ProbeRequest&) = default;
};

struct SketchRequest {
  HeadId head;
  friend auto operator<=>(const SketchRequest&, const SketchRequest&) = default;
};

struct TracksRequest {
  HeadId head;
  friend auto operator<=>(const TracksRequest&, const TracksRequest&) = default;
};

/// One thing that is asked for.
using Ask = std::variant<ProbeRequest, LineRequest, TileId, MaskRequest, HeadsCompared, MassRequest,
                         FrameRequest, SketchRequest, TracksRequest>;
/// The answers, in the order of the asks that they belong to; null: not there.
using Answer = std::variant<std::shared_ptr<const ProbedEntry>, std::shared_ptr<const MapLine>,
                            std::shared_ptr<const MapTile>, std::shared_ptr<const HeadMask>,
                            std::shared_ptr<const RowDivergence>, std::shared_ptr<const KeyMasses>,
                            std::shared_ptr<const VideoFrame>, std::shared_ptr<const HeadSketch>,
                            std::shared_ptr<const HeadTracks>>;
inline constexpr size_t kAskKinds = std::variant_size_v<Ask>;
static_assert(kAskKinds == std::variant_size_v<Answer>);

/// The place of an alternative in a variant.
template <class T, class... Each>
constexpr size_t place_in(std::type_identity<std::variant<Each...>>) {
  size_t place = 0;
  (void)((std::same_as<T, Each> || (++place, false)) || ...);
  return place;
}
/// The alternative of Answer that belongs to an alternative of Ask.
template <class Asked>
using AnswerTo = std::variant_alternative_t<place_in<Asked>(std::type_identity<Ask>()), Answer>;

/// Null, as the answer to this.
inline Answer no_answer(const Ask& ask) {
  return std::visit([]<class Asked>(const Asked&) { return Answer(AnswerTo<Asked>()); }, ask);
}

inline bool is_there(const Answer& answer) {
  return std::visit([](const auto& value) { return value != nullptr; }, answer);
}

/// Calls `use` with every head that an alternative of Ask is about: none, one, or two that are
/// compared, side A's first.
template <class Asked, class Use>
void for_each_head(Asked& asked, const Use& use) {
  if constexpr (requires { asked.a, asked.b; }) {
    use(asked.a);
    use(asked.b);
  } else if constexpr (requires { asked.head; }) {
    use(asked.head);
    if constexpr (requires { asked.against->other; }) {
      if (asked.against) use(asked.against->other);
    }
  }
}

/// How well something is wanted. `sampled`: as well as it can soon be had; where nothing is
/// sampled, for good. `exact`: of all rows. Of a tile that is the pass over its head's whole map,
/// which makes every tile of the base level and above exact.
enum class Stage : uint8_t { sampled, exact };

struct Wish {
  Ask ask;
  Stage stage = Stage::sampled;
  friend bool operator==(const Wish&, const Wish&) = default;
};

/// The wishes of a window, most important first: that is the order of the work. Tiles are the
/// exception: where the first of them stands, one coarse picture of all comes first, then the fine
/// ones, then what makes coarse ones better. Row norms that a line or masses wait for are found
/// behind all passes that are wished for, for masses behind the rows compared exactly as well.
using Wishes = std::vector<Wish>;

}  // namespace attnscope
