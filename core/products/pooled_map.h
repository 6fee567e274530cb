#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// Which of a block's two numbers is shown.
enum class Pool : uint8_t { max, mean };
/// "max", "mean".
std::string_view pool_name(Pool pool);
std::optional<Pool> parse_pool(std::string_view name);
std::vector<std::string> pool_names();

/// An attention map, or a crop of it, in blocks of weights.
struct PooledMap {
  int64_t block_rows = 1, block_cols = 1;  ///< tokens under a cell; fewer at the far edges
  int64_t first_row = 0, first_col = 0;    ///< the tokens at the first cell's corner
  int64_t rows = 0, cols = 0;              ///< cells
  std::vector<float> max, mean;            ///< [rows, cols] over the weights that exist

  const std::vector<float>& values(Pool pool) const { return pool == Pool::max ? max : mean; }
};

}  // namespace attnscope
