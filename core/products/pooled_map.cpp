#include "core/products/pooled_map.h"

#include <algorithm>
#include <array>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 2> kPools{"max", "mean"};

}  // namespace

std::string_view pool_name(Pool pool) { return kPools[static_cast<size_t>(pool)]; }

std::optional<Pool> parse_pool(std::string_view name) {
  const auto* const found = std::find(kPools.begin(), kPools.end(), name);
  if (found == kPools.end()) return std::nullopt;
  return static_cast<Pool>(found - kPools.begin());
}

std::vector<std::string> pool_names() { return {kPools.begin(), kPools.end()}; }

}  // namespace attnscope
