#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace attnscope {

/// A non-owning view of a Rank-dimensional array: pointer, extents and strides, both counted in
/// elements. Copying it copies no data; whoever owns the data must outlive the view.
template <typename T, size_t Rank>
class StridedView {
 public:
  using Index = std::array<int64_t, Rank>;

  StridedView() = default;
  StridedView(T* data, Index extents, Index strides)
      : data_(data), extents_(extents), strides_(strides) {}
  /// A packed view in row-major order.
  StridedView(T* data, Index extents) : data_(data), extents_(extents) {
    int64_t stride = 1;
    for (size_t axis = Rank; axis-- > 0;) {
      strides_[axis] = stride;
      stride *= extents[axis];
    }
  }

  T* data() const { return data_; }
  int64_t extent(size_t axis) const { return extents_[axis]; }
  int64_t stride(size_t axis) const { return strides_[axis]; }

  template <typename... I>
  T& operator()(I... index) const {
    static_assert(sizeof...(I) == Rank);
    const Index at{static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (size_t axis = 0; axis < Rank; ++axis) {
      assert(at[axis] >= 0 && at[axis] < extents_[axis]);
      offset += at[axis] * strides_[axis];
    }
    return data_[offset];
  }

 private:
  T* data_ = nullptr;
  Index extents_{};
  Index strides_{};
};

}  // namespace attnscope
