#include "io/relabel/relabel_rules.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr size_t kLongestName = 64;

struct Pair {
  std::string text, from, to;
};

Error refusal(const char* option, const std::string& piece, const std::string& what) {
  return usage_error(std::string(option) + " " + one_line(piece) + ": " + what);
}

std::vector<Pair> pairs_of(const char* option, const std::string& list) {
  std::vector<Pair> pairs;
  std::istringstream pieces(list);
  for (std::string piece; std::getline(pieces, piece, ',');) {
    const size_t equals = piece.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == piece.size()) {
      throw refusal(option, piece, "expected OLD=NEW");
    }
    pairs.push_back({piece, piece.substr(0, equals), piece.substr(equals + 1)});
  }
  if (!list.empty() && (pairs.empty() || list.back() == ',')) {
    throw refusal(option, list, "expected OLD=NEW after each comma");
  }
  return pairs;
}

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_one = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_one && text[0] != '+' ? std::optional(number) : std::nullopt;
}

struct Range {
  int64_t first = 0, last = 0;
  bool of_forwards = false;
};

/// "3", "3-7", "f3", "f3-f7"; nothing where it is none.
std::optional<Range> range_of(const std::string& text) {
  const size_t dash = text.find('-');
  const bool of_forwards = text[0] == 'f';
  const auto number = [&](const std::string& part) {
    const bool has_letter = !part.empty() && part[0] == 'f';
    return has_letter == of_forwards ? whole_number(part.substr(of_forwards ? 1 : 0))
                                     : std::nullopt;
  };
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{*first, *last, of_forwards};
}

/// Branches become parts of names of groups in exports.
void check_branch(const std::string& piece, const std::string& name) {
  const bool odd = std::any_of(name.begin(), name.end(),
                               [](unsigned char c) { return c <= ' ' || c == '/' || c == 0x7f; });
  if (!odd && name[0] != '.' && name.size() <= kLongestName) return;
  throw refusal("--branches", piece,
                "\"" + one_line(name) + "\" is no name of a branch (1 to " +
                    std::to_string(kLongestName) +
                    " characters, no space or slash, no dot at its beginning)");
}

void check_apart(const char* option, const std::vector<NumberRule>& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const NumberRule &a = rules[j], &b = rules[i];
      if (a.of_forwards != b.of_forwards || a.block != b.block) continue;
      if (!a.block.empty() || (a.first <= b.last && b.first <= a.last)) {
        throw refusal(option, b.text, "is told by " + one_line(a.text) + " already");
      }
    }
  }
}

std::vector<NumberRule> number_rules(const char* option, const std::string& list, bool steps) {
  std::vector<NumberRule> rules;
  for (const Pair& pair : pairs_of(option, list)) {
    const auto to = range_of(pair.to);
    if (!to || to->of_forwards) {
      throw refusal(option, pair.text, "expected a whole number, or a range of them, after the =");
    }
    const auto from = range_of(pair.from);
    if (steps && !from) {
      throw refusal(option, pair.text,
                    "expected a recorded step, a forward as f3, or a range of them, before the =");
    }
    NumberRule rule{pair.text};
    rule.to = to->first;
    rule.all_to_one = to->first == to->last;
    if (from && (steps || !from->of_forwards)) {
      rule.first = from->first;
      rule.last = from->last;
      rule.of_forwards = from->of_forwards;
    } else {
      rule.block = pair.from;
    }
    if (!rule.all_to_one && rule.last - rule.first != to->last - to->first) {
      throw refusal(option, pair.text, "the two ranges have different lengths");
    }
    rules.push_back(std::move(rule));
  }
  check_apart(option, rules);
  return rules;
}

}  // namespace

RelabelRules parse_relabel_rules(const std::string& branches, const std::string& steps,
                                 const std::string& layers,
                                 std::optional<int64_t> forwards_per_step) {
  RelabelRules rules;
  for (const Pair& pair : pairs_of("--branches", branches)) {
    check_branch(pair.text, pair.to);
    if (!rules.branches.emplace(pair.from, pair.to).second) {
      throw refusal("--branches", pair.text, one_line(pair.from) + " is told twice");
    }
  }
  rules.steps = number_rules("--steps", steps, true);
  rules.layers = number_rules("--layers", layers, false);
  if (forwards_per_step && *forwards_per_step < 1) {
    throw usage_error("--forwards-per-step " + std::to_string(*forwards_per_step) +
                      ": expected a whole number from 1");
  }
  rules.forwards_per_step = forwards_per_step;
  const bool of_forwards = std::any_of(rules.steps.begin(), rules.steps.end(),
                                       [](const NumberRule& rule) { return rule.of_forwards; });
  if (of_forwards && forwards_per_step) {
    throw usage_error("--forwards-per-step tells the step of every forward: give it, or --steps " +
                      one_line(steps) + ", not both");
  }
  return rules;
}

}  // namespace attnscope
