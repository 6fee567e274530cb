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
  MaskPattern defaults = {};  ///< numbers that are not told
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
/// Of a block of `subblock`.
constexpr int64_t kMostCells = 64;
/// Of standard deviations.
constexpr double kMostNumber = 1000;

std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

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

/// A number from `least` to `most`.
Setter number(double MaskPattern::*member, double least, double most) {
  return [=](MaskPattern& pattern, const std::string& text) -> std::string {
    const auto value = parse_number<double>(text);
    if (!value || !(*value >= least) || !(*value <= most)) {
      return "a number from " + number_text(least) + " to " + number_text(most);
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

Parameter neighbourhood(const std::string& name, const std::string& example = "") {
  return {name,
          [name](MaskPattern& pattern, const std::string& text) {
            return pattern.neighbourhood.set(name, text);
          },
          example};
}

/// One of two words.
template <typename T>
Setter word_of(T MaskPattern::*member, const std::vector<std::pair<std::string, T>>& words) {
  return [=](MaskPattern& pattern, const std::string& text) -> std::string {
    std::string all;
    for (const auto& [word, value] : words) {
      if (word == text) {
        pattern.*member = value;
        return "";
      }
      all += (all.empty() ? "" : " or ") + word;
    }
    return all;
  };
}

std::string set_cells(MaskPattern& pattern, const std::string& text) {
  const size_t cross = text.find('x');
  const auto rows = parse_number<int64_t>(text.substr(0, cross));
  const auto columns =
      cross == std::string::npos ? std::nullopt : parse_number<int64_t>(text.substr(cross + 1));
  if (!rows || !columns || *rows < 1 || *columns < 1 || std::max(*rows, *columns) > kMostCells) {
    return "two numbers from 1 to " + std::to_string(kMostCells) + ", QxK";
  }
  pattern.cells = {*rows, *columns};
  return "";
}

std::string set_order(MaskPattern& pattern, const std::string& text) {
  try {
    pattern.order = TokenOrder::parse(text);
    return "";
  } catch (const Error&) {
    return "an order of the tokens: stored, yxt (or another of the axes), hilbert, morton or "
           "tiles:TxHxW";
  }
}

/// The selectors of kernels, with the numbers that their code begins with.
std::vector<PatternGrammar> selectors() {
  using P = MaskPattern;
  using K = PatternKind;
  const Parameter text{"text", word_of<TextRule>(&P::text_rule, {{"keep", TextRule::keep},
                                                                 {"compete", TextRule::compete}})};
  const auto block = [](const char* usual) {
    return Parameter{"block", whole(&P::block, 1), usual};
  };
  const auto keep = [](const char* usual) { return Parameter{"keep", share(&P::keep, 1), usual}; };
  const auto tile = [](const char* usual) { return Parameter{"tile", extents(&P::tile), usual}; };
  const Parameter order{"order", set_order};
  const Parameter window{"window", extents(&P::window)};
  const std::vector<std::pair<std::string, BlockRest>> rests{
      {"renormalise", BlockRest::renormalise},
      {"lost", BlockRest::lost},
      {"row", BlockRest::row},
      {"centroid", BlockRest::centroid},
      {"coarse", BlockRest::coarse},
      {"linear", BlockRest::linear}};
  const Parameter tail{"tail", word_of<BlockRest>(&P::rest, {{"row", BlockRest::row},
                                                             {"centroid", BlockRest::centroid},
                                                             {"none", BlockRest::renormalise}})};
  const Parameter rest{"rest", word_of<BlockRest>(&P::rest, rests)};
  const Parameter gate{"gate", number(&P::gate, -kMostNumber, kMostNumber)};
  const Parameter variance{"variance",
                           word_of<bool>(&P::exact_variance, {{"diag", false}, {"exact", true}})};
  P sol, subblock, vsa, sla, sparge, nabla, draft, ssta, xattention, dfs, skip, oracle;
  sol.keep = sparge.keep = 0;
  sol.block = subblock.block = sla.block = oracle.block = 64;
  sol.rest = BlockRest::row;
  subblock.keep = dfs.keep = 0.25;
  for (P* const p : {&sla, &sparge, &xattention, &dfs, &skip}) p->text_rule = TextRule::compete;
  vsa.tile = {4, 4, 4};
  nabla.tile = {1, 8, 8};
  nabla.window = {0, 0, 0};
  draft.tile = {1, 8, 16};
  dfs.order = TokenOrder::parse("hilbert");
  skip.lambda = 0.001;
  std::vector<PatternGrammar> all{
      {"sol",
       K::sol,
       {{"tau", number(&P::tau, -kMostNumber, kMostNumber), "1"},
        keep(""),
        tail,
        variance,
        block(""),
        order,
        text},
       sol},
      {"subblock",
       K::subblock,
       {keep("0.25"), {"cells", set_cells}, block(""), order, text},
       subblock},
      {"vsa", K::vsa, {keep("0.1"), tile("4x4x4"), text}, vsa},
      {"sla", K::sla, {keep("0.1"), block(""), order, text}, sla},
      {"sparge",
       K::sparge,
       {{"sim", number(&P::sim, -1, 1), "0.6"},
        {"cdf", number(&P::cdf, 0, 1), "0.98"},
        keep(""),
        text},
       sparge},
      {"nabla", K::nabla, {{"p", share(&P::p, 1), "0.9"}, window, tile("")}, nabla},
      {"draft", K::draft, {keep("0.1"), tile("")}, draft},
      {"ssta",
       K::ssta,
       {{"blocks", whole(&P::blocks, 1)},
        {"lambda", number(&P::lambda, 0, 1)},
        window,
        tile("6x8x8")},
       ssta},
      {"xattention",
       K::xattention,
       {{"p", share(&P::p, 1), "0.9"}, {"stride", whole(&P::stride, 1)}, block(""), text},
       xattention},
      {"dfs", K::dfs, {keep("0.25"), block(""), order, text}, dfs},
      {"skip-softmax",
       K::skip_softmax,
       {{"lambda", share(&P::lambda, 1), "0.001"}, block(""), order, text},
       skip},
      {"block-oracle", K::block_oracle, {keep("0.1"), block(""), order, text}, oracle}};
  for (PatternGrammar& selector : all) {
    selector.parameters.push_back(rest);
    selector.parameters.push_back(gate);
  }
  return all;
}

const std::vector<PatternGrammar>& grammar() {
  using P = MaskPattern;
  static const Parameter text{"text", word_of<TextRule>(&P::text_rule, {{"keep", TextRule::keep},
                                                                        {"drop", TextRule::drop}})};
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
      {"natten",
       PatternKind::natten,
       {neighbourhood("window", "TxHxW"), neighbourhood("stride"), neighbourhood("dilation"),
        neighbourhood("causal"), text}},
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
  static const std::vector<PatternGrammar> all = [] {
    std::vector<PatternGrammar> list = patterns;
    for (PatternGrammar& selector : selectors()) list.push_back(std::move(selector));
    return list;
  }();
  return all;
}

/// Kernels by the names of their papers, and which pattern comes near.
struct PaperName {
  std::string_view name, advice;
};
constexpr PaperName kPaperNames[] = {
    {"svg", "Sparse VideoGen takes spatial or temporal, a head: measure both"},
    {"minference", "MInference is near vertical-slash, which looks at rows of the whole head"}};

/// The pattern that a name means: Sliding Tile Attention is `tiles`. Throws Error(usage) for the
/// name of a kernel that none of them is.
std::string pattern_called(const std::string& name, const std::string& where) {
  for (const PaperName& paper : kPaperNames) {
    if (paper.name == name) throw usage_error(where + ": " + std::string(paper.advice));
  }
  if (name == "keysplit") return "subblock";
  if (name == "blasst") return "skip-softmax";
  return name == "sta" ? "tiles" : name;
}

/// "; did you mean X?" or the list.
std::string hint(const std::string& word, const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  const std::string nearest = nearest_word(word, names);
  return (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" + all + ")";
}

/// window:128, block_causal:64 and natten:3x5x5 are what the same masks are called elsewhere.
bool begins_with_size(PatternKind kind) {
  return kind == PatternKind::window || kind == PatternKind::block_causal ||
         kind == PatternKind::natten;
}

void set_parameter(const PatternGrammar& grammar, MaskPattern& pattern, const std::string& part,
                   std::vector<std::string>& seen, const std::string& where) {
  const size_t equals = part.find('=');
  const bool bare = equals == std::string::npos && begins_with_size(grammar.kind);
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

/// Throws Error(usage) where values that are right alone contradict each other.
void check_together(const MaskPattern& pattern, const std::function<bool(const char*)>& given,
                    const std::string& where) {
  if (given("keep") && given("blocks")) {
    throw usage_error(where + ": keep and blocks both say how many blocks; give one");
  }
  for (const char* other : {"tau", "cdf"}) {
    if (!given("keep") || !given(other)) continue;
    throw usage_error(where + ": keep and " + other +
                      " both say how many blocks are kept; give one");
  }
  if (given("tail") && given("rest")) {
    throw usage_error(where + ": tail and rest both say what stands for dropped blocks; give one");
  }
  const bool branch = pattern.rest == BlockRest::coarse || pattern.rest == BlockRest::linear;
  if (given("gate") && !branch) {
    throw usage_error(where + ": gate is of rest=coarse and rest=linear");
  }
  const auto cut = [&](int64_t parts, const char* into) {
    if (pattern.block % parts == 0) return;
    throw usage_error(where + ": a block of " + std::to_string(pattern.block) +
                      " tokens cannot be cut into " + std::to_string(parts) + into);
  };
  if (pattern.kind == PatternKind::subblock) {
    for (const int64_t cells : pattern.cells) cut(cells, " equal cells");
  }
  if (pattern.kind == PatternKind::dfs) cut(pattern.cells[0], " equal cells");
  if (pattern.kind == PatternKind::xattention && pattern.block % pattern.stride != 0) {
    throw usage_error(where + ": a block of " + std::to_string(pattern.block) +
                      " tokens is not made of strides of " + std::to_string(pattern.stride));
  }
  if (pattern.kind == PatternKind::vertical_slash && pattern.vertical + pattern.slash == 0) {
    throw usage_error(where + ": vertical and slash are both 0");
  }
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
      const std::string key = begins_with_size(pattern.kind) ? "" : parameter.name + "=";
      values += (values.empty() ? ":" : ",") + key + parameter.example;
    }
    words.push_back(pattern.name + values);
  }
  return words;
}

bool MaskPattern::reorders() const {
  switch (kind) {
    case PatternKind::vsa:
    case PatternKind::nabla:
    case PatternKind::draft:
    case PatternKind::ssta:
      return true;
    default:
      return order != TokenOrder() && order != TokenOrder::parse("raster");
  }
}

std::optional<int64_t> MaskPattern::own_block() const {
  switch (kind) {
    case PatternKind::block_causal:
    case PatternKind::radial:
    case PatternKind::topk:
    case PatternKind::topp:
      return block;
    case PatternKind::sol:
    case PatternKind::subblock:
    case PatternKind::sla:
    case PatternKind::xattention:
    case PatternKind::dfs:
    case PatternKind::skip_softmax:
    case PatternKind::block_oracle:
      return reorders() ? std::nullopt : std::optional(block);
    case PatternKind::sparge:
      return kSpargeKeys;  // its blocks of queries are two of these
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
  MaskPattern pattern = found->defaults;
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
  if (begins_with_size(pattern.kind) && !given(found->parameters.front().name.c_str())) {
    throw usage_error(where + ": expected " + name +
                      (pattern.kind == PatternKind::natten ? ":TxHxW, a window of cells"
                                                           : ":N, N a number of tokens"));
  }
  check_together(pattern, given, where);
  return pattern;
}

}  // namespace attnscope
