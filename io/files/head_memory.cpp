#include "io/files/head_memory.h"

#include "core/base/error.h"
#include "core/base/memory_budget.h"

namespace attnscope {

void HeadMemory::refuse(std::string_view where, const char* what) const {
  const std::string place = where.empty() ? "" : std::string(where) + ": ";
  throw Error(ErrorCode::resource, file_ + ": " + place + what +
                                       " takes more memory than it may (limit " +
                                       format_bytes(limit_) + "; a larger --memory allows more)");
}

}  // namespace attnscope
