#include "viewer/view/name_places.h"

#include <algorithm>

namespace attnscope {

std::vector<std::optional<float>> place_names(std::span<const AxisName> names, float low,
                                              float high, float gap) {
  std::vector<std::optional<float>> begins(names.size());
  if (names.empty()) return begins;
  const auto centred = [&](size_t i) { return names[i].middle - names[i].length / 2; };
  const size_t last = names.size() - 1;
  float first_begin = centred(0), last_begin = centred(last);
  if (last > 0) {
    first_begin = std::min(first_begin, centred(1) - gap - names[0].length);
    last_begin = std::max(last_begin, centred(last - 1) + names[last - 1].length + gap);
  }
  first_begin = std::max(first_begin, low);
  last_begin = std::min(last_begin, high - names[last].length);
  float end = low - gap;
  if (first_begin + names[0].length <= high) {
    begins[0] = first_begin;
    end = first_begin + names[0].length;
  }
  if (last == 0) return begins;
  float most = high;
  if (last_begin >= end + gap) {
    begins[last] = last_begin;
    most = last_begin - gap;
  }
  for (size_t i = 1; i < last; ++i) {
    const float begin = centred(i);
    if (begin < end + gap || begin + names[i].length > most) continue;
    begins[i] = begin;
    end = begin + names[i].length;
  }
  return begins;
}

}  // namespace attnscope
