#include "io/stream/joined_mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/stream/span_builder.h"

namespace attnscope {
namespace {

using Runs = std::vector<IndexRange>;

/// The keys that a query may attend to.
Runs kept_runs(const AttentionProblem& problem, int64_t batch, int64_t head, int64_t query,
               std::vector<float>& bias) {
  const IndexRange keys{0, problem.num_keys()};
  const Mask& mask = problem.mask();
  const TileClass row = mask.classify(batch, head, {query, query + 1}, keys);
  if (row == TileClass::empty) return {};
  if (row == TileClass::full) return {keys};
  bias.resize(static_cast<size_t>(keys.size()));
  mask.fill_bias(batch, head, {&query, 1}, keys, bias.data(), keys.size());
  Runs runs;
  for (int64_t key = 0; key < keys.end; ++key) {
    if (bias[static_cast<size_t>(key)] != 0) continue;
    if (runs.empty() || runs.back().end != key) runs.push_back({key, key});
    runs.back().end = key + 1;
  }
  return runs;
}

/// The same among the joined keys.
Runs placed_runs(const Runs& runs, const std::vector<PlacedKeys>& placed) {
  Runs columns;
  auto piece = placed.begin();
  for (const IndexRange& run : runs) {
    while (piece != placed.end() && piece->keys.end <= run.begin) ++piece;
    for (auto at = piece; at != placed.end() && at->keys.begin < run.end; ++at) {
      const IndexRange keys = intersect(run, at->keys);
      const int64_t first = at->column + keys.begin - at->keys.begin;
      columns.push_back({first, first + keys.size()});
    }
  }
  std::sort(columns.begin(), columns.end(),
            [](const IndexRange& a, const IndexRange& b) { return a.begin < b.begin; });
  return columns;
}

/// Whether batch items or heads may have masks of their own.
bool tells_heads_apart(const CallEntry& call) {
  if (!call.mask_fact) return !call.problem->mask().is_none();
  const MaskForm form = call.mask_fact->form;
  if (call.mask == nullptr || form == MaskForm::spans) return false;
  // The last axes are those of queries and keys, or of tokens.
  const bool entries = form == MaskForm::tensor || form == MaskForm::blocks;
  const auto shape = call.mask->shape();
  const size_t own = entries ? 2 : 1;
  for (size_t axis = 0; axis + own < shape.size(); ++axis) {
    if (shape[axis] > 1) return true;
  }
  return false;
}

void check_alike(const CallEntry& call, int64_t query, const Runs& runs, std::vector<float>& bias) {
  const AttentionProblem& problem = *call.problem;
  for (int64_t b = 0; b < problem.batch(); ++b) {
    for (int64_t h = 0; h < problem.num_heads(); ++h) {
      if (kept_runs(problem, b, h, query, bias) == runs) continue;
      throw usage_error(fmt::format(
          "the mask of chunk {} differs between batch items or heads (query {}: item 0, head 0 and "
          "item {}, head {}), which a joined mask cannot say",
          call.id.place.chunk, query, b, h));
    }
  }
}

}  // namespace

std::vector<QuerySpan> joined_spans(std::span<const CallEntry* const> chunks,
                                    const std::vector<ChunkTokens>& queries, const JoinedKeys& keys,
                                    const std::stop_token& stop) {
  SpanBuilder builder;
  std::vector<float> bias;
  int64_t joined = 0;
  for (const ChunkTokens& piece : queries) {
    const CallEntry& call = *chunks[piece.chunk];
    if (call.problem->mask().has_finite_bias()) {
      throw usage_error(
          fmt::format("the mask of chunk {} adds finite biases, which a joined mask "
                      "cannot say",
                      call.id.place.chunk));
    }
    const bool apart = tells_heads_apart(call);
    for (int64_t query = piece.tokens.begin; query < piece.tokens.end; ++query, ++joined) {
      if (stop.stop_requested()) {
        throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
      }
      const Runs runs = kept_runs(*call.problem, 0, 0, query, bias);
      if (apart) check_alike(call, query, runs, bias);
      builder.add(joined, placed_runs(runs, keys.placed[piece.chunk]));
    }
  }
  return builder.finish();
}

}  // namespace attnscope
