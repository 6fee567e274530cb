#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/stats_hdf5.h"
#include "io/results/head_json.h"
#include "io/results/head_tables.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/head_records.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kGroup = "/calls/step0010_layer003_cond_joint/";

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

}  // namespace

TEST_CASE("a head's record is the same when it was read back from its JSON") {
  for (const bool sampled : {false, true}) {
    const HeadRecord record = sample_record(1, sampled);
    const OrderedJson json = head_json(record);
    CHECK(json["entropy"].is_number_float());
    CHECK(json["band"].is_number_integer());
    CHECK(json.contains("entropy_stderr") == sampled);
    CHECK_FALSE(json.contains("sink_mass_stderr"));
    CHECK(json["class_scores"]["local"].is_null());
    CHECK(json["frame_frame"][1][0].is_null());
    const auto again = parse_head_json(OrderedJson::parse(json.dump()));
    REQUIRE(again);
    CHECK(again->name == record.name);
    for (const HeadField& field : head_fields()) {
      INFO(field.name);
      CHECK(number_of(again->metrics, field) == number_of(record.metrics, field));
      CHECK(standard_error_of(again->metrics, field) == standard_error_of(record.metrics, field));
    }
    CHECK(again->arrays.size() == 2);
    CHECK(again->arrays[1].shape == std::vector<int64_t>{2, 3});
    CHECK(head_json(*again).dump() == json.dump());
  }
}

TEST_CASE("numbers that a head does not have are null, and stay so") {
  HeadRecord record = sample_record(0, false);
  record.metrics.local_mass = {};
  record.metrics.band.reset();
  record.metrics.sinks.clear();
  const OrderedJson json = head_json(record);
  CHECK(json["local_mass"].is_null());
  CHECK(json["band"].is_null());
  CHECK(json["sinks"].is_array());
  const auto again = parse_head_json(json);
  REQUIRE(again);
  CHECK_FALSE(again->metrics.local_mass.value);
  CHECK_FALSE(again->metrics.band);
  CHECK(head_json(*again).dump() == json.dump());
}

TEST_CASE("what is no record of a head is not taken for one") {
  const OrderedJson whole = head_json(sample_record(0, true));
  REQUIRE(parse_head_json(whole));
  CHECK_FALSE(parse_head_json(OrderedJson::parse("{", nullptr, false)));
  CHECK_FALSE(parse_head_json(OrderedJson::array()));
  for (const auto& [name, value] : whole.items()) {
    INFO(name);
    OrderedJson other = whole;
    other[name] = OrderedJson{{"no", "such"}};
    CHECK_FALSE(parse_head_json(other));
    // Files of older versions have block and slot only where they are known.
    const bool optional =
        name.ends_with("_stderr") || parse_head_array(name) || name == "block" || name == "slot";
    other.erase(name);
    CHECK(parse_head_json(other).has_value() == optional);
  }
  OrderedJson ragged = whole;
  ragged["frame_frame"][1].push_back(0.5);
  CHECK_FALSE(parse_head_json(ragged));
  OrderedJson classless = whole;
  classless["class"] = "sinks";
  CHECK_FALSE(parse_head_json(classless));
}

TEST_CASE("a standard error that only some heads have is a column all the same") {
  const TemporaryFolder folder;
  std::vector<HeadRecord> records{sample_record(0, false), sample_record(1, true)};
  const std::vector calls{make_call(joint_facts())};
  ExportSpec spec = make_spec(calls, ExportProduct::stats, Encoding::f32);
  for (int turn = 0; turn < 2; ++turn) {
    const std::string csv = folder / ("s" + std::to_string(turn) + ".csv");
    write_stats_table({}, records, ".csv", csv);
    std::ifstream file(csv, std::ios::binary);
    std::string heading, line;
    std::getline(file, heading);
    const std::vector<std::string> names = fields_of(heading);
    const auto column = std::find(names.begin(), names.end(), "entropy_stderr") - names.begin();
    REQUIRE(column < static_cast<std::ptrdiff_t>(names.size()));
    CHECK(names[static_cast<size_t>(column) - 1] == "entropy");
    CHECK(std::count(names.begin(), names.end(), "max_weight_peak_stderr") == 0);
    for (const HeadRecord& record : records) {
      std::getline(file, line);
      const std::vector<std::string> fields = fields_of(line);
      REQUIRE(fields.size() == names.size());
      const auto& error = record.metrics.entropy.standard_error;
      CHECK(fields[static_cast<size_t>(column)] == (error ? OrderedJson(*error).dump() : ""));
      CHECK(fields.back() == "250\r");
    }
    const std::string out = folder / ("s" + std::to_string(turn) + ".h5");
    write_stats_hdf5(spec, records, out);
    const auto errors = read_dataset(out, kGroup + "entropy_stderr");
    CHECK(errors.shape == std::vector<int64_t>{1, 2});
    CHECK(std::isnan(errors.values[0]));
    CHECK(errors.values[1] == sample_record(1, true).metrics.entropy.standard_error);
    std::reverse(records.begin(), records.end());
  }
}

TEST_CASE("an HDF5 file of numbers holds every field, the sinks and the arrays") {
  const TemporaryFolder folder;
  const std::vector<HeadRecord> records{sample_record(1, true), sample_record(0, true)};
  const std::vector calls{make_call(joint_facts())};
  const std::string out = folder / "s.h5";
  write_stats_hdf5(make_spec(calls, ExportProduct::stats, Encoding::f32), records, out);
  for (const HeadField& field : head_fields()) {
    INFO(field.name);
    const auto numbers = read_dataset(out, kGroup + std::string(field.name));
    REQUIRE(numbers.shape == std::vector<int64_t>{1, 2});
    // In the order of the heads, whatever that of the records.
    CHECK(numbers.values[0] == number_of(records[1].metrics, field));
    CHECK(numbers.values[1] == number_of(records[0].metrics, field));
    CHECK(read_text_attribute(out, "long_name", kGroup + std::string(field.name)) ==
          field.long_name);
  }
  CHECK(read_text_attribute(out, "long_name", kGroup + "entropy_stderr") ==
        "standard error of entropy");
  const auto keys = read_dataset(out, kGroup + "sink_keys");
  CHECK(keys.shape == std::vector<int64_t>{1, 2, 5});
  CHECK(std::vector<double>(keys.values.begin(), keys.values.begin() + 5) ==
        std::vector<double>{250, 4, 9, -1, -1});
  CHECK(read_dataset(out, kGroup + "frame_frame").shape == std::vector<int64_t>{1, 2, 2, 3});
  CHECK(read_text_attribute(out, "axes", kGroup + "entropy") == "batch head");
  CHECK(read_text_attribute(out, "axes", kGroup + "sink_keys") == "batch head sink_rank");
  const RunTable table = read_stats_file(out, MetricPart::everything);
  CHECK(table.runs.empty());
  REQUIRE(table.groups.size() == 1);
  REQUIRE(table.groups[0].find("frame_frame") != nullptr);
  CHECK(table.groups[0].find("frame_frame")->shape == std::vector<int64_t>{2, 3});
  CHECK(std::get<std::vector<double>>(table.groups[0].find("frame_frame")->values).size() == 12);
  const MetricGroup numbers = read_stats_file(out, MetricPart::numbers).groups[0];
  CHECK(std::get<std::vector<double>>(numbers.find("entropy")->values).size() == 2);
  CHECK(std::get<std::vector<double>>(numbers.find("frame_frame")->values).empty());
  CHECK(read_dataset(out, kGroup + "max_key_rows").values ==
        std::vector<double>{5, -1, 699, 5, -1, 699});
  std::vector<HeadRecord> unlike = records;
  unlike[0].arrays.pop_back();
  CHECK_THROWS_AS(write_stats_hdf5(make_spec(calls, ExportProduct::stats, Encoding::f32), unlike,
                                   folder / "t.h5"),
                  Error);
}
