#pragma once

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace attnscope {

/// Throws Error(resource), naming `what`, where the system does not have `bytes` of memory left for
/// a result, which is its caller's and no part of --memory; or where no memory is so large.
void require_room(std::span<const int64_t> shape, int64_t element_bytes, std::string_view what);

/// An array that is being computed, row-major; to_numpy() hands its memory on.
template <typename T>
class ResultArray {
 public:
  /// Values are not set. Throws as require_room().
  ResultArray(std::vector<int64_t> shape, std::string_view what) : shape_(std::move(shape)) {
    require_room(shape_, sizeof(T), what);
    size_t count = 1;
    for (const int64_t extent : shape_) count *= static_cast<size_t>(extent);
    values_ = std::make_unique_for_overwrite<T[]>(count);
  }
  ResultArray(std::vector<int64_t> shape, const std::vector<T>& values, std::string_view what)
      : ResultArray(std::move(shape), what) {
    std::copy(values.begin(), values.end(), values_.get());
  }

  T* data() { return values_.get(); }
  /// All of them; before to_numpy().
  std::span<const T> values() const {
    size_t count = 1;
    for (const int64_t extent : shape_) count *= static_cast<size_t>(extent);
    return {values_.get(), count};
  }

  /// To be called once, with the interpreter's lock.
  nanobind::object to_numpy() {
    T* const values = values_.release();
    const nanobind::capsule owner(values,
                                  [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
    std::vector<size_t> extents(shape_.begin(), shape_.end());
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, T>(values, extents.size(), extents.data(), owner));
  }

 private:
  std::vector<int64_t> shape_;
  std::unique_ptr<T[]> values_;
};

}  // namespace attnscope
