#include "core/problem/score.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/problem/problem_names.h"

namespace attnscope {
namespace {

constexpr std::array kScores{
    std::pair{std::string_view("softmax"), ScoreFunction::softmax},
    std::pair{std::string_view("sigmoid"), ScoreFunction::sigmoid},
    std::pair{std::string_view("linear:elu1"), ScoreFunction::linear_elu1},
    std::pair{std::string_view("linear:relu"), ScoreFunction::linear_relu},
    std::pair{std::string_view("linear:normaliser"), ScoreFunction::linear_normaliser}};
constexpr std::string_view kSoftcap = "softcap:";

/// A text that is read as the same number, of no more digits than that takes; the page's library
/// has no to_chars of it.
std::string number_text(double value) {
  constexpr int kFewDigits = 6, kMostDigits = 17;  // "50" rather than "5e+01"; any double
  std::array<char, 32> text{};
  for (int digits = kFewDigits; digits <= kMostDigits; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    if (std::strtod(text.data(), nullptr) == value) break;
  }
  return text.data();
}

}  // namespace

std::string score_name(ScoreFunction score) {
  if (score.cap != 0) return std::string(kSoftcap) + number_text(score.cap);
  return std::string(kScores[static_cast<size_t>(score.form)].first);
}

std::optional<ScoreFunction> parse_score(std::string_view name) {
  for (const auto& [known, score] : kScores) {
    if (known == name) return score;
  }
  if (!name.starts_with(kSoftcap)) return std::nullopt;
  name.remove_prefix(kSoftcap.size());
  double cap = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), cap);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (!std::isfinite(cap) || cap <= 0) return std::nullopt;
  return ScoreFunction::softcap(cap);
}

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const auto& [name, score] : kScores) {
    names.emplace_back(name);
    if (score == ScoreFunction::softmax) names.push_back(std::string(kSoftcap) + "C");
  }
  return names;
}

}  // namespace attnscope
