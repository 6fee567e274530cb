#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace attnscope {

/// Counts the memory that the head of one file (a JSON text, an archive's directory, a pickle)
/// takes while it is read, before it is taken: nobody vouches for the file, and its content alone
/// decides how much that would be. A value; a copy goes on from the count of the other.
class HeadMemory {
 public:
  /// `file` is how messages call it.
  HeadMemory(std::string file, int64_t limit) : file_(std::move(file)), limit_(limit) {}

  /// Throws Error(resource) "FILE: WHERE: WHAT takes more memory than it may …" where that is more
  /// than the limit leaves.
  void take(int64_t bytes, std::string_view where, const char* what) {
    if (bytes > limit_ - bytes_) refuse(where, what);
    bytes_ += bytes;
  }

 private:
  [[noreturn]] void refuse(std::string_view where, const char* what) const;

  std::string file_;
  int64_t limit_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace attnscope
