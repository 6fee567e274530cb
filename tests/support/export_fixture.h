#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/export/write/make_export.h"

namespace attnscope::test {

/// A call whose Q and K are zeros: an export is fed by hand, so only facts and shapes matter.
struct FixtureFacts {
  int64_t step = 10;
  int64_t layer = 3;
  CallKind kind = CallKind::joint;
  std::vector<std::string> branches{"cond"};
  int64_t heads = 2;
  TokenGrid queries;
  TokenGrid keys;
  ScoreFunction score = ScoreFunction::softmax;
  Mask mask;
  std::vector<std::vector<std::string>> tokens;
  int64_t value_width = 5;  ///< channels of V, zeros too; 0: there is none
};
std::shared_ptr<CallEntry> make_call(const FixtureFacts& facts);

/// 700 queries and keys: 10 text tokens, then 3×10×23 video tokens.
FixtureFacts joint_facts();

/// A spec over calls that must outlive it: every batch item, head, row and key; f16 weights.
ExportSpec make_spec(const std::vector<std::shared_ptr<CallEntry>>& calls,
                     ExportProduct product = ExportProduct::weights,
                     Encoding encoding = Encoding::f16_scaled);

/// Values of the hand-made stream. Weights spread over 20 octaves; one row in 50 is fully masked
/// (weights 0, LSE −inf); masked logits are −inf.
struct FedValues {
  bool logits = false;
  /// Chunks that are delivered as null, by task, row chunk and column chunk.
  std::function<bool(int64_t, int64_t, int64_t)> is_empty = [](int64_t, int64_t, int64_t) {
    return false;
  };

  /// Entry at the positions row and col of a task, whatever is empty.
  float entry(int64_t task, int64_t row, int64_t col) const;
  RowNorm norm(int64_t task, int64_t row) const;
};

/// A form of entries that readers are tested with: each encoding, with a product that has it.
struct StoredForm {
  ExportProduct product;
  Encoding encoding;
};
inline constexpr StoredForm kStoredForms[] = {{ExportProduct::weights, Encoding::f16_scaled},
                                              {ExportProduct::weights, Encoding::f32},
                                              {ExportProduct::weights, Encoding::u8_log2},
                                              {ExportProduct::logits, Encoding::f16}};

/// Columns of a task's entries: its keys, or for outputs the channels of V.
int64_t columns_of(const HeadTask& task, const TileRequest& request);

/// The number that a file must give back for a value: stored in that encoding and decoded.
double decoded(float value, Encoding encoding);

struct FeedOrder {
  unsigned seed = 0;  ///< 0: in order; else tiles are shuffled
  int threads = 1;
  int64_t segment_chunks = 2;  ///< column chunks a tile
  int64_t stop_after = -1;     ///< tiles; −1: all, and then end()
  /// Of a file that several sinks write: each parts-th tile, from `part` on.
  size_t part = 0, parts = 1;
};
/// Plays the engine: begin(), every tile once that is not there yet, end().
void feed(ExportSink& sink, const FedValues& values, const FeedOrder& order = {});

}  // namespace attnscope::test
