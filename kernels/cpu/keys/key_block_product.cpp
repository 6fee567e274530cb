#include "kernels/cpu/keys/key_block_product.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

alignas(64) constexpr float kNoBias[kBlockKeys] = {};

TileClass class_of(const PackedHead& head, std::span<const int64_t> rows, IndexRange keys) {
  const Mask& mask = head.problem.mask();
  if (mask.is_none()) return TileClass::full;
  return mask.classify(head.batch, head.head, {rows.front(), rows.back() + 1}, keys);
}

bool all_by_table(const PackedHead& head, const RowGroup& group) {
  if (group.by_table == nullptr) return false;
  const int64_t rows = head.format.computed_rows(static_cast<int64_t>(group.index.size()));
  return std::all_of(group.by_table, group.by_table + rows, [](bool b) { return b; });
}

/// See BlockRun::narrow.
bool is_narrow(const float* bounds, const float* references, int64_t rows) {
  bool narrow = true;
  for (int64_t row = 0; row < rows; ++row) {
    narrow &= bounds[row] + std::fabs(references[row]) <= kMaxNarrowExponent;
  }
  return narrow;
}

}  // namespace

int64_t blocks_of_run(const PackedHead& head, const RowGroup& group, IndexRange blocks) {
  if (head.format.products != PackedProducts::tiles || head.panels == nullptr || head.cap_factors ||
      !all_by_table(head, group)) {
    return 0;
  }
  int64_t count = 0;
  for (int64_t block = blocks.begin; block < blocks.end; ++block, ++count) {
    const IndexRange keys = head.keys_of_block(block);
    if (keys.size() < kBlockKeys || class_of(head, group.index, keys) != TileClass::full) break;
  }
  return count;
}

BlockRun make_run(const PackedHead& head, const RowGroup& group, IndexRange blocks,
                  const float* references) {
  const PackedFormat& format = head.format;
  const int64_t rows = format.computed_rows(static_cast<int64_t>(group.index.size()));
  return {.q = group.packed,
          .k = head.panels.get() + blocks.begin * kBlockKeys * format.steps(),
          .steps = format.steps(),
          .parts = format.parts(),
          .rows = rows,
          .blocks = blocks.size(),
          .narrow = is_narrow(group.bounds, references, rows)};
}

KeyBlockProduct::KeyBlockProduct(const PackedHead& head, KeyProducts& source,
                                 const BlockScratch& scratch, const RowGroup& group, int64_t block)
    : head_(head), group_(group) {
  const auto count = static_cast<int64_t>(group.index.size());
  product_.q = group.packed;
  product_.steps = head.format.steps();
  product_.rows = source.streamed() ? count : head.format.computed_rows(count);
  product_.parts = head.format.parts();
  take_mask(head, scratch, group.index, head.keys_of_block(block));
  if (empty()) return;
  if (source.streamed()) {
    streamed_ = source.products(block);
    // The passes over products give the same bits.
    plain_ = false;
    return;
  }
  product_.k = source.panels(block);
  // The fused kernels know no caps.
  if (head.cap_factors) plain_ = false;
  // The fused kernel of the tile unit knows the table only.
  if (head.format.products == PackedProducts::tiles) plain_ = plain_ && all_by_table(head, group);
}

void KeyBlockProduct::take_mask(const PackedHead& head, const BlockScratch& scratch,
                                std::span<const int64_t> rows, IndexRange keys) {
  constexpr float kBehind = -std::numeric_limits<float>::infinity();
  const TileClass whole = class_of(head, rows, keys);
  if (whole == TileClass::empty) return;
  const auto existing = static_cast<uint32_t>(ceil_div(keys.size(), kPanelKeys));
  if (whole == TileClass::full) {
    product_.panels = (1u << existing) - 1;
    plain_ = keys.size() == kBlockKeys;
    bias_ = {plain_ ? kNoBias : scratch.edge_bias, 0};
    if (plain_) return;
    std::fill_n(scratch.edge_bias, keys.size(), 0.0f);
    std::fill(scratch.edge_bias + keys.size(), scratch.edge_bias + kBlockKeys, kBehind);
    return;
  }
  for (uint32_t panel = 0; panel < existing; ++panel) {
    const IndexRange part =
        intersect({keys.begin + panel * kPanelKeys, keys.begin + (panel + 1) * kPanelKeys}, keys);
    if (class_of(head, rows, part) != TileClass::empty) product_.panels |= 1u << panel;
  }
  if (empty()) return;
  head.problem.mask().fill_bias(head.batch, head.head, rows, keys, scratch.bias, kBlockKeys);
  for (int64_t row = 0; row < product_.rows; ++row) {
    float* row_bias = scratch.bias + row * kBlockKeys;
    if (row >= static_cast<int64_t>(rows.size())) std::fill_n(row_bias, keys.size(), 0.0f);
    std::fill(row_bias + keys.size(), row_bias + kBlockKeys, kBehind);
  }
  bias_ = {scratch.bias, kBlockKeys};
}

bool KeyBlockProduct::excludes_row(int64_t row) const {
  const float* bias = bias_.data + row * bias_.row_stride;
  return std::all_of(bias, bias + kBlockKeys,
                     [](float b) { return b == -std::numeric_limits<float>::infinity(); });
}

void KeyBlockProduct::softmax(RowReferences& rows) const { softmax_of(product_, rows); }

void KeyBlockProduct::sum_softmax(RowReferences& rows) const {
  ProductBlock unstored = product_;
  if (plain_ && head_.format.products != PackedProducts::tiles) unstored.out = nullptr;
  softmax_of(unstored, rows);
}

void KeyBlockProduct::softmax_of(const ProductBlock& product, RowReferences& rows) const {
  rows.by_table = group_.by_table;
  if (plain_) {
    head_.products.softmax(product, head_.exponent_factor, rows);
  } else {
    products();
    head_.kernels.softmax_pass(product, head_.exponent_factor, bias_, rows);
  }
}

void KeyBlockProduct::softmax_of_products(RowReferences& rows) const {
  rows.by_table = group_.by_table;
  head_.kernels.far_softmax_pass(product_, head_.exponent_factor, bias_, rows);
}

void KeyBlockProduct::linear(RowReferences& rows) const {
  products();
  head_.kernels.linear_pass(product_, bias_, rows);
}

void KeyBlockProduct::sigmoid() const {
  products();
  head_.kernels.sigmoid_pass(product_, head_.exponent_factor, bias_);
}

void KeyBlockProduct::logits() const {
  products();
  head_.kernels.logit_pass(product_, head_.logit_factor, bias_);
}

void KeyBlockProduct::products() const {
  if (streamed_.first == nullptr) {
    head_.products.raw(product_);
  } else {
    for (int64_t row = 0; row < product_.rows; ++row) {
      std::copy_n(streamed_.first + row * streamed_.stride, kBlockKeys,
                  product_.out + row * product_.out_stride);
    }
  }
  if (head_.cap_factors) head_.kernels.cap_pass(product_, *head_.cap_factors);
}

void KeyBlockProduct::exponent_maxima(float (&maxima)[kMaxGroupRows]) const {
  products();
  head_.kernels.exponent_maxima(product_, head_.exponent_factor, bias_, maxima);
}

}  // namespace attnscope
