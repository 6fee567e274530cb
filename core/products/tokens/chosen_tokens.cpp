#include "core/products/tokens/chosen_tokens.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace attnscope {
namespace {

void sort_unique(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::vector<double> ChosenTokens::shares() const {
  std::vector<double> shares;
  for (const int64_t count : counts) {
    shares.push_back(static_cast<double>(count) / static_cast<double>(items));
  }
  return shares;
}

ChosenTokens choose_tokens(std::vector<int64_t> places, std::span<const IndexRange> words,
                           const TokenGrid& grid) {
  sort_unique(places);
  std::map<int64_t, int64_t> counts;
  for (const int64_t place : places) ++counts[place];
  ChosenTokens chosen;
  std::set<std::pair<int64_t, int64_t>> distinct;
  for (const IndexRange& pieces : words) distinct.emplace(pieces.begin, pieces.end);
  chosen.items = static_cast<int64_t>(places.size() + distinct.size());
  for (const auto& [begin, end] : distinct) {
    for (int64_t i = begin; i < end; ++i) {
      ++counts[grid.text_range().begin + i];
      chosen.text.push_back(i);
    }
  }
  sort_unique(chosen.text);
  for (const auto& [token, count] : counts) {
    chosen.tokens.push_back(token);
    chosen.counts.push_back(count);
  }
  return chosen;
}

std::optional<std::array<int64_t, 3>> single_coord(const ChosenTokens& chosen,
                                                   const TokenGrid& grid) {
  if (chosen.tokens.size() != 1) return std::nullopt;
  const auto coord = grid.coord(chosen.tokens.front());
  if (!coord) return std::nullopt;
  return std::array<int64_t, 3>{coord->t, coord->y, coord->x};
}

}  // namespace attnscope
