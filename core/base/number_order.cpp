#include "core/base/number_order.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {

NumberOrder NumberOrder::parse(std::string_view sort, std::span<const std::string> names) {
  if (sort.empty()) return {};
  constexpr std::string_view kAscending = ":asc";
  const bool ascending = sort.ends_with(kAscending);
  const std::string name(sort.substr(0, sort.size() - (ascending ? kAscending.size() : 0)));
  if (std::find(names.begin(), names.end(), name) != names.end()) return {name, ascending};
  std::string list;
  for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
  const std::string nearest = nearest_word(name, names);
  throw usage_error("--sort " + one_line(sort) + ": there is no such number" +
                    (nearest.empty() ? "" : "; did you mean " + nearest + "?") + " (there are " +
                    list + "; NAME:asc has the smallest first)");
}

bool NumberOrder::is_before(std::optional<double> a, std::optional<double> b) const {
  const auto is_known = [](const auto& number) { return number && !std::isnan(*number); };
  if (!is_known(a) || !is_known(b)) return is_known(a) && !is_known(b);
  return ascending ? *a < *b : *a > *b;
}

}  // namespace attnscope
