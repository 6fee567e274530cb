#include "viewer/view/maps/map_source.h"

#include <fmt/core.h>

#include <numeric>
#include <set>

#include "core/products/softmax_domain.h"
#include "io/capture/capture.h"
#include "io/capture/evictions.h"
#include "io/capture/unknown_state.h"
#include "io/files/utf8.h"

namespace attnscope {
namespace {

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

/// The types of q and k in the file, and a note where `q_state` was not recorded.
std::string precision_text(const CallEntry& call) {
  const AttentionProblem& problem = *call.problem;
  const std::string_view q = dtype_name(problem.q().source().dtype());
  const std::string_view k = dtype_name(problem.k().source().dtype());
  const std::string text = q == k ? fmt::format("q, k {}", q) : fmt::format("q {}, k {}", q, k);
  return is_state_unknown(call) ? fmt::format("{}, {}", text, kUnknownState) : text;
}

}  // namespace

std::vector<MapSource> map_sources(const Capture& capture) {
  std::vector<MapSource> calls;
  for (const CallEntry& entry : capture.calls()) {
    const AttentionProblem& problem = *entry.problem;
    MapSource call;
    call.name = problem.name();
    call.step = entry.id.step;
    call.layer = entry.id.layer;
    call.kind = entry.id.kind;
    call.place = entry.id.place;
    call.branches = entry.id.branches;
    call.batch = counted(problem.batch());
    call.heads = counted(problem.num_heads());
    call.queries = problem.query_tokens();
    call.keys = problem.key_tokens();
    call.tokens = entry.tokens;
    call.score = problem.score();
    call.sinks = !problem.sinks().is_none();
    if (is_signed(call.score)) {
      call.weights = false;  // a weight is its logit
      call.about = "weights of either sign";
    }
    if (!problem.mask().is_none()) call.mask = problem.mask().describe();
    call.evicted = evictions_of(entry);
    call.precision = precision_text(entry);
    call.rows = {0, problem.num_queries()};
    call.cols = {0, problem.num_keys()};
    calls.push_back(std::move(call));
  }
  return calls;
}

std::string softmax_text(const MapSource& call) {
  if (!is_softmax(call.score) || (call.mask.empty() && !call.about.empty())) return "";
  const std::string keys = call.mask.empty() ? "all keys" : kept_keys_text({&call.mask, 1});
  const std::string capped =
      call.score.cap == 0 ? "" : fmt::format(" of logits within ±{:g}", call.score.cap);
  return "softmax" + capped + " over " + keys + (call.sinks ? " and a sink" : "");
}

std::u32string shown_letters(std::span<const MapSource> calls) {
  std::set<char32_t> letters;
  const auto add = [&](const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const char32_t letter = next_character(text, at);
      if (letter >= 0x80) letters.insert(letter);
    }
  };
  for (const MapSource& call : calls) {
    add(call.name);
    add(call.about);
    for (const std::string& branch : call.branches) add(branch);
    for (const std::vector<std::string>& words : call.tokens) {
      for (const std::string& word : words) add(word);
    }
  }
  return {letters.begin(), letters.end()};
}

}  // namespace attnscope
