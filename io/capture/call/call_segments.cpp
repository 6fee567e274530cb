#include "io/capture/call/call_segments.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/capture/facts/fact_errors.h"
#include "io/segments/segment_json.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

/// The tensors that token maps name, as they are read.
class NamedTensors {
 public:
  NamedTensors(const CallTensors& tensors, std::set<std::string>& used)
      : tensors_(tensors), used_(used) {}

  std::vector<int64_t> list(const std::string& name, int64_t count) const {
    const TensorSource& source = find(name);
    const auto shape = source.shape();
    if (source.dtype() != DType::i64 || shape.size() != 1 || shape[0] != count) {
      throw usage_error(misfit(source, "int64 " + shape_text(std::array{count})));
    }
    std::vector<int64_t> values(static_cast<size_t>(count));
    const int64_t begin = 0;
    source.read({&begin, 1}, shape, reinterpret_cast<std::byte*>(values.data()));
    return values;
  }

  std::vector<std::vector<uint8_t>> flags(const std::string& name, int64_t count) const {
    const TensorSource& source = find(name);
    const auto shape = source.shape();
    const bool fits = source.dtype() == DType::boolean && !shape.empty() && shape.size() <= 2 &&
                      shape.back() == count;
    if (!fits) {
      throw usage_error(misfit(source, "bool " + shape_text(std::array{count}) + " or [batch, " +
                                           std::to_string(count) + "]"));
    }
    std::vector<std::vector<uint8_t>> items(shape.size() == 1 ? 1 : static_cast<size_t>(shape[0]));
    for (size_t item = 0; item < items.size(); ++item) {
      items[item].resize(static_cast<size_t>(count));
      const std::array<int64_t, 2> begin{static_cast<int64_t>(item), 0}, extent{1, count};
      const size_t skipped = 2 - shape.size();
      source.read(std::span(begin).subspan(skipped), std::span(extent).subspan(skipped),
                  reinterpret_cast<std::byte*>(items[item].data()));
    }
    return items;
  }

 private:
  const TensorSource& find(const std::string& name) const {
    const auto found = tensors_.others.find(name);
    if (found == tensors_.others.end())
      throw usage_error("the file has no tensor " + one_line(name));
    used_.insert(name);
    return *found->second;
  }
  static std::string misfit(const TensorSource& source, const std::string& expected) {
    return source.name() + ": expected " + expected + " (got " +
           std::string(dtype_name(source.dtype())) + " " + shape_text(source.shape()) + ")";
  }

  const CallTensors& tensors_;
  std::set<std::string>& used_;
};

StatedSegments read_segments(const CallFacts& facts, const std::string& fact,
                             const CallTensors& tensors, std::set<std::string>& used) {
  const NamedTensors named(tensors, used);
  const SegmentTensors read{
      [&](const std::string& name, int64_t count) { return named.list(name, count); },
      [&](const std::string& name, int64_t count) { return named.flags(name, count); }};
  try {
    return parse_segments(facts.find(fact)->value, &read);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    throw bad_fact(facts, fact, error.what());
  }
}

TokenGrid make_grid(const CallFacts& facts, const std::string& fact, const StatedSegments& stated,
                    int64_t tokens, const char* tensor) {
  TokenGrid grid;
  try {
    grid = TokenGrid::of_segments(stated.segments);
  } catch (const Error& error) {
    throw bad_fact(facts, fact, error.what());
  }
  if (grid.tokens() != tokens) {
    throw bad_fact(facts, fact,
                   "has " + std::to_string(grid.tokens()) + " tokens, but " + tensor + " has " +
                       std::to_string(tokens));
  }
  return grid;
}

/// The words of the text, one list after the other; where a segment has fewer than tokens, the rest
/// is empty.
std::vector<std::vector<std::string>> text_words(const CallFacts& facts, const std::string& fact,
                                                 const StatedSegments& stated,
                                                 const TokenGrid& grid, int64_t batch) {
  size_t items = 1;
  bool any = false;
  for (const auto& lists : stated.words) {
    if (lists.size() > 1 && static_cast<int64_t>(lists.size()) != batch) {
      throw bad_fact(facts, fact,
                     "words: expected one list, or one a batch item (got " +
                         std::to_string(lists.size()) + " for " + std::to_string(batch) +
                         " items)");
    }
    items = std::max(items, lists.size());
  }
  std::vector<std::vector<std::string>> words(items);
  for (size_t i = 0; i < stated.segments.size(); ++i) {
    const TokenSegment& segment = stated.segments[i];
    const auto& lists = stated.words[i];
    if (!lists.empty() && segment.modality != Modality::text) {
      throw bad_fact(facts, fact, "segment " + segment.name + " is no text and has words");
    }
    if (!grid.text_range().contains(segment.tokens.begin)) continue;
    any |= !lists.empty();
    for (size_t item = 0; item < items; ++item) {
      if (!lists.empty()) {
        const auto& list = lists[lists.size() == 1 ? 0 : item];
        words[item].insert(words[item].end(), list.begin(), list.end());
      }
      words[item].resize(static_cast<size_t>(segment.tokens.end - grid.text_range().begin));
    }
  }
  if (!any) words.clear();
  return words;
}

}  // namespace

bool has_segments(const CallFacts& facts) { return facts.has("queries") || facts.has("keys"); }

CallSegments call_segments(const CallFacts& facts, const CallTensors& tensors,
                           const HeadTensors& heads) {
  for (const char* fact : {"grid", "text", "text_valid", "tokens", "axes"}) {
    if (facts.has(fact)) {
      throw bad_fact(facts, fact, "stands beside the token map of queries and keys, which says it");
    }
  }
  if (!facts.has("queries")) throw bad_fact(facts, "keys", "needs queries beside it");
  CallSegments segments;
  const StatedSegments queries = read_segments(facts, "queries", tensors, segments.tensors);
  segments.queries = make_grid(facts, "queries", queries, heads.q.tokens(), "q");
  const int64_t batch = heads.q.batch();
  if (!facts.has("keys")) {
    if (heads.k.tokens() != heads.q.tokens()) {
      throw bad_fact(facts, "queries",
                     "is no map of the keys, which are others (q has " +
                         std::to_string(heads.q.tokens()) + " tokens, k " +
                         std::to_string(heads.k.tokens()) + "): expected keys beside it");
    }
    segments.keys = segments.queries;
    segments.words = text_words(facts, "queries", queries, segments.queries, batch);
    return segments;
  }
  const StatedSegments keys = read_segments(facts, "keys", tensors, segments.tensors);
  segments.keys = make_grid(facts, "keys", keys, heads.k.tokens(), "k");
  const auto query_words = text_words(facts, "queries", queries, segments.queries, batch);
  segments.words = text_words(facts, "keys", keys, segments.keys, batch);
  if (segments.words.empty() && segments.keys.text_range().empty()) segments.words = query_words;
  return segments;
}

}  // namespace attnscope
