#include "core/mask/mask_valid.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/mask/bit_rows.h"
#include "core/mask/masked_bias.h"
#include "core/mask/token_tensor.h"

namespace attnscope {
namespace {

class ValidTerm : public MaskTerm {
 public:
  ValidTerm(std::shared_ptr<const TensorSource> source, bool pairs)
      : tensor_(std::move(source), DType::boolean), pairs_(pairs) {}

  TileClass classify(int64_t batch, int64_t, IndexRange queries, IndexRange keys) const override {
    const int64_t item = tensor_.item_of(batch);
    const IndexRange row{item, item + 1};
    const TileClass of_keys = valid().classify(row, keys);
    if (!pairs_ || of_keys == TileClass::empty) return of_keys;
    const TileClass of_queries = valid().classify(row, queries);
    return of_queries == TileClass::full ? of_keys : of_queries;
  }

  void add_bias(int64_t batch, int64_t, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const int64_t item = tensor_.item_of(batch);
    const BitRows& bits = valid();
    // All rows have the same keys: the bits are taken apart once. Called for many small rectangles,
    // where an allocation each would show.
    thread_local std::vector<float> of_keys;
    of_keys.clear();
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      of_keys.push_back(bits.at(item, key) ? 0 : kMasked);
    }
    for (const int64_t query : queries) {
      if (pairs_ && !bits.at(item, query)) {
        std::fill_n(out, keys.size(), kMasked);
      } else {
        std::transform(of_keys.begin(), of_keys.end(), out, out, std::plus<>());
      }
      out += row_stride;
    }
  }

  std::string describe() const override { return pairs_ ? "valid_pairs" : "valid"; }

  void check_shape(int64_t batch, int64_t, int64_t queries, int64_t keys) const override {
    tensor_.check_shape(batch, keys);
    if (pairs_) tensor_.check_shape(batch, queries);
  }

 private:
  /// [item, token]
  const BitRows& valid() const {
    std::call_once(once_, [this] {
      BitRows bits(tensor_.items(), tensor_.tokens());
      for (int64_t item = 0; item < tensor_.items(); ++item) {
        bits.fill_row(item, tensor_.read<uint8_t>(item));
      }
      bits_ = std::move(bits);
    });
    return *bits_;
  }

  const TokenTensor tensor_;
  const bool pairs_;
  mutable std::once_flag once_;
  mutable std::optional<BitRows> bits_;
};

}  // namespace

Mask valid_keys_mask(std::shared_ptr<const TensorSource> valid) {
  return Mask::term(std::make_shared<ValidTerm>(std::move(valid), false));
}

Mask valid_pairs_mask(std::shared_ptr<const TensorSource> valid) {
  return Mask::term(std::make_shared<ValidTerm>(std::move(valid), true));
}

}  // namespace attnscope
