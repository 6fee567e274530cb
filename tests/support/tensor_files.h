#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor_source.h"

namespace attnscope::test {

/// Writes a byte of a file anew and gives back what it was.
inline char poke(const std::string& path, int64_t offset, char value) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const auto old = static_cast<char>(file.get());
  file.seekp(offset);
  file.put(value);
  return old;
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

/// A safetensors file of this header text and these data bytes.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(static_cast<uint64_t>(header.size()) >> shift & 0xff);
  }
  return bytes + header + data;
}

/// A .npy file of version `major` with this dictionary and these data bytes.
inline std::string npy_bytes(const std::string& dict, const std::string& data, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  const size_t size = dict.size();
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(size >> (8 * i) & 0xff);
  return bytes + dict + data;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The box as values of T, which must be the tensor's own type.
template <typename T>
std::vector<T> read_values(const TensorSource& tensor, const std::vector<int64_t>& begin,
                           const std::vector<int64_t>& count) {
  int64_t total = 1;
  for (int64_t extent : count) total *= extent;
  std::vector<T> values(static_cast<size_t>(total));
  tensor.read(begin, count, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

template <typename T>
std::vector<T> read_all(const TensorSource& tensor) {
  const auto shape = tensor.shape();
  return read_values<T>(tensor, std::vector<int64_t>(shape.size(), 0),
                        {shape.begin(), shape.end()});
}

/// The message of the Error that `action` throws, marked where its code is another; empty: none.
template <typename Action>
std::string thrown_text(ErrorCode code, const Action& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.code() == code ? e.what() : std::string("WRONG CODE: ") + e.what();
  }
  return "";
}

}  // namespace attnscope::test
