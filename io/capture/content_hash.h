#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// XXH3-128 over what is added, in order. Not thread-safe.
class ContentHash {
 public:
  /// Adding a tensor throws Error(interrupted) soon after a stop is requested.
  explicit ContentHash(std::stop_token stop);
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  ~ContentHash();

  /// The length and the bytes.
  void add(const std::string& text);
  /// The bytes alone.
  void add(std::span<const std::byte> bytes);
  /// The elements in row-major order, in their own type, read in pieces of about 1 MiB.
  void add(const TensorSource& tensor);
  /// 32 hexadecimal digits.
  std::string hex() const;

 private:
  void add_box(const TensorSource& tensor, size_t axis, std::vector<int64_t>& begin,
               std::vector<int64_t>& count);

  struct State;
  std::stop_token stop_;
  std::unique_ptr<State> state_;
  std::vector<std::byte> buffer_;
};

}  // namespace attnscope
