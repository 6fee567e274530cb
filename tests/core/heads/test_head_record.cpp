#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/heads/head_record.h"
#include "tests/support/catch.h"
#include "tests/support/head_records.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("every number of a head has a name of its own") {
  std::set<std::string_view> names;
  for (const HeadField& field : head_fields()) {
    CHECK(names.insert(field.name).second);
    CHECK(find_head_field(field.name) == &field);
    CHECK_FALSE(field.long_name.empty());
    CHECK(number_of(sample_record(0, false).metrics, field).has_value());
    // Only an Estimate can be a mean over rows.
    if (field.mean_of) CHECK(std::holds_alternative<Estimate HeadMetrics::*>(field.member));
  }
  CHECK(find_head_field("no_such") == nullptr);
  const auto metrics = metric_names();
  CHECK(metrics.size() + 3 == head_fields().size());
  for (const char* count : {"band", "rows", "masked_rows"}) {
    CHECK(std::count(metrics.begin(), metrics.end(), count) == 0);
  }
  for (const HeadClass which :
       {HeadClass::sink, HeadClass::text, HeadClass::temporal, HeadClass::spatial, HeadClass::local,
        HeadClass::global, HeadClass::undefined}) {
    CHECK(parse_head_class(head_class_name(which)) == which);
  }
  for (size_t i = 0; i < head_arrays().size(); ++i) {
    CHECK(parse_head_array(head_arrays()[i].name) == static_cast<HeadArray>(i));
  }
}

TEST_CASE("records are sorted by their heads, or by a number") {
  std::vector<HeadRecord> records;
  for (const char* branch : {"uncond", "cond"}) {
    for (int64_t head = 19; head >= 0; --head) {
      records.push_back(sample_record(head, false));
      records.back().name.branch = branch;
      if (head == 7) records.back().metrics.entropy = {};
    }
  }
  sort_records(records);
  for (size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].name.head == static_cast<int64_t>(i / 2));
    CHECK(records[i].name.branch == (i % 2 == 0 ? "cond" : "uncond"));
  }
  sort_records(records, HeadOrder::parse("entropy"));
  std::vector<int64_t> heads;
  for (const HeadRecord& record : records) heads.push_back(record.name.head);
  CHECK(heads.front() == 19);
  CHECK(std::vector<int64_t>(heads.end() - 4, heads.end()) == std::vector<int64_t>{0, 0, 7, 7});
  CHECK(records[0].name.branch == "cond");
}
