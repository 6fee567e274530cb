#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attnscope {

/// One weight of a row and the key it belongs to.
struct KeyWeight {
  float weight = 0;
  int32_t key = -1;
};

/// The `out.size()` largest weights of a row, descending, equal ones by the lower key; where the
/// row is shorter the rest is {0, −1}. Key j of the row is called first_key + j. Returns the sum of
/// the weights that were chosen, added in double in the order of `out`.
double top_keys(std::span<const float> row, int64_t first_key, std::span<KeyWeight> out);

/// Appends the weights ≥ threshold of a row and their keys, ascending by key. Returns their sum,
/// added in double in that order.
double keys_above(std::span<const float> row, int64_t first_key, double threshold,
                  std::vector<float>& weights, std::vector<int32_t>& keys);

}  // namespace attnscope
