#include "io/capture/call/call_place_bias.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/mask/place_bias.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/facts/fact_errors.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

using SourcePtr = std::shared_ptr<const TensorSource>;

SourcePtr chosen_tensor(const char* option, const std::optional<std::string>& told,
                        const SourcePtr& recorded, const char* role, const ReadControl& control,
                        std::vector<std::string>& notes) {
  if (!told) return recorded;
  if (recorded) {
    notes.push_back(std::string(option) + " " + *told + " overrides the recorded " +
                    recorded->name());
  }
  return *told == "none" ? nullptr : open_tensor_reference(*told, usual_names(role), control);
}

/// The numbers of a tensor [batch, heads, numbers…], of axes that are 1 where they are the same
/// for all; the batch's may be missing.
HeadNumbers read_numbers(const TensorSource& tensor, const HeadTensor& q,
                         const std::vector<int64_t>& numbers, const std::string& what) {
  const auto shape = tensor.shape();
  std::vector<int64_t> expected{q.batch(), q.heads()};
  expected.insert(expected.end(), numbers.begin(), numbers.end());
  const auto missing = std::ssize(expected) - std::ssize(shape);
  bool fits = missing == 0 || missing == 1;
  for (size_t axis = 0; fits && axis < shape.size(); ++axis) {
    const size_t at = axis + static_cast<size_t>(missing);
    fits = shape[axis] == expected[at] || (at < 2 && shape[axis] == 1);
  }
  if (!fits) {
    const std::vector<int64_t> of_heads(expected.begin() + 1, expected.end());
    throw file_error(tensor.name(), "",
                     "expected " + what + ", " + shape_text(of_heads) + " or " +
                         shape_text(expected) + " (got " + shape_text(shape) + ")");
  }
  HeadNumbers each{{missing == 1 ? 1 : shape[0], shape[missing == 1 ? 0 : 1]}, {}, 1};
  for (const int64_t extent : numbers) each.count *= extent;
  each.each = all_floats(tensor);
  return each;
}

}  // namespace

PlaceBias call_alibi(const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides, const ReadControl& control,
                     std::vector<std::string>& notes) {
  PlaceBias alibi{{},
                  chosen_tensor("--alibi", overrides.alibi, tensors.alibi_slopes, "alibi_slopes",
                                control, notes)};
  if (!alibi.tensor) return alibi;
  alibi.mask = with_name(alibi.tensor->name(), ErrorCode::file, [&] {
    return alibi_mask(read_numbers(*alibi.tensor, heads.q, {}, "a slope a head"),
                      heads.k.tokens() - heads.q.tokens());
  });
  return alibi;
}

PlaceBias call_relative_bias(const CallTensors& tensors, const HeadTensors& heads,
                             const CallTokens& tokens, const FactOverrides& overrides,
                             const ReadControl& control, std::vector<std::string>& notes) {
  PlaceBias bias{{},
                 chosen_tensor("--relative-bias", overrides.relative_bias, tensors.relative_bias,
                               "relative_bias", control, notes)};
  if (!bias.tensor) return bias;
  bias.mask = with_name(bias.tensor->name(), ErrorCode::file, [&] {
    const TokenGrid& grid = tokens.keys;
    if (!is_grid_bias(bias.tensor->shape())) {
      const std::vector<int64_t> places{heads.q.tokens() + heads.k.tokens() - 1};
      return relative_bias_mask(
          read_numbers(*bias.tensor, heads.q, places, "queries + keys - 1 numbers a head"),
          heads.k.tokens());
    }
    if (!grid.has_grid() || !tokens.queries.same_places(grid)) {
      throw file_error(bias.tensor->name(), "",
                       "expected queries and keys of one grid (--grid TxHxW), for its shape is " +
                           shape_text(bias.tensor->shape()));
    }
    const std::vector<int64_t> places{2 * grid.frames() - 1, 2 * grid.height() - 1,
                                      2 * grid.width() - 1};
    return grid_bias_mask(
        read_numbers(*bias.tensor, heads.q, places, "2T-1 x 2H-1 x 2W-1 numbers a head"),
        {grid.frames(), grid.height(), grid.width()}, grid.video_range().begin);
  });
  return bias;
}

}  // namespace attnscope
