#include "core/mask/recorded_blocks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/block_grid_term.h"
#include "core/mask/token_tensor.h"

namespace attnscope {
namespace {

/// Blocks in a tensor [B or 1, H or 1, query blocks, key blocks]. Those of a batch item and head
/// are read at their first use.
class RecordedBlocks : public BlockGridTerm {
 public:
  RecordedBlocks(std::shared_ptr<const TensorSource> source, int64_t block_queries,
                 int64_t block_keys)
      : BlockGridTerm(block_queries, block_keys),
        source_(std::move(source)),
        shape_(source_->shape().begin(), source_->shape().end()) {}

  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    const std::vector<int64_t> whole{batch, heads, ceil_div(queries, block_queries_),
                                     ceil_div(keys, block_keys_)};
    for (size_t axis = 0; axis < whole.size(); ++axis) {
      if (shape_[axis] == whole[axis] || (axis < 2 && shape_[axis] == 1)) continue;
      throw usage_error(source_->name() + ": expected " + tensor_text(DType::boolean, whole) +
                        ", or 1 in place of the first two, for blocks of " +
                        std::to_string(block_queries_) + "x" + std::to_string(block_keys_) +
                        " (got " + tensor_text(source_->dtype(), shape_) + ")");
    }
  }

 private:
  struct Plane {
    std::once_flag read;
    std::optional<BitRows> bits;
  };

  const BitRows& bits_of(int64_t batch, int64_t head) const override {
    const int64_t b = shape_[0] == 1 ? 0 : batch;
    const int64_t h = shape_[1] == 1 ? 0 : head;
    // Not before the shape was checked, which a file may give as it likes.
    std::call_once(made_, [this] {
      planes_ = std::make_unique<Plane[]>(static_cast<size_t>(shape_[0] * shape_[1]));
    });
    Plane& plane = planes_[static_cast<size_t>(b * shape_[1] + h)];
    std::call_once(plane.read, [&] { plane.bits = read_plane(b, h); });
    return *plane.bits;
  }

  BitRows read_plane(int64_t b, int64_t h) const {
    BitRows bits(shape_[2], shape_[3]);
    std::vector<uint8_t> row(static_cast<size_t>(shape_[3]));
    const std::array<int64_t, 4> count{1, 1, 1, shape_[3]};
    for (int64_t r = 0; r < shape_[2]; ++r) {
      const std::array<int64_t, 4> begin{b, h, r, 0};
      source_->read(begin, count, reinterpret_cast<std::byte*>(row.data()));
      bits.fill_row(r, row);
    }
    return bits;
  }

  const std::shared_ptr<const TensorSource> source_;
  const std::vector<int64_t> shape_;
  mutable std::once_flag made_;
  mutable std::unique_ptr<Plane[]> planes_;  ///< [batch item or 1, head or 1]
};

}  // namespace

Mask recorded_blocks_mask(std::shared_ptr<const TensorSource> blocks, int64_t block_queries,
                          int64_t block_keys) {
  assert(block_queries > 0 && block_keys > 0);
  const auto shape = blocks->shape();
  const bool empty = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 1; });
  if (blocks->dtype() != DType::boolean || shape.size() != 4 || empty) {
    throw usage_error(blocks->name() +
                      ": expected bool [B or 1, H or 1, query blocks, key blocks] (got " +
                      tensor_text(blocks->dtype(), shape) + ")");
  }
  return Mask::term(std::make_shared<RecordedBlocks>(std::move(blocks), block_queries, block_keys));
}

}  // namespace attnscope
