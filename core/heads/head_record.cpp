#include "core/heads/head_record.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace attnscope {

HeadOrder HeadOrder::parse(std::string_view sort) {
  std::vector<std::string> names;
  for (const HeadField& field : head_fields()) names.emplace_back(field.name);
  const NumberOrder order = NumberOrder::parse(sort, names);
  return {order.name.empty() ? nullptr : find_head_field(order.name), order};
}

void sort_records(std::vector<HeadRecord>& records, const HeadOrder& order) {
  const auto place = [](const HeadRecord& r) {
    return std::tie(r.name.step, r.name.layer, r.name.batch, r.name.kind, r.name.place, r.name.head,
                    r.name.branch);
  };
  std::sort(records.begin(), records.end(),
            [&](const HeadRecord& a, const HeadRecord& b) { return place(a) < place(b); });
  if (order.by == nullptr) return;
  order.order.sort(records,
                   [&](const HeadRecord& record) { return number_of(record.metrics, *order.by); });
}

}  // namespace attnscope
