#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"

namespace attnscope::test {

/// The Error that `action` throws; nothing when it returns. Other exceptions pass through.
template <typename Action>
std::optional<Error> error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Empty where `action` throws an Error of this code, one line, that holds all `parts`; else a
/// description of what happened.
template <typename Action>
std::string refused(Action action, ErrorCode code, const std::vector<std::string>& parts) {
  const auto error = error_of(action);
  if (!error) return "nothing was thrown";
  const std::string what = error->what();
  if (error->code() != code) return "another code: " + what;
  if (contains(what, "\n")) return "more than one line: " + what;
  for (const std::string& part : parts) {
    if (!contains(what, part)) return "no '" + part + "' in: " + what;
  }
  return "";
}

template <typename T>
std::shared_ptr<const MemoryTensor> make_tensor(std::string name, DType dtype,
                                                std::vector<int64_t> shape,
                                                const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return std::make_shared<MemoryTensor>(std::move(name), dtype, std::move(shape), std::move(bytes));
}

/// Uniform in first … last; the same on every machine, which the standard's distributions are not.
inline int64_t pick(std::mt19937_64& random, int64_t first, int64_t last) {
  return first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first + 1));
}

}  // namespace attnscope::test
