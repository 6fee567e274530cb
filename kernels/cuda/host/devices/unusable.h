#pragma once

#include "core/base/error.h"

namespace attnscope::cuda {

/// Something that a run can do without on a device, because others compute it: a library is
/// missing, or known answers are wrong.
class Unusable : public Error {
 public:
  explicit Unusable(const std::string& what) : Error(ErrorCode::unavailable, what) {}
};

}  // namespace attnscope::cuda
