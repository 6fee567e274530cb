#include "core/problem/attention_problem.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/problem/finite_check.h"
#include "core/problem/head_limit.h"
#include "core/problem/problem_names.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"self", "cross", "joint"};

/// "[1, 48, 17776, 64]", in the order batch, heads, tokens, width.
std::string shape_text(const HeadTensor& t) {
  std::string text = "[";
  for (int64_t extent : {t.batch(), t.heads(), t.tokens(), t.width()}) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text += "]";
}

/// One check after the other, every message with the problem's name and both shapes.
class Checker {
 public:
  explicit Checker(const AttentionProblem::Parts& parts) : p_(parts) {}

  void require(bool good, const std::string& what) const {
    if (good) return;
    const std::string name = p_.name.empty() ? "attention call" : p_.name;
    throw usage_error(name + ": " + what + " (q " + shape_text(p_.q) + ", k " + shape_text(p_.k) +
                      ")");
  }

  void tensors() const {
    require(static_cast<bool>(p_.q) && static_cast<bool>(p_.k), "q or k is missing");
    for (const HeadTensor* t : {&p_.q, &p_.k, &p_.v}) {
      if (!*t) continue;
      const bool some = t->batch() > 0 && t->heads() > 0 && t->tokens() > 0 && t->width() > 0;
      require(some, t->source().name() + " has a dimension of 0");
      require(t->width() <= AttentionProblem::kMaxHeadDim,
              "a head dimension of " + std::to_string(t->width()) + " is above the limit " +
                  std::to_string(AttentionProblem::kMaxHeadDim));
      const std::string many = too_many_heads(*t);
      require(many.empty(), t->source().name() + " " + many);
    }
    require(p_.q.width() == p_.k.width(), "q and k differ in their head dimension");
    require(p_.q.batch() == p_.k.batch(), "q and k differ in their batch");
    require(p_.q.heads() % p_.k.heads() == 0, "the heads of q are no multiple of the heads of k");
    require(p_.q.dtype() == p_.k.dtype(),
            "q and k differ in their dtype, " + std::string(dtype_name(p_.q.dtype())) + " and " +
                std::string(dtype_name(p_.k.dtype())) + " (f64 counts as f32)");
    if (!p_.v) return;
    require(p_.v.batch() == p_.k.batch() && p_.v.heads() == p_.k.heads() &&
                p_.v.tokens() == p_.k.tokens(),
            "v " + shape_text(p_.v) + " does not fit k in batch, heads and tokens");
  }

  void tokens() const {
    require(
        p_.query_tokens.tokens() == p_.q.tokens(),
        "the query tokens are " + std::to_string(p_.query_tokens.tokens()) + ", not those of q");
    require(p_.key_tokens.tokens() == p_.k.tokens(),
            "the key tokens are " + std::to_string(p_.key_tokens.tokens()) + ", not those of k");
    for (const TokenGrid* grid : {&p_.query_tokens, &p_.key_tokens}) {
      const int64_t items = grid->valid_items();
      require(items == 1 || items == p_.q.batch(),
              std::string(grid->has_map() ? "valid" : "text_valid") + " has " +
                  std::to_string(items) + " numbers, expected 1 or one a batch item");
    }
  }

  void scales() const {
    constexpr double kMostRatio = 0x1p100;  // what float32 holds, and its reciprocal
    const std::vector<double>& each = p_.scale.each();
    require(p_.scale.is_one() || std::ssize(each) == p_.q.heads(),
            std::to_string(each.size()) + " scales, expected 1 or one a head");
    for (const double scale : each) {
      require(std::isfinite(scale) && scale > 0,
              "the scale must be finite and above 0, got " + std::to_string(scale));
      const double ratio = p_.score.cap / scale;
      require(p_.score.cap == 0 || (ratio < kMostRatio && ratio > 1 / kMostRatio),
              "a cap of " + score_name(p_.score) + " is too far from the scale " +
                  std::to_string(scale));
    }
  }

  void identity() const {
    const auto branches = static_cast<int64_t>(p_.id.branches.size());
    require(branches == 1 || branches == p_.q.batch(),
            std::to_string(branches) + " branches, expected 1 or one a batch item");
    // Where keys come from a cache as well, token maps say which they are.
    const bool mapped = p_.query_tokens.has_map() && p_.key_tokens.has_map();
    require(p_.id.kind == CallKind::cross || mapped || p_.q.tokens() == p_.k.tokens(),
            std::string(kind_name(p_.id.kind)) +
                " attention needs as many queries as keys, or a token map of both");
  }

 private:
  const AttentionProblem::Parts& p_;
};

}  // namespace

const std::string& branch_of(const CallId& id, int64_t item) {
  return id.branches[id.branches.size() == 1 ? 0 : static_cast<size_t>(item)];
}

std::string_view kind_name(CallKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::optional<CallKind> parse_kind(std::string_view name) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] == name) return static_cast<CallKind>(i);
  }
  return std::nullopt;
}

std::vector<std::string> kind_names() { return {std::begin(kKinds), std::end(kKinds)}; }

AttentionProblem AttentionProblem::make(Parts parts) {
  const Checker check(parts);
  check.tensors();
  if (parts.scale == 0) parts.scale = 1.0 / std::sqrt(static_cast<double>(parts.q.width()));
  check.scales();
  check.require(std::isfinite(parts.score.cap) && parts.score.cap >= 0 &&
                    (parts.score.cap == 0 || is_softmax(parts.score)),
                "logits of softmax alone are capped, at a finite number above 0");
  if (parts.query_tokens.tokens() == 0) parts.query_tokens = TokenGrid::unknown(parts.q.tokens());
  if (parts.key_tokens.tokens() == 0) parts.key_tokens = TokenGrid::unknown(parts.k.tokens());
  check.tokens();
  if (parts.id.branches.empty()) parts.id.branches = {"all"};
  check.identity();
  try {
    parts.mask.check_shape(parts.q.batch(), parts.q.heads(), parts.q.tokens(), parts.k.tokens());
  } catch (const Error& error) {
    check.require(false, error.what());
  }
  check.require(!is_linear(parts.score) || !parts.mask.has_finite_bias(),
                "score " + score_name(parts.score) + " has no logits to add a floating mask to");
  check.require(parts.sinks.is_none() || is_softmax(parts.score),
                "score " + score_name(parts.score) + " has no sinks");
  const std::string misfit =
      parts.sinks.misfit({parts.q.batch(), parts.q.heads(), parts.q.tokens()});
  check.require(misfit.empty(), misfit);
  check.require(
      !is_signed(parts.score) || parts.mask.is_none(),
      "score " + score_name(parts.score) + " takes no mask (got " + parts.mask.describe() + ")");
  return AttentionProblem(std::move(parts));
}

std::string AttentionProblem::score_words() const {
  return score_name(parts_.score) + (parts_.sinks.is_none() ? "" : " with sinks");
}

void AttentionProblem::check_queries_finite(int64_t batch, int64_t head,
                                            const std::stop_token& stop) const {
  FiniteCheck().check(parts_.q, batch, head, {0, parts_.q.tokens()}, stop);
}

void AttentionProblem::check_keys_finite(int64_t batch, int64_t kv_head,
                                         const std::stop_token& stop) const {
  FiniteCheck().check(parts_.k, batch, kv_head, {0, parts_.k.tokens()}, stop);
}

void AttentionProblem::check_values_finite(int64_t batch, int64_t kv_head,
                                           const std::stop_token& stop) const {
  FiniteCheck().check(parts_.v, batch, kv_head, {0, parts_.v.tokens()}, stop);
}

AttentionProblem AttentionProblem::with_mask(const Mask& mask) const {
  mask.check_shape(batch(), num_heads(), num_queries(), num_keys());
  Parts parts = parts_;
  parts.mask = parts_.mask & mask;
  return make(std::move(parts));
}

void AttentionProblem::check_finite(int64_t batch, int64_t head,
                                    const std::stop_token& stop) const {
  check_queries_finite(batch, head, stop);
  check_keys_finite(batch, kv_head(head), stop);
}

}  // namespace attnscope
