#include "python/native/array_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/layout.h"
#include "io/capture/call/call_mask.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {
namespace {

using Words = std::map<std::string, std::string>;

std::string word(const Words& options, const std::string& name) {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

/// True where the list of the word "bf16" has this array.
bool is_bf16(const Words& options, const std::string& name) {
  return ("," + word(options, "bf16") + ",").find("," + name + ",") != std::string::npos;
}

HeadTensor head_tensor(const std::string& name, const DataArray& array, const Words& options) {
  std::optional<Layout> layout;
  const std::string text = word(options, "layout");
  if (!text.empty()) {
    layout = parse_layout(text);
    if (!layout) {
      throw usage_error("layout " + one_line(text) + ": expected bhsd, bshd, hsd, shd or sd");
    }
  } else {
    switch (array.ndim()) {
      case 2:
        layout = Layout::sd;
        break;
      case 3:
        layout = Layout::hsd;
        break;
      case 4:
        layout = Layout::bhsd;
        break;
      default:
        throw usage_error(name + ": expected [tokens, d], [heads, tokens, d] or [batch, heads, " +
                          "tokens, d] (got " + std::to_string(array.ndim()) + " dimensions)");
    }
  }
  return {array_tensor(name, array, is_bf16(options, name)), *layout};
}

HeadScales scale_of(const Words& options, int64_t heads) {
  const std::string text = word(options, "scale");
  if (text.empty()) return 0;
  auto each = parse_numbers(text);
  const bool above = each && std::ranges::all_of(*each, [](double scale) { return scale > 0; });
  if (!above) {
    throw usage_error("scale " + one_line(text) + ": expected a number above 0, or one a head");
  }
  if (each->size() != 1 && std::ssize(*each) != heads) {
    throw usage_error("scale: expected a number, or one for each of the " + std::to_string(heads) +
                      " heads (got " + std::to_string(each->size()) + " numbers)");
  }
  return HeadScales(std::move(*each));
}

ScoreFunction score_of(const Words& options) {
  const std::string text = word(options, "score");
  const auto score = parse_score(text.empty() ? "softmax" : text);
  if (!score || is_signed(*score)) {
    throw usage_error("score " + one_line(text) +
                      ": expected softmax, softcap:C, sigmoid, linear:elu1 or linear:relu");
  }
  return *score;
}

Mask mask_of(const CallArrays& arrays, const Words& options, const TokenGrid& queries,
             const TokenGrid& keys) {
  if (arrays.mask) {
    return Mask::tensor(array_tensor("mask", *arrays.mask, is_bf16(options, "mask")));
  }
  const std::string text = word(options, "mask");
  if (text.empty()) return {};
  const auto mask = word_mask(text, "mask", queries, keys);
  if (!mask) {
    throw usage_error(
        "mask " + one_line(text) +
        ": expected none, causal, window:N, window:L,R, block_causal:N, natten:TxHxW or an "
        "array");
  }
  return mask->mask;
}

Sinks sinks_of(const DataArray& array, const HeadTensor& q) {
  try {
    return read_sinks(*array_tensor("sinks", array, false), {q.batch(), q.heads(), q.tokens()});
  } catch (const Error& error) {
    throw usage_error(error.what());
  }
}

/// The sequence of queries or keys. A cross attention's queries have no text.
TokenGrid tokens_of(const Words& options, int64_t tokens) {
  const std::string grid = word(options, "grid"), text = word(options, "text");
  const TextSpan span = text.empty() ? TextSpan{} : parse_text_span(text);
  if (!grid.empty()) return TokenGrid::video(tokens, parse_grid(grid), span.count, span.place);
  if (span.place == TextPlace::all) return TokenGrid::text_only(tokens);
  if (span.count > 0) return TokenGrid::spans(tokens, span.count, span.place);
  return TokenGrid::unknown(tokens);
}

}  // namespace

CallHandle make_array_call(const CallArrays& arrays, const Words& options) {
  AttentionProblem::Parts parts;
  parts.q = head_tensor("q", arrays.q, options);
  parts.k = head_tensor("k", arrays.k, options);
  if (arrays.v) parts.v = head_tensor("v", *arrays.v, options);
  parts.scale = scale_of(options, parts.q.heads());
  parts.score = score_of(options);
  if (arrays.sinks) parts.sinks = sinks_of(*arrays.sinks, parts.q);
  const bool same = parts.q.tokens() == parts.k.tokens();
  parts.query_tokens =
      same ? tokens_of(options, parts.q.tokens()) : TokenGrid::unknown(parts.q.tokens());
  parts.key_tokens = same ? parts.query_tokens : TokenGrid::unknown(parts.k.tokens());
  if (!same && !(word(options, "grid") + word(options, "text")).empty()) {
    throw usage_error("grid and text are of queries and keys that are the same tokens (got " +
                      std::to_string(parts.q.tokens()) + " queries, " +
                      std::to_string(parts.k.tokens()) + " keys)");
  }
  parts.mask = mask_of(arrays, options, parts.query_tokens, parts.key_tokens);
  parts.id.kind = same ? CallKind::self : CallKind::cross;
  parts.id.branches = {"all"};
  parts.id.place.unrecorded = {true, true, true};
  parts.name = word(options, "name").empty() ? "arrays" : word(options, "name");
  CallEntry entry;
  entry.id = parts.id;
  entry.problem =
      std::make_shared<const AttentionProblem>(AttentionProblem::make(std::move(parts)));
  return {std::make_shared<const CallEntry>(std::move(entry)), nullptr};
}

}  // namespace attnscope
