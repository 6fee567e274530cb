#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "io/files/byte_source.h"
#include "io/tensors/tensor_file.h"

/// libFuzzer's entry: one input. Each fuzz_NAME.cpp defines it; what it returns does not matter, a
/// crash, a sanitizer's report, a hang or an uncaught exception is the finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace attnscope::test {

inline std::string_view fuzz_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The input as a file in memory; it must outlive what is returned.
std::shared_ptr<const ByteSource> fuzz_bytes(const uint8_t* data, size_t size);

/// Reads the first and the last element, and a box of a few in the middle. Aborts where the same
/// element has two values.
void touch(const TensorSource& tensor);
/// Touches every tensor of a file; Errors of single ones are expected of damaged files.
void touch(const TensorFile& file);

/// A file of this process, in memory where the system allows, that is overwritten by every input.
class FuzzFile {
 public:
  /// `name` in fuzz_folder().
  explicit FuzzFile(std::string_view name);
  ~FuzzFile();
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// A folder of this process alone; removed at its end.
const std::filesystem::path& fuzz_folder();

}  // namespace attnscope::test
