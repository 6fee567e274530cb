#pragma once

#include <unistd.h>

#include <utility>

namespace attnscope {

/// An open file descriptor, closed on destruction. Movable.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes it; a negative one is none.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace attnscope
