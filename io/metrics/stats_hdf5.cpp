#include "io/metrics/stats_hdf5.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/describe_group.h"
#include "io/export/format/export_layout.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/files/json_types.h"
#include "io/metrics/head_variables.h"
#include "io/metrics/metric_group_writer.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

/// The records of a group's heads, in the order of its datasets.
std::vector<const HeadRecord*> records_of(const ExportGroup& group,
                                          const std::map<HeadName, const HeadRecord*>& all) {
  std::vector<const HeadRecord*> records;
  HeadName name = describe_call(group, "").name;
  for (const int64_t item : group.batch) {
    for (const int64_t head : group.heads) {
      name.batch = item;
      name.head = head;
      records.push_back(all.at(name));
    }
  }
  return records;
}

/// All that is known of the heads, as JSON: a part of stats has to give it back.
void write_records(const Hdf5Writer& writer, std::span<const HeadRecord> records) {
  std::vector<std::string> texts;
  for (const HeadRecord& record : records) {
    texts.push_back(head_json(record).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }
  const auto count = std::ssize(texts);
  writer.write_strings(writer.root(), "part_records", texts, {&count, 1});
}

/// Throws Error(file) unless all records have arrays of the same kinds and shapes.
void expect_like_arrays(HeadRecords records, const std::filesystem::path& path) {
  const auto alike = [](const HeadArrayValues& a, const HeadArrayValues& b) {
    return a.which == b.which && a.shape == b.shape;
  };
  const std::vector<HeadArrayValues>& first = records.front()->arrays;
  for (const HeadRecord* record : records) {
    if (std::equal(first.begin(), first.end(), record->arrays.begin(), record->arrays.end(),
                   alike)) {
      continue;
    }
    throw file_error(path.string(), "", "heads of one call have unlike arrays");
  }
}

}  // namespace

void write_stats_hdf5(const ExportSpec& spec, std::span<const HeadRecord> records,
                      const std::filesystem::path& path) {
  write_stats_hdf5(spec, make_export_layout(spec), records, path);
}

void write_stats_hdf5(const ExportSpec& spec, const ExportLayout& layout,
                      std::span<const HeadRecord> records, const std::filesystem::path& path) {
  std::map<HeadName, const HeadRecord*> by_name;
  for (const HeadRecord& record : records) by_name[record.name] = &record;
  const Hdf5Session session;
  ExportManifest stored;
  Hdf5Writer writer(path);
  {
    write_root_attributes(writer, spec);
    create_export_marks(writer, "1 when every head is there", stored);
    write_call_index(writer, layout.groups);
    const Hdf5Group calls = writer.create_group(writer.root(), "calls");
    for (const ExportGroup& group : layout.groups) {
      const std::vector<const HeadRecord*> chosen = records_of(group, by_name);
      expect_like_arrays(chosen, path);
      MetricGroup numbers{describe_call(group, ""), group.batch, group.heads, {}};
      add_head_variables(numbers, chosen);
      MetricGroupWriter group_writer(writer, calls.id(), group.name, numbers, nullptr);
      write_group_attributes(writer, group_writer.id(), spec, group);
      write_part_call(writer, group_writer.id(), spec, group);
      group_writer.write();
    }
    if (spec.share) write_records(writer, records);
  }
  writer.close();
  seal_export(stored, PosixFile(path, PosixFile::Mode::existing));
}

}  // namespace attnscope
