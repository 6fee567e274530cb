#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "io/tensors/safetensors_writer.h"

namespace attnscope {

/// A rectangle of a tensor [items, heads, tokens, …] that is put together of such: some heads of
/// some tokens, in all items.
struct JoinTile {
  IndexRange heads, tokens;  ///< of the whole tensor
  std::string file;          ///< that messages name
  /// Reads rows of an item and head, packed; head and rows count from the tile's first.
  std::function<void(int64_t item, int64_t head, IndexRange rows, std::byte* out)> read;
};

/// Tiles that cover heads × tokens exactly, some of them several times: those have the same bytes,
/// which is found out as they are read.
class JoinTiles {
 public:
  /// Heads count from the first one that a tile has. `what`: the tokens in messages ("queries").
  /// Throws Error(file) where something is missing, or tiles meet that are not the same.
  JoinTiles(std::vector<JoinTile> tiles, std::string what);

  int64_t heads() const { return bands_.back().heads.end - bands_.front().heads.begin; }
  int64_t tokens() const { return bands_.front().copies.back().front().tokens.end; }
  /// The whole tensor of `items` batch items in rows of `row_bytes`.
  TensorToWrite tensor(std::string name, DType dtype, std::vector<int64_t> shape, int64_t items,
                       int64_t row_bytes) const;

 private:
  /// Tiles of the same heads, ascending by tokens; those of the same tokens beside each other.
  struct Band {
    IndexRange heads;
    std::vector<std::vector<JoinTile>> copies;
  };

  void check_bands() const;

  std::string what_;
  std::vector<Band> bands_;
};

}  // namespace attnscope
