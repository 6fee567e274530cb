#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace attnscope {

/// The layer of a call that is made outside the model's main stack of blocks.
inline constexpr int64_t kNoLayer = -1;

/// The chunk of a call that is no piece of a stream.
inline constexpr int64_t kNoChunk = -1;

/// A step or layer that nobody recorded, in files whose numbers have no empty place. Beside it the
/// attribute kNotRecordedName names it: a layer outside the main stack is −1, too.
inline constexpr int64_t kNotRecorded = -1;
inline constexpr const char* kNotRecordedName = "not_recorded";

/// Which of the facts that name a call nobody recorded. Where calls are chosen, ordered, paired and
/// groups are named they count as step 0, layer 0 and branch "all"; what states facts leaves them
/// out. All are equal, therefore: they tell no two calls apart.
struct Unrecorded {
  bool step = false, layer = false, branch = false;

  bool any() const { return step || layer || branch; }
  /// "step layer": the names, as files have them; empty: none.
  std::string text() const;
  /// Reads back the names that text() wrote; ignores names that it does not know.
  static Unrecorded parse(std::string_view names);

  friend std::strong_ordering operator<=>(const Unrecorded&, const Unrecorded&) {
    return std::strong_ordering::equal;
  }
  friend bool operator==(const Unrecorded&, const Unrecorded&) { return true; }
};

/// The forward of a model that a call is of, where nobody told its step or branch. Negative: not
/// stated.
struct CallForward {
  int64_t forward = -1;  ///< as they began, of all
  int64_t of_step = -1;  ///< among those of the step
  int64_t call = 0;      ///< of the module in the forward

  bool is_stated() const { return forward >= 0; }
  /// "f1", by which the branch goes: the number within the step, else that of all forwards.
  std::string branch() const;
  friend auto operator<=>(const CallForward&, const CallForward&) = default;
};

/// A number of CallForward by the name that captures have for it. `none`: it is not stated.
struct ForwardFact {
  const char* name;
  int64_t CallForward::*number;
  int64_t none;
};
inline constexpr std::array<ForwardFact, 3> kForwardFacts{{{"forward", &CallForward::forward, -1},
                                                           {"of_step", &CallForward::of_step, -1},
                                                           {"call", &CallForward::call, 0}}};

/// Where an attention call is made. In the model: the block with its number
/// ("transformer_blocks.7"), and the attention's name within the block ("attn1"); empty where they
/// were not recorded. In a stream that comes piece by piece, whose keys a cache keeps: the piece.
struct ModelPlace {
  std::string block, slot;
  int64_t chunk = kNoChunk;
  /// Of the step, layer and branch that stand beside every place.
  Unrecorded unrecorded = {};
  CallForward forward = {};

  /// True where the block or the slot is known.
  bool is_recorded() const { return !block.empty() || !slot.empty(); }
  bool has_chunk() const { return chunk != kNoChunk; }
  /// "transformer_blocks.7.attn1"; what is not recorded is left out.
  std::string text() const;

  friend auto operator<=>(const ModelPlace&, const ModelPlace&) = default;
};

/// "layer 7", "layer 7 transformer_blocks.7.attn1", "refiner.0.attn", "layer 7 chunk 2", "layer 7
/// call 1": how lines name a call's layer. What is not recorded is left out: nothing may be left.
std::string layer_text(int64_t layer, const ModelPlace& place);

/// "step 10 layer 3 cond joint": how lines name a call, with `between` between its parts, of which
/// `rest` is the last; what is not recorded is left out, and so is what is empty.
std::string call_words(int64_t step, int64_t layer, std::string_view branch, std::string_view rest,
                       const ModelPlace& place, std::string_view between = " ");

}  // namespace attnscope
