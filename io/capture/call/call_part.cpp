#include "io/capture/call/call_part.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/capture/facts/fact_errors.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

constexpr uint64_t kMostRanks = 1 << 16;
constexpr size_t kMostRanges = 1 << 16;
constexpr uint64_t kMostTokens = uint64_t{1} << 40;

constexpr std::array<std::string_view, 6> kMembers{"rank",    "ranks", "run",
                                                   "queries", "keys",  "whole"};
/// The facts of a call that say what its tokens are.
constexpr std::array<std::string_view, 6> kTokenFacts{"grid",   "text",    "text_valid",
                                                      "tokens", "queries", "keys"};

template <size_t N>
void require_known(const Json& object, const std::array<std::string_view, N>& known,
                   const std::string& where) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw usage_error(where + one_line(name) + " is not known");
  }
}

int64_t number(const Json& part, const char* name, uint64_t least, uint64_t limit) {
  const bool fits = part.contains(name) && part[name].is_number_unsigned() &&
                    part[name].get<uint64_t>() >= least && part[name].get<uint64_t>() < limit;
  if (fits) return part[name].get<int64_t>();
  throw usage_error(std::string(name) + ": expected a whole number from " + std::to_string(least) +
                    " to " + std::to_string(limit - 1) +
                    (part.contains(name) ? " (got " + part[name].dump() + ")" : ""));
}

/// [[first, count], …], none of which meet.
std::vector<IndexRange> ranges(const Json& list, const std::string& name) {
  const auto refuse = [&](size_t i, const std::string& what) {
    return usage_error(name + "[" + std::to_string(i) + "]: " + what);
  };
  if (!list.is_array() || list.empty() || list.size() > kMostRanges) {
    throw usage_error(name + ": expected a list of 1 to " + std::to_string(kMostRanges) +
                      " ranges [first token, tokens]");
  }
  std::vector<IndexRange> found;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& pair = list[i];
    const bool numbers = pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
                         pair[1].is_number_unsigned() && pair[0].get<uint64_t>() < kMostTokens &&
                         pair[1].get<uint64_t>() < kMostTokens && pair[1].get<uint64_t>() > 0;
    if (!numbers) throw refuse(i, "expected [first token, tokens], at least one");
    found.push_back({pair[0].get<int64_t>(), pair[0].get<int64_t>() + pair[1].get<int64_t>()});
  }
  std::vector<size_t> order(found.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return found[a].begin < found[b].begin; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (found[order[i]].begin < found[order[i - 1]].end) {
      throw refuse(order[i], "has tokens of " + name + "[" + std::to_string(order[i - 1]) + "]");
    }
  }
  return found;
}

CallPart parse_part(const Json& value) {
  if (!value.is_object()) throw usage_error("expected an object (got " + value.dump() + ")");
  require_known(value, kMembers, "");
  CallPart part;
  part.ranks = number(value, "ranks", 1, kMostRanks + 1);
  part.rank = number(value, "rank", 0, static_cast<uint64_t>(part.ranks));
  if (value.contains("run")) {
    if (!value["run"].is_string()) throw usage_error("run: expected a string");
    part.run = value["run"].get<std::string>();
  }
  if (value.contains("queries") != value.contains("whole") ||
      (value.contains("keys") && !value.contains("queries"))) {
    throw usage_error("queries and whole belong together, and keys to them");
  }
  if (!value.contains("queries")) return part;
  part.queries = ranges(value["queries"], "queries");
  part.keys = value.contains("keys") ? ranges(value["keys"], "keys") : part.queries;
  if (!value["whole"].is_object()) throw usage_error("whole: expected an object of facts");
  require_known(value["whole"], kTokenFacts, "whole: ");
  part.whole = value["whole"].dump(-1, ' ', false, Json::error_handler_t::replace);
  return part;
}

void require_count(const std::vector<IndexRange>& ranges, int64_t tokens, const char* side,
                   const char* tensor) {
  int64_t count = 0;
  for (const IndexRange& range : ranges) count += range.size();
  if (count == tokens) return;
  throw usage_error(std::string(side) + ": has " + std::to_string(count) + " tokens, but " +
                    tensor + " has " + std::to_string(tokens));
}

void collect_tensors(const Json& value, std::set<std::string>& names) {
  for (const auto& [key, inner] : value.items()) {
    if (value.is_object() && (key == "tensor" || key == "permutation") && inner.is_string()) {
      names.insert(inner.get<std::string>());
    } else if (inner.is_structured()) {
      collect_tensors(inner, names);
    }
  }
}

std::string ranges_text(const std::vector<IndexRange>& ranges) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < ranges.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranges[i].begin) + "-" +
            std::to_string(ranges[i].end - 1);
  }
  return ranges.size() > kShown ? text + " …" : text;
}

}  // namespace

std::optional<CallPart> call_part(const CallFacts& facts, const HeadTensors& heads) {
  const CallFacts::Fact* fact = facts.find("part");
  if (fact == nullptr) return std::nullopt;
  try {
    CallPart part = parse_part(fact->value);
    if (!part.has_some_tokens()) return part;
    require_count(part.queries, heads.q.tokens(), "queries", "q");
    require_count(part.keys, heads.k.tokens(), "keys", "k");
    return part;
  } catch (const Error& error) {
    throw bad_fact(facts, "part", error.what());
  }
}

std::optional<CallPart> part_of(const CallEntry& call) {
  const auto fact = call.facts.find("part");
  if (fact == call.facts.end()) return std::nullopt;
  return parse_part(Json::parse(fact->second.json));
}

std::set<std::string> part_tensors(const CallPart& part) {
  std::set<std::string> names;
  if (!part.whole.empty()) collect_tensors(Json::parse(part.whole), names);
  return names;
}

std::string part_text(const CallPart& part) {
  std::string text =
      "rank " + std::to_string(part.rank) + " of " + std::to_string(part.ranks) + ", ";
  if (!part.has_some_tokens()) return text + "all tokens";
  text += "queries " + ranges_text(part.queries);
  if (part.keys != part.queries) text += ", keys " + ranges_text(part.keys);
  return text + " of the whole map";
}

}  // namespace attnscope
