#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/memory_budget.h"

namespace attnscope {

/// "1201600B (1.15 MiB)": exact, and rounded up, so that either is enough.
std::string size_text(int64_t bytes);

/// Thrown where no possible plan fits a budget: an Error(resource) that names the smallest budget
/// that would do.
class BudgetError : public Error {
 public:
  /// `smallest`: bytes that would do in the place of `room.bytes`, beside what is taken. `purpose`:
  /// what does not fit, as " for two heads"; may be empty.
  BudgetError(const MemoryRoom& room, int64_t smallest, std::string_view purpose = "");
  /// Of the plan alone.
  int64_t smallest() const { return smallest_; }

 private:
  int64_t smallest_;
};

}  // namespace attnscope
