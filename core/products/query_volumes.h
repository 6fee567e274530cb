#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem/model_place.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The values of a token map's segment that is neither the text nor a video with a grid.
struct SegmentValues {
  std::string name;
  std::vector<float> values;  ///< [tokens], in the order of the sequence
};

/// Attention of one query (or the mean of several) of one head, over the sequence.
struct QueryVolume {
  std::string label;  ///< "step0010_layer003_cond_joint b0 h5"
  int64_t step = 0, layer = 0, batch = 0, head = 0;
  std::string branch, kind;
  ModelPlace place = {};     ///< empty where members of an average differ in it
  std::vector<float> video;  ///< [T, H, W] row-major; without a grid in sequence order
  /// Cells of the video that a cache had dropped: 1; empty: none of them.
  std::vector<uint8_t> evicted = {};
  std::vector<float> text;                 ///< [text tokens]; may be empty
  std::vector<SegmentValues> others = {};  ///< in the order of the sequence; mostly empty
  std::vector<int64_t> chosen_text;  ///< text tokens that were asked for, counted within the text
  double told_mean = 0;              ///< of its values, where QueryVolumes::tells_mean
  int64_t averaged = 1;              ///< heads that it is the mean of; what they differ in is −1
  size_t tokens = 0;                 ///< which of QueryVolumes::token_lists names its text
  size_t chosen = 0;                 ///< which of QueryVolumes::chosen_lists it is the mean of
  std::optional<std::array<int64_t, 3>> query;  ///< t, y, x outlined in pictures
};

/// The volumes, and the facts that they share.
struct QueryVolumes {
  std::array<int64_t, 3> grid{};  ///< T, H, W
  /// Strings of the text part as they were recorded: prompts differ between calls and batch items.
  /// A list may be empty or shorter than the text.
  std::vector<std::vector<std::string>> token_lists{{}};
  /// Tokens that volumes are of, counted in the sequence, ascending. The first list is empty: of
  /// volumes of which that is not known.
  std::vector<std::vector<int64_t>> chosen_lists{{}};
  std::string model, capture, domain, query_text;
  std::string state_text;          ///< what pictures tell of q and k; empty: nothing
  std::string domain_text;         ///< how pictures tell the domain and masks; empty: not at all
  bool shares = true;              ///< the weights of a row add up to 1
  bool sinks = false;              ///< and what they lack of it is the share of the row's sink
  bool reverse = false;            ///< the values are of queries: who attends to the chosen keys
  std::string weighting = "none";  ///< "value": weights times the norm of the key's value row
  std::string mean = "none";       ///< what volumes were averaged over: "heads, layers"
  bool tells_mean = false;         ///< pictures tell the mean of each volume beside its label
  bool tracked = false;            ///< tables tell a point a frame, films outline it: frame_track()
  std::string shown = "video";     ///< whose volumes they are: the video's, or this segment's
  std::vector<QueryVolume> volumes;

  const std::vector<std::string>& tokens_of(const QueryVolume& volume) const {
    return token_lists[volume.tokens];
  }
  const std::vector<int64_t>& chosen_of(const QueryVolume& volume) const {
    return chosen_lists[volume.chosen];
  }
  /// The number of the list of these tokens: a new one where none is like it.
  size_t list_chosen(const std::vector<int64_t>& tokens);
  /// True where all volumes are of the same tokens, which are known.
  bool chosen_alike() const;
  /// Facts that nobody recorded of one of the volumes, "step model"; empty: none.
  std::string not_recorded() const;
};

/// The values of all tokens of a sequence as the parts of a volume; without a token map the longer
/// of video and text stays where it is in memory.
void set_values(QueryVolume& volume, const TokenGrid& tokens, std::vector<float> values);

}  // namespace attnscope
