#include "core/base/budget_error.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace attnscope {

std::string size_text(int64_t bytes) {
  constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::string text = std::to_string(bytes) + "B";
  if (unit == 0) return text;
  std::array<char, 48> rounded{};
  std::snprintf(rounded.data(), rounded.size(), " (%.2f %s)", std::ceil(value * 100) / 100,
                kNames[unit]);
  return text + rounded.data();
}

BudgetError::BudgetError(const MemoryRoom& room, int64_t smallest, std::string_view purpose)
    : Error(ErrorCode::resource, "a memory budget of " + size_text(room.bytes + room.taken) +
                                     " is too small" + std::string(purpose) +
                                     ": the smallest that works is " +
                                     size_text(smallest + room.taken)),
      smallest_(smallest) {}

}  // namespace attnscope
