#include "core/problem/score.h"

#include <array>

#include "core/problem/problem_names.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 5> kScores{"softmax", "sigmoid", "linear:elu1",
                                                  "linear:relu", "linear:normaliser"};

}  // namespace

std::string_view score_name(ScoreFunction score) { return kScores[static_cast<size_t>(score)]; }

std::optional<ScoreFunction> parse_score(std::string_view name) {
  for (size_t i = 0; i < kScores.size(); ++i) {
    if (kScores[i] == name) return static_cast<ScoreFunction>(i);
  }
  return std::nullopt;
}

std::vector<std::string> score_names() { return {kScores.begin(), kScores.end()}; }

}  // namespace attnscope
