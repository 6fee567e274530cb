#include "core/mask/token_tensor.h"

#include <array>

#include "core/base/error.h"

namespace attnscope {

std::string tensor_text(DType dtype, std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return std::string(dtype_name(dtype)) + " [" + text + "]";
}

TokenTensor::TokenTensor(std::shared_ptr<const TensorSource> source, DType dtype)
    : source_(std::move(source)) {
  const auto shape = source_->shape();
  const bool axes = shape.size() == 1 || shape.size() == 2;
  if (source_->dtype() != dtype || !axes || shape.front() < 1 || shape.back() < 1) {
    throw usage_error(source_->name() + ": expected " + std::string(dtype_name(dtype)) +
                      " [tokens] or [B, tokens] (got " + tensor_text(source_->dtype(), shape) +
                      ")");
  }
  items_ = shape.size() == 2 ? shape[0] : 1;
  tokens_ = shape.back();
}

void TokenTensor::check_shape(int64_t batch, int64_t tokens) const {
  if (tokens_ == tokens && (items_ == batch || source_->shape().size() == 1)) return;
  throw usage_error(source_->name() + ": expected " +
                    tensor_text(source_->dtype(), std::array{batch, tokens}) + " or [" +
                    std::to_string(tokens) + "] (got " +
                    tensor_text(source_->dtype(), source_->shape()) + ")");
}

void TokenTensor::read_bytes(int64_t item, std::byte* out) const {
  const std::array<int64_t, 2> begin{item, 0}, count{1, tokens_};
  const size_t rank = source_->shape().size();
  source_->read({begin.end() - rank, rank}, {count.end() - rank, rank}, out);
}

}  // namespace attnscope
