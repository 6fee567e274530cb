#include "io/capture/call/call_tokens.h"

#include <algorithm>
#include <array>
#include <optional>

#include "io/capture/call/call_segments.h"
#include "io/capture/facts/fact_errors.h"

namespace attnscope {
namespace {

using GridShape = std::array<int64_t, 3>;

/// Names become part of group names in exports.
void check_name(const CallFacts& facts, const std::string& fact, const std::string& name,
                size_t most) {
  const bool odd = std::any_of(name.begin(), name.end(),
                               [](unsigned char c) { return c <= ' ' || c == '/' || c == 0x7f; });
  if (name.empty() || name.size() > most || name[0] == '.' || odd) {
    throw bad_fact(facts, fact,
                   "\"" + name + "\" is no name (1 to " + std::to_string(most) +
                       " characters, no space or slash)");
  }
}

/// Forward, its place in the step and the call within it; nothing where they are not stated.
CallForward call_forward(const CallFacts& facts) {
  CallForward forward;
  for (const ForwardFact& fact : kForwardFacts) {
    forward.*fact.number = facts.integer(fact.name).value_or(fact.none);
    if (facts.has(fact.name) && !facts.has("forward")) {
      throw bad_fact(facts, fact.name, "belongs to the fact forward, which is missing");
    }
  }
  return forward;
}

/// Block, slot, chunk and forward; empty where they are not known.
ModelPlace call_place(const CallFacts& facts) {
  for (const char* fact : {"block", "slot"}) {
    if (const auto name = facts.text(fact)) check_name(facts, fact, *name, 128);
  }
  return {facts.text("block").value_or(""),
          facts.text("slot").value_or(""),
          facts.integer("chunk").value_or(kNoChunk),
          {},
          call_forward(facts)};
}

std::vector<std::string> call_branches(const CallFacts& facts, int64_t batch) {
  std::vector<std::string> branches = facts.strings("branches");
  const CallForward forward = call_forward(facts);
  if (branches.empty()) branches = {forward.is_stated() ? forward.branch() : "all"};
  for (const std::string& branch : branches) check_name(facts, "branches", branch, 64);
  const auto count = static_cast<int64_t>(branches.size());
  if (count != 1 && count != batch) {
    throw bad_fact(facts, "branches",
                   "expected one name a batch item (got " + std::to_string(count) + " for " +
                       std::to_string(batch) + " items)");
  }
  return branches;
}

/// Joint where a map of the queries has text and something else.
CallKind segments_kind(const CallFacts& facts) {
  bool text = false, other = false;
  const CallFacts::Fact* queries = facts.find("queries");
  if (queries == nullptr || !queries->value.is_array()) return CallKind::self;
  for (const auto& segment : queries->value) {
    const bool is_text =
        segment.is_object() && segment.contains("modality") && segment["modality"] == "text";
    (is_text ? text : other) = true;
  }
  return text && other ? CallKind::joint : CallKind::self;
}

CallKind call_kind(const CallFacts& facts, const HeadTensors& heads) {
  // A piece of a stream attends to what came before it as well.
  const bool cross = heads.q.tokens() != heads.k.tokens() && !facts.has("chunk");
  const auto recorded = facts.text("kind");
  if (!recorded) {
    const std::string text = facts.text("text").value_or("none");
    const bool has_text = text != "none" && text != "all" && text.rfind("0@", 0) != 0;
    if (cross) return CallKind::cross;
    if (has_segments(facts)) return segments_kind(facts);
    return facts.has("grid") && has_text ? CallKind::joint : CallKind::self;
  }
  const auto kind = parse_kind(*recorded);
  if (!kind) {
    throw bad_fact(facts, "kind", "expected self, cross or joint (got " + *recorded + ")");
  }
  if (cross && *kind != CallKind::cross && !facts.has("keys")) {
    throw bad_fact(facts, "kind",
                   *recorded + " attention has as many queries as keys (got " +
                       std::to_string(heads.q.tokens()) + " and " +
                       std::to_string(heads.k.tokens()) +
                       "), where no token map of both, queries and keys, says otherwise");
  }
  return *kind;
}

/// The grid of the query sequence: for factorised attention the part that the call sees.
std::optional<GridShape> sequence_grid(const CallFacts& facts, int64_t batch) {
  const std::string axes = facts.text("axes").value_or("full");
  if (axes != "full" && axes != "spatial" && axes != "temporal") {
    throw bad_fact(facts, "axes", "expected full, spatial or temporal (got " + axes + ")");
  }
  const auto text = facts.text("grid");
  if (!text || *text == "none") return std::nullopt;
  GridShape grid = parse_grid(*text);
  int64_t items = 1;
  if (axes == "spatial") {
    items = grid[0];
    grid = {1, grid[1], grid[2]};
  } else if (axes == "temporal") {
    items = grid[1] * grid[2];
    grid = {grid[0], 1, 1};
  }
  if (batch % items != 0) {
    throw bad_fact(facts, "axes",
                   axes + " attention over the grid " + *text + " has a multiple of " +
                       std::to_string(items) + " batch items (got " + std::to_string(batch) + ")");
  }
  return grid;
}

TokenGrid make_token_grid(int64_t tokens, const std::optional<GridShape>& grid,
                          const TextSpan& text) {
  if (text.place == TextPlace::all) return TokenGrid::text_only(tokens);
  if (grid) return TokenGrid::video(tokens, *grid, text.count, text.place);
  if (text.count == 0) return TokenGrid::unknown(tokens);
  return TokenGrid::spans(tokens, text.count, text.place);
}

/// The fact text_valid as numbers; none where it is not known.
std::vector<int64_t> text_valid(const CallFacts& facts, int64_t batch) {
  const CallFacts::Fact* fact = facts.find("text_valid");
  if (fact == nullptr) return {};
  const auto valid = fact->value.is_array() ? fact->value.get<std::vector<int64_t>>()
                                            : std::vector<int64_t>{fact->value.get<int64_t>()};
  if (valid.size() != 1 && static_cast<int64_t>(valid.size()) != batch) {
    throw bad_fact(facts, "text_valid",
                   "expected one number, or one a batch item (got " + std::to_string(valid.size()) +
                       " for " + std::to_string(batch) + " items)");
  }
  return valid;
}

/// The fact tokens: one list, or one a batch item; none where it is not known.
std::vector<std::vector<std::string>> text_tokens(const CallFacts& facts, int64_t batch,
                                                  int64_t text) {
  const CallFacts::Fact* fact = facts.find("tokens");
  if (fact == nullptr || fact->value.empty()) return {};
  using Lists = std::vector<std::vector<std::string>>;
  const Lists tokens = fact->value.front().is_string()
                           ? Lists{fact->value.get<std::vector<std::string>>()}
                           : fact->value.get<Lists>();
  const auto lists = static_cast<int64_t>(tokens.size());
  if (lists != 1 && lists != batch) {
    throw bad_fact(facts, "tokens",
                   "expected one list, or one a batch item (got " + std::to_string(lists) +
                       " for " + std::to_string(batch) + " items)");
  }
  for (const auto& list : tokens) {
    if (static_cast<int64_t>(list.size()) <= text) continue;
    throw bad_fact(facts, "tokens",
                   "more strings than text tokens (got " + std::to_string(list.size()) +
                       ", limit " + std::to_string(text) + ")");
  }
  return tokens;
}

}  // namespace

CallId call_id(const CallFacts& facts, const HeadTensors& heads) {
  CallId id;
  id.step = facts.integer("step").value_or(0);
  id.place = call_place(facts);
  const bool in_stack = id.place.block.empty();
  id.layer = facts.integer("layer").value_or(in_stack ? 0 : kNoLayer);
  id.place.unrecorded = {!facts.has("step"), in_stack && !facts.has("layer"),
                         !facts.has("branches") && !id.place.forward.is_stated()};
  id.branches = call_branches(facts, heads.q.batch());
  id.kind = call_kind(facts, heads);
  return id;
}

namespace {

CallTokens short_tokens(const CallFacts& facts, const HeadTensors& heads, CallKind kind,
                        ErrorCode wrong) {
  return with_name(facts.name(), wrong, [&]() -> CallTokens {
    const int64_t batch = heads.q.batch();
    const auto grid = sequence_grid(facts, batch);
    const bool cross = kind == CallKind::cross;
    TextSpan text = parse_text_span(facts.text("text").value_or(cross ? "all" : "none"));
    if (!cross && heads.k.tokens() != heads.q.tokens()) {
      throw usage_error("chunk: its " + std::to_string(heads.k.tokens()) + " keys are not its " +
                        std::to_string(heads.q.tokens()) +
                        " queries: expected a token map of both, queries and keys, or kind cross");
    }
    if (!cross) {
      TokenGrid tokens = make_token_grid(heads.q.tokens(), grid, text);
      const auto valid = text_valid(facts, batch);
      if (!valid.empty()) tokens.set_text_valid(valid);
      return {tokens, tokens};
    }
    // The grid belongs to the queries, the text to the keys.
    CallTokens tokens;
    tokens.queries = make_token_grid(heads.q.tokens(), grid, {});
    const bool all = text.count == heads.k.tokens() && text.place != TextPlace::none;
    if (all) text.place = TextPlace::all;
    tokens.keys = make_token_grid(heads.k.tokens(), std::nullopt, text);
    const auto valid = text_valid(facts, batch);
    if (!valid.empty()) tokens.keys.set_text_valid(valid);
    return tokens;
  });
}

}  // namespace

CallTokens call_tokens(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                       CallKind kind, ErrorCode wrong) {
  if (has_segments(facts)) {
    CallSegments map = call_segments(facts, tensors, heads);
    return {std::move(map.queries), std::move(map.keys), std::move(map.words),
            std::move(map.tensors)};
  }
  CallTokens tokens = short_tokens(facts, heads, kind, wrong);
  tokens.words = text_tokens(facts, heads.q.batch(), tokens.keys.text_range().size());
  return tokens;
}

CallFacts with_token_facts(CallFacts facts, const CallTokens& tokens, CallKind kind) {
  if (has_segments(facts)) return facts;
  if (!facts.has("grid")) facts.set("grid", "none", "default");
  if (!facts.has("text")) {
    const TokenGrid& text = kind == CallKind::cross ? tokens.keys : tokens.queries;
    facts.set("text", text.text_text(), "default");
  }
  return facts;
}

}  // namespace attnscope
