#include "core/mask/edited_mask.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/mask/picked_blocks.h"

namespace attnscope {
namespace {

bool holds(IndexRange outer, IndexRange inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

std::string text_of(const MaskEdit& edit) {
  return "queries " + std::to_string(edit.q0) + ":" + std::to_string(edit.q1) + ", keys " +
         std::to_string(edit.k0) + ":" + std::to_string(edit.k1);
}

class EditedTerm : public MaskTerm {
 public:
  EditedTerm(Mask mask, std::vector<MaskEdit> edits)
      : mask_(std::move(mask)), edits_(std::move(edits)) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override {
    for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit) {
      const IndexRange rows = edit->queries(), cols = edit->keys();
      if (intersect(rows, queries).empty() || intersect(cols, keys).empty()) continue;
      if (!holds(rows, queries) || !holds(cols, keys)) return TileClass::mixed;
      return edit->keep ? TileClass::full : TileClass::empty;
    }
    return mask_.classify(batch, head, queries, keys);
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    if (queries.empty()) return;
    const auto width = static_cast<size_t>(keys.size());
    std::vector<const MaskEdit*> near;
    for (const MaskEdit& edit : edits_) {
      const IndexRange rows{queries.front(), queries.back() + 1};
      if (intersect(edit.queries(), rows).empty() || intersect(edit.keys(), keys).empty()) continue;
      near.push_back(&edit);
    }
    std::vector<float> bias(queries.size() * width);
    mask_.fill_bias(batch, head, queries, keys, bias.data(), keys.size());
    for (size_t r = 0; r < queries.size(); ++r, out += row_stride) {
      float* const row = bias.data() + r * width;
      for (const MaskEdit* const edit : near) {
        if (!edit->queries().contains(queries[r])) continue;
        const IndexRange cols = intersect(edit->keys(), keys);
        std::fill(row + (cols.begin - keys.begin), row + (cols.end - keys.begin),
                  edit->keep ? 0.0f : kMasked);
      }
      for (size_t j = 0; j < width; ++j) out[j] += row[j];
    }
  }

  std::string describe() const override {
    return "(" + mask_.describe() + " with " + std::to_string(edits_.size()) +
           (edits_.size() == 1 ? " rectangle edited)" : " rectangles edited)");
  }

  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    mask_.check_shape(batch, heads, queries, keys);
    for (const MaskEdit& edit : edits_) {
      if (edit.q1 <= queries && edit.k1 <= keys) continue;
      throw usage_error("mask: " + text_of(edit) + " were edited, beyond a map of " +
                        std::to_string(queries) + " x " + std::to_string(keys));
    }
  }

 private:
  const Mask mask_;
  const std::vector<MaskEdit> edits_;
};

}  // namespace

Mask edited_mask(const Mask& mask, std::vector<MaskEdit> edits) {
  if (edits.empty()) return mask;
  if (mask.has_finite_bias()) {
    throw usage_error("mask: edits of " + mask.describe() + ", which has biases");
  }
  if (mask.dropped() != nullptr && mask.dropped()->rest != BlockRest::renormalise) {
    throw usage_error("mask: edits of " + mask.describe() +
                      ", which is more than a mask (rest=renormalise is one)");
  }
  for (const MaskEdit& edit : edits) {
    if (edit.q0 < 0 || edit.k0 < 0 || edit.q0 >= edit.q1 || edit.k0 >= edit.k1) {
      throw usage_error("mask: nothing to edit in " + text_of(edit));
    }
  }
  return Mask::term(std::make_shared<EditedTerm>(mask, std::move(edits)));
}

}  // namespace attnscope
