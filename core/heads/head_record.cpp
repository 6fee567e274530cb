#include "core/heads/head_record.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {

HeadOrder HeadOrder::parse(std::string_view sort) {
  if (sort.empty()) return {};
  constexpr std::string_view kAscending = ":asc";
  const bool ascending = sort.ends_with(kAscending);
  const std::string_view name = sort.substr(0, sort.size() - (ascending ? kAscending.size() : 0));
  if (const HeadField* const field = find_head_field(name)) return {field, ascending};
  std::vector<std::string> names;
  std::string list;
  for (const HeadField& field : head_fields()) {
    names.emplace_back(field.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string nearest = nearest_word(std::string(name), names);
  throw usage_error("--sort " + one_line(sort) + ": there is no such number" +
                    (nearest.empty() ? "" : "; did you mean " + nearest + "?") + " (there are " +
                    list + "; NAME:asc has the smallest first)");
}

void sort_records(std::vector<HeadRecord>& records, const HeadOrder& order) {
  const auto place = [](const HeadRecord& r) {
    return std::tie(r.name.step, r.name.layer, r.name.batch, r.name.kind, r.name.place, r.name.head,
                    r.name.branch);
  };
  std::sort(records.begin(), records.end(),
            [&](const HeadRecord& a, const HeadRecord& b) { return place(a) < place(b); });
  if (order.by == nullptr) return;
  const auto value = [&](const HeadRecord& r) {
    const auto number = number_of(r.metrics, *order.by);
    if (!number) return -std::numeric_limits<double>::infinity();
    return order.ascending ? -*number : *number;
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const HeadRecord& a, const HeadRecord& b) { return value(a) > value(b); });
}

}  // namespace attnscope
