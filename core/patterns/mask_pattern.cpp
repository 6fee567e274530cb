#include "core/patterns/mask_pattern.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/token_grid.h"

namespace attnscope {
namespace {

/// A parameter's value: puts it into the pattern, or returns what was expected.
using Setter = std::function<std::string(MaskPattern&, const std::string& value)>;

struct Parameter {
  std::string name;
  Setter set;
  std::string example = "";  ///< a value, for the help; empty: not told there
};

struct PatternGrammar {
  std::string name;
  PatternKind kind;
  std::vector<Parameter> parameters;
};

template <typename T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

/// Large enough for any sequence, small enough for sums of two.
constexpr int64_t kMostTokens = int64_t{1} << 40;

Setter whole(int64_t MaskPattern::*member, int64_t least) {
  return [=](MaskPattern& pattern, const std::string& text) -> std::string {
    const auto value = parse_number<int64_t>(text);
    if (!value || *value < least || *value > kMostTokens) {
      return "a whole number, at least " + std::to_string(least);
    }
    pattern.*member = *value;
    return "";
  };
}

/// A number above 0 and up to `most`.
Setter share(double MaskPattern::*member, double most) {
  return [=](MaskPattern& pattern, const std::string& text) -> std::string {
    const auto value = parse_number<double>(text);
    if (!value || !(*value > 0) || !(*value <= most)) {
      return most == 1 ? "a number above 0 and up to 1" : "a number above 0";
    }
    pattern.*member = *value;
    return "";
  };
}

Setter extents(std::array<int64_t, 3> MaskPattern::*member) {
  return [=](MaskPattern& pattern, const std::string& text) -> std::string {
    try {
      const auto value = parse_grid(text);
      if (*std::max_element(value.begin(), value.end()) <= kMostTokens / (1 << 20)) {
        pattern.*member = value;
        return "";
      }
    } catch (const Error&) {
      // Told in the pattern's own words.
    }
    return "three numbers from 1 on, TxHxW";
  };
}

std::string set_text(MaskPattern& pattern, const std::string& text) {
  if (text != "keep" && text != "drop") return "keep or drop";
  pattern.keep_text = text == "keep";
  return "";
}

const std::vector<PatternGrammar>& grammar() {
  using P = MaskPattern;
  static const Parameter text{"text", set_text};
  static const Parameter block{"block", whole(&P::block, 1), "128"};
  static const std::vector<PatternGrammar> patterns{
      {"none", PatternKind::none, {}},
      {"causal", PatternKind::causal, {}},
      {"window", PatternKind::window, {{"reach", whole(&P::reach, 0), "N"}}},
      {"block_causal", PatternKind::block_causal, {{"block", whole(&P::block, 1), "N"}}},
      {"spatial", PatternKind::spatial, {{"frames", whole(&P::frames, 0), "0"}, text}},
      {"temporal", PatternKind::temporal, {{"band", whole(&P::band, 0), "B"}, text}},
      {"tiles",
       PatternKind::tiles,
       {{"size", extents(&P::tile), "6x8x8"}, {"window", extents(&P::window), "3x3x3"}, text}},
      {"radial",
       PatternKind::radial,
       {block,
        {"decay", share(&P::decay, std::numeric_limits<double>::max()), "1"},
        {"sink", whole(&P::sink, 0), "0"},
        text}},
      {"vertical-slash",
       PatternKind::vertical_slash,
       {{"vertical", whole(&P::vertical, 0), "64"},
        {"slash", whole(&P::slash, 0), "64"},
        {"rows", whole(&P::rows, 1), "64"},
        text}},
      {"topk",
       PatternKind::topk,
       {block, {"keep", share(&P::keep, 1), "0.1"}, {"blocks", whole(&P::blocks, 1)}, text}},
      {"topp", PatternKind::topp, {block, {"p", share(&P::p, 1), "0.9"}, text}}};
  return patterns;
}

/// Kernels by the names of their papers, and which pattern comes near.
struct PaperName {
  std::string_view name, advice;
};
constexpr PaperName kPaperNames[] = {
    {"svg", "Sparse VideoGen takes spatial or temporal, a head: measure both"},
    {"minference", "MInference is near vertical-slash, which looks at rows of the whole head"},
    {"sparge", "SpargeAttn is topp with a test of similarity, which is left out"},
    {"vsa", "VSA keeps the best cubes; topk keeps blocks of tokens as they stand in the sequence"}};

/// The pattern that a name means: Sliding Tile Attention is `tiles`. Throws Error(usage) for the
/// name of a kernel that none of them is.
std::string pattern_called(const std::string& name, const std::string& where) {
  for (const PaperName& paper : kPaperNames) {
    if (paper.name == name) throw usage_error(where + ": " + std::string(paper.advice));
  }
  return name == "sta" ? "tiles" : name;
}

/// "; did you mean X?" or the list.
std::string hint(const std::string& word, const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  const std::string nearest = nearest_word(word, names);
  return (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" + all + ")";
}

/// window:128 and block_causal:64 are what the same masks are called elsewhere.
bool is_one_number(PatternKind kind) {
  return kind == PatternKind::window || kind == PatternKind::block_causal;
}

void set_parameter(const PatternGrammar& grammar, MaskPattern& pattern, const std::string& part,
                   std::vector<std::string>& seen, const std::string& where) {
  const size_t equals = part.find('=');
  const bool bare = equals == std::string::npos && is_one_number(grammar.kind);
  const std::string key = bare ? grammar.parameters.front().name : part.substr(0, equals);
  const std::string value = bare                          ? part
                            : equals == std::string::npos ? ""
                                                          : part.substr(equals + 1);
  std::vector<std::string> names;
  for (const Parameter& parameter : grammar.parameters) {
    names.push_back(parameter.name);
    if (parameter.name != key) continue;
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      throw usage_error(where + ": " + key + " is given twice");
    }
    seen.push_back(key);
    const std::string expected = parameter.set(pattern, value);
    if (expected.empty()) return;
    throw usage_error(where + ": " + key + "=" + value + ": expected " + expected);
  }
  if (names.empty()) throw usage_error(where + ": " + grammar.name + " takes no parameters");
  throw usage_error(where + ": " + grammar.name + " has no parameter " + key + hint(key, names));
}

}  // namespace

std::span<const std::string> mask_pattern_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const PatternGrammar& pattern : grammar()) all.push_back(pattern.name);
    return all;
  }();
  return names;
}

std::vector<std::string> mask_pattern_words() {
  std::vector<std::string> words;
  for (const PatternGrammar& pattern : grammar()) {
    std::string values;
    for (const Parameter& parameter : pattern.parameters) {
      if (parameter.example.empty()) continue;
      const std::string key = is_one_number(pattern.kind) ? "" : parameter.name + "=";
      values += (values.empty() ? ":" : ",") + key + parameter.example;
    }
    words.push_back(pattern.name + values);
  }
  return words;
}

std::optional<int64_t> MaskPattern::own_block() const {
  switch (kind) {
    case PatternKind::block_causal:
    case PatternKind::radial:
    case PatternKind::topk:
    case PatternKind::topp:
      return block;
    default:
      return std::nullopt;
  }
}

MaskPattern parse_mask_pattern(std::string_view text, std::string_view option) {
  const std::string whole_text(text);
  const std::string where = std::string(option) + " " + whole_text;
  const std::string called = whole_text.substr(0, whole_text.find(':'));
  const std::string name = pattern_called(called, where);
  const auto found = std::find_if(grammar().begin(), grammar().end(),
                                  [&](const PatternGrammar& g) { return g.name == name; });
  if (found == grammar().end()) {
    const auto names = mask_pattern_names();
    throw usage_error(where + ": no such pattern" + hint(name, {names.begin(), names.end()}));
  }
  MaskPattern pattern;
  pattern.kind = found->kind;
  pattern.text = whole_text;
  std::vector<std::string> seen;
  for (size_t begin = called.size(); begin < whole_text.size();) {
    const size_t comma = std::min(whole_text.find(',', begin + 1), whole_text.size());
    set_parameter(*found, pattern, whole_text.substr(begin + 1, comma - begin - 1), seen, where);
    begin = comma;
  }
  const auto given = [&](const char* key) {
    return std::find(seen.begin(), seen.end(), key) != seen.end();
  };
  if (is_one_number(pattern.kind) && seen.empty()) {
    throw usage_error(where + ": expected " + name + ":N, N a number of tokens");
  }
  if (given("keep") && given("blocks")) {
    throw usage_error(where + ": keep and blocks both say how many blocks; give one");
  }
  if (pattern.kind == PatternKind::vertical_slash && pattern.vertical + pattern.slash == 0) {
    throw usage_error(where + ": vertical and slash are both 0");
  }
  return pattern;
}

}  // namespace attnscope
