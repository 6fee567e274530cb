#pragma once

#include <cstdint>

namespace attnscope {

/// While it lives, this thread's floating-point unit takes denormal operands and results for 0;
/// then the caller's state is restored. Entries that small never reach an output, and computing
/// with them costs over a hundred cycles each. Does nothing on processors it does not know.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  [[maybe_unused]] uint64_t saved_ = 0;
};

}  // namespace attnscope
