#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace attnscope {

/// "1201600B (1.15 MiB)": exact, and rounded up, so that either is enough.
std::string size_text(int64_t bytes);

/// What is thrown where nothing that could be done fits a budget: an Error(resource) that names the
/// smallest one that would do.
class BudgetError : public Error {
 public:
  /// `purpose`: what does not fit, as " for two heads"; may be empty.
  BudgetError(int64_t budget, int64_t smallest, std::string_view purpose = "");
  int64_t smallest() const { return smallest_; }

 private:
  int64_t smallest_;
};

}  // namespace attnscope
