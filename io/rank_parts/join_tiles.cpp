#include "io/rank_parts/join_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kJoinedBytes = int64_t{1} << 20;

using Write = std::function<void(std::span<const std::byte>)>;

std::string range_text(IndexRange range) {
  return range.size() == 1 ? std::to_string(range.begin)
                           : fmt::format("{}-{}", range.begin, range.end - 1);
}

/// Writes one head of one item of tiles that are the same.
void write_copies(const std::string& name, const std::vector<JoinTile>& copies, int64_t item,
                  int64_t head, int64_t row_bytes, const Write& write) {
  const int64_t step = std::max<int64_t>(1, kJoinedBytes / std::max<int64_t>(1, row_bytes));
  const int64_t count = copies.front().tokens.size();
  std::vector<std::byte> first, other;
  for (int64_t row = 0; row < count; row += step) {
    const IndexRange rows{row, std::min(row + step, count)};
    first.resize(static_cast<size_t>(rows.size() * row_bytes));
    copies.front().read(item, head, rows, first.data());
    for (size_t i = 1; i < copies.size(); ++i) {
      other.resize(first.size());
      copies[i].read(item, head, rows, other.data());
      if (first == other) continue;
      throw file_error(copies[i].file, "tensor " + name,
                       "is not that of " + copies.front().file +
                           ", which has the same part: expected the same values in all ranks");
    }
    write(first);
  }
}

}  // namespace

JoinTiles::JoinTiles(std::vector<JoinTile> tiles, std::string what) : what_(std::move(what)) {
  using Key = std::pair<int64_t, int64_t>;
  std::map<Key, std::map<Key, std::vector<JoinTile>>> sorted;
  int64_t first = tiles.front().heads.begin;
  for (const JoinTile& tile : tiles) first = std::min(first, tile.heads.begin);
  for (JoinTile& tile : tiles) {
    tile.heads = {tile.heads.begin - first, tile.heads.end - first};
    sorted[{tile.heads.begin, tile.heads.end}][{tile.tokens.begin, tile.tokens.end}].push_back(
        std::move(tile));
  }
  for (auto& [heads, band] : sorted) {
    bands_.push_back({{heads.first, heads.second}, {}});
    for (auto& [tokens, copies] : band) bands_.back().copies.push_back(std::move(copies));
  }
  check_bands();
}

void JoinTiles::check_bands() const {
  int64_t head = 0;
  for (const Band& band : bands_) {
    const std::string& file = band.copies.front().front().file;
    if (band.heads.begin != head) {
      const IndexRange between{std::min(head, band.heads.begin), std::max(head, band.heads.begin)};
      throw file_error(file, "",
                       fmt::format("heads {} of the parts are {}", range_text(between),
                                   band.heads.begin > head ? "in no rank" : "in several ranks"));
    }
    head = band.heads.end;
    const JoinTile* before = nullptr;
    for (const std::vector<JoinTile>& copies : band.copies) {
      const JoinTile& tile = copies.front();
      const int64_t end = before == nullptr ? 0 : before->tokens.end;
      if (tile.tokens.begin > end) {
        throw file_error(file, "",
                         fmt::format("{} {} of heads {} are in no rank", what_,
                                     range_text({end, tile.tokens.begin}), range_text(band.heads)));
      }
      if (tile.tokens.begin < end) {
        throw file_error(tile.file, "",
                         fmt::format("has {} {}, some of which {} has as well", what_,
                                     range_text(tile.tokens), before->file));
      }
      before = &tile;
    }
    if (before->tokens.end != tokens()) {
      throw file_error(before->file, "",
                       fmt::format("the heads {} have {} {}, others {}", range_text(band.heads),
                                   before->tokens.end, what_, tokens()));
    }
  }
}

TensorToWrite JoinTiles::tensor(std::string name, DType dtype, std::vector<int64_t> shape,
                                int64_t items, int64_t row_bytes) const {
  return {name, dtype, std::move(shape),
          [name, bands = bands_, items, row_bytes](const auto& write) {
            for (int64_t item = 0; item < items; ++item) {
              for (const Band& band : bands) {
                for (int64_t head = 0; head < band.heads.size(); ++head) {
                  for (const auto& copies : band.copies) {
                    write_copies(name, copies, item, head, row_bytes, write);
                  }
                }
              }
            }
          }};
}

}  // namespace attnscope
