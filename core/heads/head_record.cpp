#include "core/heads/head_record.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace attnscope {

HeadOrder HeadOrder::parse(std::string_view sort) {
  std::vector<std::string> names;
  for (const HeadField& field : head_fields()) names.emplace_back(field.name);
  const NumberOrder order = NumberOrder::parse(sort, names);
  return {order.name.empty() ? nullptr : find_head_field(order.name), order};
}

ClassTable class_table(std::span<const HeadRecord> records) {
  std::vector<NamedClass> heads;
  for (const HeadRecord& record : records) {
    heads.push_back({record.name, std::string(head_class_name(record.metrics.head_class))});
  }
  return class_table(std::move(heads));
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
