#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace attnscope {

// Values as bytes and back. A type says once what it is made of, for both ways:
//
//   template <class Wire>
//   void carry(Wire& wire, IsA<HeadId> auto& id) { wire(id.call, id.batch, id.head, id.order); }
//
// Whole numbers are LEB128, those with a sign in zigzag; floating-point numbers are little-endian;
// lists of them stand as planes of equally significant bytes, which deflate better.

/// T, or const T.
template <class V, class T>
concept IsA = std::same_as<std::remove_const_t<V>, T>;

/// Throws Error(file): the other side does not keep to the protocol.
[[noreturn]] void fail_wire(std::string_view what);

class WireWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  /// An enumeration, whose last value it is.
  template <class E>
  void choice(const E& value, E last) {
    (void)last;
    whole(static_cast<uint64_t>(value));
  }
  std::string take() { return std::move(bytes_); }

 private:
  void whole(uint64_t value);
  void raw(const void* from, size_t size) { bytes_.append(static_cast<const char*>(from), size); }

  template <class T>
  void put(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      whole(value ? 1 : 0);
    } else if constexpr (std::unsigned_integral<T>) {
      whole(value);
    } else if constexpr (std::signed_integral<T>) {
      const auto wide = static_cast<int64_t>(value);
      whole((static_cast<uint64_t>(wide) << 1) ^ static_cast<uint64_t>(wide >> 63));
    } else if constexpr (std::floating_point<T>) {
      static_assert(std::endian::native == std::endian::little);
      raw(&value, sizeof value);
    } else {
      carry(*this, value);
    }
  }
  void put(const std::string& text) {
    whole(text.size());
    bytes_ += text;
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T, size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& value : values) put(value);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& pair) {
    put(pair.first);
    put(pair.second);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    whole(values.size());
    if constexpr (std::same_as<T, uint8_t>) {
      raw(values.data(), values.size());
    } else if constexpr (std::floating_point<T>) {
      planes(std::as_bytes(std::span(values)), sizeof(T));
    } else {
      for (const T& value : values) put(value);
    }
  }
  void planes(std::span<const std::byte> bytes, size_t width);

  std::string bytes_;
};

/// Every member throws Error(file) where the bytes are not what they should be. Lists take no more
/// memory than some 40 times the bytes that are there.
class WireReader {
 public:
  /// Borrows the bytes.
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  template <class E>
  void choice(E& value, E last) {
    const uint64_t number = whole();
    if (number > static_cast<uint64_t>(last)) fail_wire("a name that there is none of");
    value = static_cast<E>(number);
  }
  /// Nothing may be left.
  void finish() const;

 private:
  uint64_t whole();
  std::string_view raw(uint64_t size);

  template <class T>
  void get(T& value) {
    if constexpr (std::same_as<T, bool>) {
      const uint64_t number = whole();
      if (number > 1) fail_wire("a truth that is neither 0 nor 1");
      value = number == 1;
    } else if constexpr (std::unsigned_integral<T>) {
      const uint64_t number = whole();
      if (!std::in_range<T>(number)) fail_wire("a number that is too large");
      value = static_cast<T>(number);
    } else if constexpr (std::signed_integral<T>) {
      const uint64_t zigzag = whole();
      const auto number = static_cast<int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
      if (!std::in_range<T>(number)) fail_wire("a number that is too large");
      value = static_cast<T>(number);
    } else if constexpr (std::floating_point<T>) {
      std::memcpy(&value, raw(sizeof value).data(), sizeof value);
    } else {
      carry(*this, value);
    }
  }
  void get(std::string& text) { text = raw(whole()); }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there) get(value.emplace());
  }
  template <class T, size_t N>
  void get(std::array<T, N>& values) {
    for (T& value : values) get(value);
  }
  template <class A, class B>
  void get(std::pair<A, B>& pair) {
    get(pair.first);
    get(pair.second);
  }
  template <class T>
  void get(std::vector<T>& values) {
    const uint64_t count = whole();
    // Everything takes a byte at least.
    if (count > rest_.size()) fail_wire("a list that is longer than its message");
    if constexpr (std::same_as<T, uint8_t>) {
      const std::string_view bytes = raw(count);
      values.assign(bytes.begin(), bytes.end());
    } else if constexpr (std::floating_point<T>) {
      values.resize(count);
      planes(std::as_writable_bytes(std::span(values)), sizeof(T));
    } else {
      values.clear();
      for (uint64_t i = 0; i < count; ++i) get(values.emplace_back());
    }
  }
  void planes(std::span<std::byte> bytes, size_t width);

  std::string_view rest_;
};

/// The bytes of a value that says what it is made of.
template <class T>
std::string to_wire(const T& value) {
  WireWriter writer;
  writer(value);
  return writer.take();
}

/// Throws Error(file) where the bytes are not exactly one.
template <class T>
T from_wire(std::string_view bytes) {
  T value{};
  WireReader reader(bytes);
  reader(value);
  reader.finish();
  return value;
}

}  // namespace attnscope
