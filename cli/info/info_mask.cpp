#include "cli/info/info_mask.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace attnscope {
namespace {

/// "window:128,0: the query's own key, 128 before it and none behind it, counted from the last …".
std::string window_text(const AttentionProblem& p, const std::array<int64_t, 2>& window) {
  const auto side = [](int64_t keys, const char* where) {
    return keys < 0    ? fmt::format("all {} it", where)
           : keys == 0 ? fmt::format("none {} it", where)
                       : fmt::format("{} {} it", keys, where);
  };
  const int64_t shift = p.num_keys() - p.num_queries();
  return fmt::format("{}: the query's own key, {} and {}{}", p.mask().describe(),
                     side(window[0], "before"), side(window[1], "behind"),
                     shift == 0
                         ? ""
                         : fmt::format(", counted from the last token of both: query 0 is at "
                                       "key {}",
                                       shift));
}

}  // namespace

std::string mask_text(const CallEntry& call) {
  const AttentionProblem& p = *call.problem;
  const std::string name = p.mask().describe();
  if (!call.mask_fact) return name;
  switch (call.mask_fact->form) {
    case MaskForm::causal:
      if (p.num_queries() == p.num_keys()) return name;
      return fmt::format(
          "{}: counted from the first token of both, as PyTorch's is_causal: query 0 sees key 0; "
          "counted from the last, as flash-attention does, it would see {}",
          name,
          p.num_keys() > p.num_queries()
              ? fmt::format("keys 0 to {}", p.num_keys() - p.num_queries())
              : "none");
    case MaskForm::window:
      return window_text(p, call.mask_fact->window);
    case MaskForm::natten:
      if (!p.key_tokens().has_grid()) {
        return fmt::format("{} ({}: keys that are text have no neighbourhoods)", name,
                           call.mask_fact->text());
      }
      return fmt::format(
          "{}: {} is the neighbourhood of each token of the grid {}x{}x{}; other tokens "
          "see all and are seen by all",
          name, call.mask_fact->text(), p.key_tokens().frames(), p.key_tokens().height(),
          p.key_tokens().width());
    case MaskForm::valid:
      return name + ": the keys that " +
             std::string(call.mask->name().ends_with("mask_valid") ? "mask_valid" : "the mask") +
             " marks";
    case MaskForm::valid_pairs:
      return name + ": queries and keys that mask_valid marks";
    case MaskForm::segments:
      return name + ": keys with the query's number in mask_segments";
    case MaskForm::block_causal:
      return fmt::format("{}: keys up to the end of the query's block of {} tokens", name,
                         call.mask_fact->causal_block);
    case MaskForm::blocks:
      return fmt::format("{}: blocks of {} queries and {} keys that mask_blocks marks", name,
                         call.mask_fact->block[0], call.mask_fact->block[1]);
    case MaskForm::spans:
      return fmt::format("{}: {} of queries and the keys that they see", name,
                         call.mask->shape()[0]);
    default:
      return name;
  }
}

}  // namespace attnscope
