#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// Dimensions that a tensor of a file has at most.
inline constexpr size_t kMaxRank = 64;

/// An opened file of tensors, its header validated completely. Immutable; thread-safe. Tensors
/// share the open file, so they may outlive this object. Data is read with pread, never mapped.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  const std::filesystem::path& path() const { return path_; }
  /// Tensor names, in the file's order. A .npy file has one tensor, named "".
  virtual std::vector<std::string> keys() const = 0;
  /// Throws Error(file) that lists the names that exist, nearest first, or that says why this one
  /// cannot be read (an unknown type), which is no trouble to the others.
  virtual std::shared_ptr<const TensorSource> tensor(const std::string& key) const = 0;
  /// The file's values beside its tensors, in the form of safetensors' __metadata__: strings, other
  /// values as JSON. Tensors of a few numbers are among them where their names are those of values
  /// (recorded_values.h), and are no keys then.
  virtual const std::map<std::string, std::string>& metadata() const = 0;
  /// Every file that it consists of.
  virtual std::vector<std::filesystem::path> files() const { return {path_}; }

 protected:
  explicit TensorFile(std::filesystem::path path) : path_(std::move(path)) {}

 private:
  std::filesystem::path path_;
};

/// The error for a tensor that `file` does not have.
Error missing_tensor(const TensorFile& file, const std::string& key);
/// The error for a tensor whose elements are of a type that this program does not read.
Error unknown_type(const TensorFile& file, const std::string& key, const std::string& type);

}  // namespace attnscope
