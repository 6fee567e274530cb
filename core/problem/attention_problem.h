#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/mask/mask.h"
#include "core/problem/head_scales.h"
#include "core/problem/model_place.h"
#include "core/problem/score.h"
#include "core/problem/sinks.h"
#include "core/problem/token_grid.h"
#include "core/tensor/layout.h"

namespace attnscope {

enum class CallKind : uint8_t { self, cross, joint };
std::string_view kind_name(CallKind kind);
std::optional<CallKind> parse_kind(std::string_view name);

/// Which attention call this is. Numbers are the ones recorded, not positions in a list;
/// place.unrecorded tells which are not.
struct CallId {
  int64_t step = 0;
  int64_t layer = 0;  ///< kNoLayer outside the main stack; then the place is recorded
  CallKind kind = CallKind::self;
  /// One entry a batch item, for example {"uncond", "cond"}; "all" where nothing was recorded.
  std::vector<std::string> branches;
  ModelPlace place = {};
};
/// The branch of one batch item of a call.
const std::string& branch_of(const CallId& id, int64_t item);

/// Everything that decides one call's attention maps. Made by make(), immutable and valid from then
/// on; shares its tensors; thread-safe. Head h of Q uses head h / (H / Hkv) of K and V (grouped
/// queries, as PyTorch's enable_gqa).
class AttentionProblem {
 public:
  struct Parts {
    HeadTensor q;      ///< [B, H, Nq, d]
    HeadTensor k;      ///< [B, Hkv, Nk, d]
    HeadTensor v;      ///< [B, Hkv, Nk, dv] or empty
    HeadScales scale;  ///< one, or one a query head: finite, > 0; 0 stands for 1/√d
    ScoreFunction score = ScoreFunction::softmax;
    Mask mask;
    Sinks sinks;             ///< of softmax, capped or not
    TokenGrid query_tokens;  ///< default: unknown(Nq)
    TokenGrid key_tokens;    ///< default: unknown(Nk)
    CallId id;
    std::string name;  ///< how messages name the call, usually its file
  };
  static constexpr int64_t kMaxHeadDim = 4096;

  /// Validates; throws Error(usage) with `name` and both shapes when the parts do not fit.
  static AttentionProblem make(Parts parts);

  const HeadTensor& q() const { return parts_.q; }
  const HeadTensor& k() const { return parts_.k; }
  const HeadTensor& v() const { return parts_.v; }
  int64_t batch() const { return parts_.q.batch(); }
  int64_t num_heads() const { return parts_.q.heads(); }
  int64_t num_kv_heads() const { return parts_.k.heads(); }
  int64_t num_queries() const { return parts_.q.tokens(); }
  int64_t num_keys() const { return parts_.k.tokens(); }
  int64_t head_dim() const { return parts_.q.width(); }
  int64_t kv_head(int64_t head) const { return head / (num_heads() / num_kv_heads()); }
  /// Of a query head.
  double scale(int64_t head) const { return parts_.scale.of(head); }
  const HeadScales& scales() const { return parts_.scale; }
  ScoreFunction score() const { return parts_.score; }
  const Mask& mask() const { return parts_.mask; }
  const Sinks& sinks() const { return parts_.sinks; }
  /// Score and sinks for people: "softcap:50", "softmax with sinks".
  std::string score_words() const;
  /// True where the weights of each row that is not masked out add up to 1.
  bool rows_add_up() const { return is_normalised(parts_.score) && parts_.sinks.is_none(); }
  const TokenGrid& query_tokens() const { return parts_.query_tokens; }
  const TokenGrid& key_tokens() const { return parts_.key_tokens; }
  const CallId& id() const { return parts_.id; }
  /// True where query i and key i are the same token for all i. False in cross attention, and where
  /// keys come from a cache.
  bool same_tokens() const {
    return parts_.id.kind != CallKind::cross && parts_.query_tokens.same_places(parts_.key_tokens);
  }
  const std::string& name() const { return parts_.name; }

  /// A copy of the call in which entries must also be allowed by `mask`. Throws Error(usage) where
  /// the mask does not fit.
  AttentionProblem with_mask(const Mask& mask) const;

  /// Reads all of q and k of one head once and throws Error(value) with tensor, index and value at
  /// the first NaN or Inf, Error(interrupted) soon after a stop is requested. Memory stays below
  /// 2 MiB.
  void check_finite(int64_t batch, int64_t head, const std::stop_token& stop = {}) const;
  /// The halves of check_finite: key heads are shared under grouped-query attention.
  void check_queries_finite(int64_t batch, int64_t head, const std::stop_token& stop = {}) const;
  void check_keys_finite(int64_t batch, int64_t kv_head, const std::stop_token& stop = {}) const;
  /// As check_keys_finite(), of v, which must be there.
  void check_values_finite(int64_t batch, int64_t kv_head, const std::stop_token& stop = {}) const;

 private:
  explicit AttentionProblem(Parts parts) : parts_(std::move(parts)) {}
  Parts parts_;
};

}  // namespace attnscope
