#include "python/native/result_array.h"

#include <fmt/core.h>

#include "cli/common/system_memory.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"

namespace attnscope {

void require_room(std::span<const int64_t> shape, int64_t element_bytes, std::string_view what) {
  const auto count = checked_count(shape);
  const auto product = count ? checked_mul(*count, element_bytes) : std::nullopt;
  const int64_t bytes = product.value_or(-1);
  const int64_t free = available_memory();
  if (bytes >= 0 && bytes <= free) return;
  throw Error(
      ErrorCode::resource,
      fmt::format("{}: the result takes {}, and {} are free: ask for fewer rows", what,
                  bytes >= 0 ? format_bytes(bytes) : "more than 8 EiB", format_bytes(free)));
}

}  // namespace attnscope
