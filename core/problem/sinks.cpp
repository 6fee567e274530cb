#include "core/problem/sinks.h"

#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace attnscope {

Sinks::Sinks(const Shape& shape, std::vector<float> logits) : shape_(shape) {
  assert(static_cast<int64_t>(logits.size()) == shape[0] * shape[1] * shape[2]);
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto logit = static_cast<double>(logits[i]);
    if (std::fabs(logit) <= kMostLogit || logit == -std::numeric_limits<double>::infinity())
      continue;
    const auto at = static_cast<int64_t>(i);
    throw Error(ErrorCode::value,
                "sink of batch " + std::to_string(at / (shape[1] * shape[2])) + ", head " +
                    std::to_string(at / shape[2] % shape[1]) + ", query " +
                    std::to_string(at % shape[2]) + " is " + std::to_string(logit) +
                    " (expected a number from -2900000 to 2900000, or -inf for none)");
  }
  logits_ = std::make_shared<const std::vector<float>>(std::move(logits));
}

double Sinks::logit(int64_t batch, int64_t head, int64_t query) const {
  if (is_none()) return -std::numeric_limits<double>::infinity();
  const auto along = [&](size_t axis, int64_t index) { return shape_[axis] == 1 ? 0 : index; };
  const int64_t at = (along(0, batch) * shape_[1] + along(1, head)) * shape_[2] + along(2, query);
  return static_cast<double>((*logits_)[static_cast<size_t>(at)]);
}

std::span<const float> Sinks::logits() const {
  return is_none() ? std::span<const float>() : std::span<const float>(*logits_);
}

std::string Sinks::misfit(const Shape& call) const {
  constexpr std::array kAxes{"batch items", "heads", "queries"};
  for (size_t axis = 0; axis < call.size(); ++axis) {
    if (is_none() || shape_[axis] == 1 || shape_[axis] == call[axis]) continue;
    return "sinks of " + std::to_string(shape_[axis]) + " " + kAxes[axis] + ", expected 1 or " +
           std::to_string(call[axis]);
  }
  return "";
}

std::string Sinks::describe() const {
  if (is_none()) return "none";
  return by_query() ? "a logit a query" : "a logit a head";
}

Sinks Sinks::of_queries(std::span<const int64_t> queries) const {
  if (is_none() || !by_query()) return *this;
  const auto count = static_cast<int64_t>(queries.size());
  std::vector<float> chosen;
  chosen.reserve(static_cast<size_t>(shape_[0] * shape_[1] * count));
  for (int64_t row = 0; row < shape_[0] * shape_[1]; ++row) {
    for (const int64_t query : queries) {
      chosen.push_back((*logits_)[static_cast<size_t>(row * shape_[2] + query)]);
    }
  }
  return {{shape_[0], shape_[1], count}, std::move(chosen)};
}

}  // namespace attnscope
