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

/// Of a tensor that an option names, and of a recorded one.
ErrorCode wrong_code(const std::optional<std::string>& told) {
  return told ? ErrorCode::usage : ErrorCode::file;
}

/// How many numbers of how many heads a tensor [batch, heads, numbers…] has, of axes that are 1
/// where they are the same for all; the batch's may be missing.
HeadNumbers numbers_of(const TensorSource& tensor, const HeadTensor& q,
                       const std::vector<int64_t>& numbers, const std::string& what,
                       ErrorCode wrong) {
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
    throw wrong_tensor(tensor, wrong,
                       "expected " + what + ", " + shape_text(of_heads) + " or " +
                           shape_text(expected) + " (got " + shape_text(shape) + ")");
  }
  require_floats(tensor, wrong);
  HeadNumbers each{{missing == 1 ? 1 : shape[0], shape[missing == 1 ? 0 : 1]}, {}, 1};
  for (const int64_t extent : numbers) each.count *= extent;
  return each;
}

/// Checks the type now, and reads a head's numbers at their first use.
HeadNumbers numbers_to_read(const SourcePtr& tensor, const HeadTensor& q,
                            const std::vector<int64_t>& places, const std::string& what,
                            ErrorCode wrong) {
  HeadNumbers numbers = numbers_of(*tensor, q, places, what, wrong);
  const bool items = std::ssize(tensor->shape()) == std::ssize(places) + 2;
  numbers.read = [tensor, items](int64_t item, int64_t head) {
    const auto shape = tensor->shape();
    std::vector<int64_t> begin(shape.size()), count(shape.begin(), shape.end());
    const size_t axis = items ? 1 : 0;
    if (items) begin[0] = item;
    begin[axis] = head;
    for (size_t a = 0; a <= axis; ++a) count[a] = 1;
    return with_name(tensor->name(), ErrorCode::file,
                     [&] { return floats_in(*tensor, begin, count); });
  };
  return numbers;
}

}  // namespace

PlaceBias call_alibi(const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides, const ReadControl& control,
                     std::vector<std::string>& notes) {
  PlaceBias alibi{{},
                  chosen_tensor("--alibi", overrides.alibi, tensors.alibi_slopes, "alibi_slopes",
                                control, notes)};
  if (!alibi.tensor) return alibi;
  alibi.mask = with_name(alibi.tensor->name(), wrong_code(overrides.alibi), [&] {
    HeadNumbers slopes =
        numbers_of(*alibi.tensor, heads.q, {}, "a slope a head", wrong_code(overrides.alibi));
    slopes.each = all_floats(*alibi.tensor);
    return alibi_mask(std::move(slopes), heads.k.tokens() - heads.q.tokens());
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
  const ErrorCode wrong = wrong_code(overrides.relative_bias);
  bias.mask = with_name(bias.tensor->name(), wrong, [&] {
    const TokenGrid& grid = tokens.keys;
    if (!is_grid_bias(bias.tensor->shape())) {
      const std::vector<int64_t> places{heads.q.tokens() + heads.k.tokens() - 1};
      return relative_bias_mask(
          numbers_to_read(bias.tensor, heads.q, places, "queries + keys - 1 numbers a head", wrong),
          heads.k.tokens());
    }
    if (!grid.has_grid() || !tokens.queries.same_places(grid)) {
      throw wrong_tensor(*bias.tensor, wrong,
                         "expected queries and keys of one grid (--grid TxHxW), for its shape is " +
                             shape_text(bias.tensor->shape()) +
                             "; a bias of the map's own shape is a mask: --mask FILE:KEY --ignore "
                             "relative_bias");
    }
    const std::vector<int64_t> places{2 * grid.frames() - 1, 2 * grid.height() - 1,
                                      2 * grid.width() - 1};
    return grid_bias_mask(
        numbers_to_read(bias.tensor, heads.q, places, "2T-1 x 2H-1 x 2W-1 numbers a head", wrong),
        {grid.frames(), grid.height(), grid.width()}, grid.video_range().begin);
  });
  return bias;
}

}  // namespace attnscope
