#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "core/mask/mask.h"
#include "core/problem/attention_problem.h"
#include "core/problem/token_grid.h"
#include "core/tensor/row_source.h"

// Ways in which a head's masks, rows and their order may have been meant otherwise than they were
// recorded. All return values own what they need; thread-safe.
namespace attnscope {

/// The booleans of a mask's tensor, each the opposite.
std::shared_ptr<const TensorSource> inverted_booleans(std::shared_ptr<const TensorSource> booleans);
/// A floating tensor mask whose numbers mean booleans: what is not 0 may be attended to.
Mask number_mask(std::shared_ptr<const TensorSource> numbers);
/// key ≤ query + shift: causal, aligned at the last query and key where shift = keys − queries.
Mask last_aligned_causal(int64_t shift);
/// The keys that are no padding; nothing where the problem does not say.
std::optional<Mask> padding_mask(const AttentionProblem& problem);

/// A row-major grid walked in another order of its axes.
struct AxisOrder {
  std::array<int, 3> axes;  ///< which of t, y, x is outermost, middle, innermost
  const char* name;
};
inline constexpr std::array<AxisOrder, 5> kOtherOrders{{{{0, 2, 1}, "(t, x, y)"},
                                                        {{1, 2, 0}, "(y, x, t)"},
                                                        {{1, 0, 2}, "(y, t, x)"},
                                                        {{2, 1, 0}, "(x, y, t)"},
                                                        {{2, 0, 1}, "(x, t, y)"}}};

/// Which token of the one order is at a place of the other.
using TokenPlacement = std::function<int64_t(int64_t token)>;
/// Where the token that belongs at an index (t, y, x order) stands when video tokens were laid out
/// in another order.
TokenPlacement standing_in(const TokenGrid& grid, const std::array<int, 3>& axes);
/// The inverse: which token (t, y, x order) stands at a place of the other order.
TokenPlacement standing_at(const TokenGrid& grid, const std::array<int, 3>& axes);
/// Text at the other end of the sequence.
TokenPlacement text_moved(const TokenGrid& grid);

/// Norms of q and k without learnt weights.
enum class Norm : uint8_t { none, rms, layer, rms_all_heads };
std::string_view norm_text(Norm norm);
/// The rows after the norm; `tensor` is what they are of (all heads are read for rms_all_heads).
RowSourcePtr normalised_rows(RowSourcePtr rows, Norm norm, const HeadTensor& tensor, int64_t batch);

}  // namespace attnscope
