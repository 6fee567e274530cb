#include "io/capture/call/fused_tensors.h"

#include "core/base/error.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

/// One index of an axis of a tensor, without that axis.
class TensorPart : public TensorSource {
 public:
  TensorPart(std::shared_ptr<const TensorSource> whole, size_t axis, int64_t index)
      : whole_(std::move(whole)), axis_(axis), index_(index) {
    const auto shape = whole_->shape();
    shape_.assign(shape.begin(), shape.end());
    shape_.erase(shape_.begin() + static_cast<std::ptrdiff_t>(axis));
    name_ = whole_->name() + "[";
    for (size_t i = 0; i < axis; ++i) name_ += ":, ";
    name_ += std::to_string(index) + "]";
  }

  DType dtype() const override { return whole_->dtype(); }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }
  bool prefers_order() const override { return whole_->prefers_order(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    std::vector<int64_t> from(begin.begin(), begin.end()), extent(count.begin(), count.end());
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(axis_), index_);
    extent.insert(extent.begin() + static_cast<std::ptrdiff_t>(axis_), 1);
    whole_->read(from, extent, destination);
  }

 private:
  const std::shared_ptr<const TensorSource> whole_;
  const size_t axis_;
  const int64_t index_;
  std::vector<int64_t> shape_;
  std::string name_;
};

}  // namespace

SplitTensor split_fused(const std::shared_ptr<const TensorSource>& tensor, int64_t count) {
  const auto shape = tensor->shape();
  const size_t rank = shape.size();
  // [B, N, 3, H, d] and [tokens, 3, H, d]: behind the tokens.
  const size_t usual = rank >= 3 ? rank - 3 : rank;
  size_t axis = usual;
  if (rank > 3 && rank < 6 && shape[usual] != count) {
    for (axis = 0; axis < usual && shape[axis] != count;) ++axis;
  }
  if (rank < 4 || rank > 5 || shape[axis] != count) {
    const std::string parts = count == 3 ? "q, k and v" : "k and v";
    throw file_error(tensor->name(), "",
                     "is fused, but not as [batch, tokens, " + std::to_string(count) +
                         ", heads, channels] or [tokens, " + std::to_string(count) +
                         ", heads, channels] (got " + shape_text(shape) + "): split it into " +
                         parts);
  }
  SplitTensor split;
  for (int64_t i = 0; i < count; ++i) {
    split.parts.push_back(std::make_shared<TensorPart>(tensor, axis, i));
  }
  if (axis == usual) split.layout = rank == 5 ? "bshd" : "shd";
  split.note = tensor->name() + ": taken as " + (count == 3 ? "q, k and v" : "k and v") +
               " along axis " + std::to_string(axis) + " of " + shape_text(shape);
  return split;
}

}  // namespace attnscope
