#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/problem/token_grid.h"
#include "core/products/tokens/evicted_keys.h"

namespace attnscope {

class Capture;

/// The facts that the window has of one call beside the numbers of its maps, wherever these come
/// from. Places in HeadId count these calls, and batch items and heads in the lists here. A value.
struct MapSource {
  std::string name;  ///< how messages call it
  int64_t step = 0, layer = 0;
  CallKind kind = CallKind::self;
  ModelPlace place = {};
  std::vector<std::string> branches;  ///< one a batch item, or one for all
  std::vector<int64_t> batch, heads;  ///< the numbers that they have, ascending; not empty
  TokenGrid queries, keys;            ///< the whole sequences, also where only a part is there
  std::vector<std::vector<std::string>> tokens;  ///< [batch item or 1][text token]; may be empty
  ScoreFunction score = ScoreFunction::softmax;
  bool sinks = false;  ///< stand in its rows' denominators, which then add up to less than 1

  std::string mask;  ///< what leaves keys out of the softmax, as Mask::describe(); empty: nothing

  std::vector<EvictedKeys> evicted = {};  ///< what a cache had dropped; of calls that tell it

  /// The quantities that its maps have.
  bool weights = true, logits = true;
  /// Entries of the finest numbers that are there, along a side: 1, or blocks of so many; then
  /// single rows and columns are not.
  int64_t block = 1;
  /// Queries and keys that are there, within the sequences; all of them where they are computed.
  IndexRange rows, cols;
  int64_t first_row = -1;  ///< of single rows, one that is there; −1: all of `rows` are
  std::string precision;   ///< "q, k bf16": of what the map is computed from; empty: of an export
  std::string about;       ///< one line, shown below the map; may be empty
  std::string rounding;    ///< how far stored numbers are from exact ones; empty: not worth telling

  /// As AttentionProblem::same_tokens().
  bool same_tokens() const { return kind != CallKind::cross && queries.same_places(keys); }
  /// True where a cache had dropped the key before the query came.
  bool is_evicted(int64_t query, int64_t key) const {
    return std::any_of(evicted.begin(), evicted.end(),
                       [&](const EvictedKeys& each) { return each.holds(query, key); });
  }
  const std::string& branch(int64_t item) const {
    return branches[branches.size() == 1 ? 0 : static_cast<size_t>(item)];
  }
};

/// The keys that a row's softmax is over, for a legend; empty where it is none, or not known.
std::string softmax_text(const MapSource& call);

/// The calls of a capture, in its order.
std::vector<MapSource> map_sources(const Capture& capture);

/// The letters beyond ASCII in the words, branches and texts of these calls, each once, ascending.
std::u32string shown_letters(std::span<const MapSource> calls);

}  // namespace attnscope
