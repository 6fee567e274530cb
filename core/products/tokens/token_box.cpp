#include "core/products/tokens/token_box.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/base/error.h"
#include "core/base/selection.h"

namespace attnscope {

IndexRange parse_box_axis(const std::string& part, const std::string& what, const char* of,
                          int64_t extent) {
  if (part.find(':') != std::string::npos) return parse_crop(part, what, extent);
  int64_t value = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, value);
  if (error != std::errc() || stop != end || part.empty()) {
    throw usage_error(what + ": \"" + part + "\" is no number or range A:B");
  }
  if (value < 0 || value >= extent) {
    throw usage_error(what + ": outside the " + of + " (got " + std::to_string(value) +
                      ", valid 0 to " + std::to_string(extent - 1) + ")");
  }
  return {value, value + 1};
}

TokenBox parse_token_box(const std::string& text, const std::string& what,
                         const std::array<int64_t, 3>& grid) {
  const std::string named = what + " " + text;
  constexpr std::array<const char*, 3> kAxes{"T", "Y", "X"};
  std::array<std::string, 3> parts;
  size_t begin = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t comma = text.find(',', begin);
    if ((comma == std::string::npos) != (i == 2)) {
      throw usage_error(named + ": expected T,Y,X (each a number or A:B)");
    }
    parts[i] = text.substr(begin, comma == std::string::npos ? comma : comma - begin);
    begin = comma + 1;
  }
  TokenBox box;
  for (size_t i = 0; i < 3; ++i) {
    box[i] = parse_box_axis(parts[i], named + " (" + kAxes[i] + ")", "grid", grid[i]);
  }
  return box;
}

void each_position(const TokenBox& box, const std::function<void(LatentCoord)>& take) {
  for (int64_t t = box[0].begin; t < box[0].end; ++t) {
    for (int64_t y = box[1].begin; y < box[1].end; ++y) {
      for (int64_t x = box[2].begin; x < box[2].end; ++x) take({t, y, x});
    }
  }
}

std::optional<TokenBox> box_of(std::span<const int64_t> tokens, const TokenGrid& grid) {
  if (tokens.empty() || !grid.has_grid()) return std::nullopt;
  const auto first = grid.coord(tokens.front()), last = grid.coord(tokens.back());
  if (!first || !last) return std::nullopt;
  const TokenBox box{IndexRange{first->t, last->t + 1}, IndexRange{first->y, last->y + 1},
                     IndexRange{first->x, last->x + 1}};
  if (box[0].empty() || box[1].empty() || box[2].empty()) return std::nullopt;
  std::vector<int64_t> of_box;
  each_position(box, [&](LatentCoord at) { of_box.push_back(grid.index_of(at)); });
  if (!std::equal(of_box.begin(), of_box.end(), tokens.begin(), tokens.end())) return std::nullopt;
  return box;
}

std::string box_text(const TokenBox& box) {
  std::string text;
  for (const IndexRange& axis : box) {
    text += (text.empty() ? "" : ",") + std::to_string(axis.begin);
    if (axis.size() > 1) text += ":" + std::to_string(axis.end);
  }
  return text;
}

}  // namespace attnscope
