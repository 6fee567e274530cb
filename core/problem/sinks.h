#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace attnscope {

/// Attention sinks: a logit z more in the denominator of each row, P = exp(s)/(Σ exp(s) + exp(z)).
/// z is neither scaled nor capped nor masked and has no key, so that rows add up to 1 − exp(z −
/// lse) (gpt-oss: one a head that was learnt; 0 is softmax "off by one"). A value that shares its
/// numbers; thread-safe.
class Sinks {
 public:
  /// [batch items, query heads, queries], each all of them or 1 for all.
  using Shape = std::array<int64_t, 3>;
  /// Sinks beyond are refused, as float32 cannot tell keys beside them apart.
  static constexpr double kMostLogit = 2.9e6;

  /// No sinks.
  Sinks() = default;
  /// `logits` has the shape's elements, the last axis contiguous: numbers within ±kMostLogit, or −∞
  /// for a row without a sink. Throws Error(value) with the index of what is not.
  Sinks(const Shape& shape, std::vector<float> logits);

  bool is_none() const { return logits_ == nullptr; }
  bool by_query() const { return shape_[2] > 1; }
  /// −∞ where there is none.
  double logit(int64_t batch, int64_t head, int64_t query) const;
  const Shape& shape() const { return shape_; }
  /// Empty where there are none.
  std::span<const float> logits() const;
  /// Empty where the shape serves calls of these extents, else why not.
  std::string misfit(const Shape& call) const;
  /// "none", "a logit a head", "a logit a query".
  std::string describe() const;
  /// Those of the queries that are listed, in their order.
  Sinks of_queries(std::span<const int64_t> queries) const;

 private:
  Shape shape_{1, 1, 1};
  std::shared_ptr<const std::vector<float>> logits_;
};

}  // namespace attnscope
