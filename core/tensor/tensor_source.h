#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/dtype.h"
#include "core/tensor/device_reader.h"

namespace attnscope {

/// The seam to whatever holds a tensor: a file, memory, a generator. Immutable once made; every
/// member may be called from several threads at once.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual DType dtype() const = 0;
  virtual std::span<const int64_t> shape() const = 0;
  /// How messages name it: "FILE: tensor NAME".
  virtual const std::string& name() const = 0;

  /// Copies the box begin[a] ≤ index < begin[a] + count[a] (one entry an axis, within the shape)
  /// to `destination`, packed, row-major, in native byte order. Never reads or allocates much more
  /// than the box. Throws Error(file) when the data cannot be read.
  virtual void read(std::span<const int64_t> begin, std::span<const int64_t> count,
                    std::byte* destination) const = 0;

  /// True where boxes read in ascending order, by one thread, take far less work than otherwise.
  virtual bool prefers_order() const { return false; }

  /// Where the elements lie in the memory of a CUDA device, for those who can take them from there;
  /// none where they do not, or are not stored as read() gives them.
  virtual std::optional<DevicePlace> device_place() const { return std::nullopt; }
};

}  // namespace attnscope
