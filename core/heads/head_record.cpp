#include "core/heads/head_record.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace attnscope {

void sort_records(std::vector<HeadRecord>& records, const HeadField* by) {
  const auto place = [](const HeadRecord& r) {
    return std::tie(r.name.step, r.name.layer, r.name.batch, r.name.kind, r.name.place, r.name.head,
                    r.name.branch);
  };
  std::sort(records.begin(), records.end(),
            [&](const HeadRecord& a, const HeadRecord& b) { return place(a) < place(b); });
  if (by == nullptr) return;
  const auto value = [&](const HeadRecord& r) {
    return number_of(r.metrics, *by).value_or(-std::numeric_limits<double>::infinity());
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const HeadRecord& a, const HeadRecord& b) { return value(a) > value(b); });
}

}  // namespace attnscope
