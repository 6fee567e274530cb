#include "viewer/view/maps/token_groups.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/problem/key_segments.h"

namespace attnscope {
namespace {

std::string name_of(const TokenGrid& grid, int64_t group, int64_t token) {
  if (group == 0) return "text";
  if (const auto place = grid.coord(token)) return fmt::format("t{}", place->t);
  return grid.has_map() ? grid.segments()[grid.segment_number(token)].name : "video";
}

}  // namespace

std::vector<TokenGroup> token_groups(const TokenGrid& grid) {
  std::vector<TokenGroup> by_number(static_cast<size_t>(count_groups(grid)));
  for (int64_t token = 0; token < grid.tokens(); ++token) {
    const int64_t number = group_at(grid, token);
    TokenGroup& group = by_number[static_cast<size_t>(number)];
    if (group.tokens.empty()) group = {number, {token, token}, name_of(grid, number, token)};
    group.tokens.end = token + 1;
  }
  std::erase_if(by_number, [](const TokenGroup& group) { return group.tokens.empty(); });
  std::sort(by_number.begin(), by_number.end(), [](const TokenGroup& a, const TokenGroup& b) {
    return a.tokens.begin < b.tokens.begin;
  });
  return by_number;
}

}  // namespace attnscope
