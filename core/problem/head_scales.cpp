#include "core/problem/head_scales.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

namespace attnscope {
namespace {

std::string number_text(double number, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

}  // namespace

HeadScales::HeadScales(std::vector<double> each) : each_(std::move(each)) {
  assert(!each_.empty());
  // A list of equal numbers says no more than one of them.
  const auto differs = [&](double scale) { return scale != each_.front(); };
  if (std::none_of(each_.begin(), each_.end(), differs)) each_.resize(1);
}

std::string HeadScales::words(int digits) const {
  if (is_one()) return number_text(each_.front(), digits);
  const auto [least, most] = std::minmax_element(each_.begin(), each_.end());
  return std::to_string(each_.size()) + " numbers, one a head, " + number_text(*least, digits) +
         " to " + number_text(*most, digits);
}

}  // namespace attnscope
