#include "io/results/stats_hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/describe_group.h"
#include "io/export/format/export_layout.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/export_attributes.h"
#include "io/files/json_types.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

using Records = std::vector<const HeadRecord*>;

/// One group: the heads of a call and branch.
class GroupWriter {
 public:
  GroupWriter(const Hdf5Writer& writer, hid_t parent, const ExportGroup& layout, Records records)
      : writer_(writer),
        group_(writer.create_group(parent, layout.name)),
        layout_(layout),
        records_(std::move(records)) {}

  hid_t id() const { return group_.id(); }

  void write() {
    scales_["batch"] = write_scale("batch", layout_.batch, "batch item");
    scales_["head"] = write_scale("head", layout_.heads, "head");
    const std::vector<HeadArrayValues>& arrays = records_.front()->arrays;
    std::vector<size_t> places(arrays.size());
    std::iota(places.begin(), places.end(), 0);
    // The file does not depend on the order that they were asked for in.
    std::sort(places.begin(), places.end(),
              [&](size_t a, size_t b) { return arrays[a].which < arrays[b].which; });
    for (const size_t place : places) write_array(place);
    write_classes();
    for (const HeadField& field : head_fields()) {
      write_numbers(std::string(field.name), std::string(field.long_name), field, number_of);
      const auto has_error = [&](const HeadRecord* record) {
        return standard_error_of(record->metrics, field).has_value();
      };
      if (std::any_of(records_.begin(), records_.end(), has_error)) {
        write_numbers(field.error_name(), fmt::format("standard error of {}", field.name), field,
                      standard_error_of);
      }
    }
    write_sinks();
    write_segment_mass();
  }

 private:
  Hdf5Dataset write_scale(const std::string& name, const std::vector<int64_t>& values,
                          std::string_view long_name) const {
    const auto extent = static_cast<int64_t>(values.size());
    const std::vector<int32_t> indices(values.begin(), values.end());
    Hdf5Dataset scale = writer_.write<int32_t>(group_.id(), name, std::span(indices), {&extent, 1});
    writer_.make_scale(scale, name, extent);
    writer_.attribute(scale.id(), "long_name", long_name);
    return scale;
  }

  /// (batch, head, …inner).
  std::vector<int64_t> shape_with(const std::vector<int64_t>& inner) const {
    std::vector<int64_t> shape(2 + inner.size());
    shape[0] = static_cast<int64_t>(layout_.batch.size());
    shape[1] = static_cast<int64_t>(layout_.heads.size());
    std::copy(inner.begin(), inner.end(), shape.begin() + 2);
    return shape;
  }

  using NumberOf = std::optional<double>(const HeadMetrics&, const HeadField&);
  void write_numbers(const std::string& name, const std::string& long_name, const HeadField& field,
                     NumberOf number) {
    std::vector<double> values;
    for (const HeadRecord* record : records_) {
      values.push_back(number(record->metrics, field).value_or(kUndefined));
    }
    const Hdf5Dataset dataset =
        writer_.write<double>(group_.id(), name, std::span(values), shape_with({}));
    writer_.attribute(dataset.id(), "long_name", long_name);
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"]};
    writer_.attach_scales(dataset, scales);
  }

  void write_classes() {
    std::vector<std::string> values;
    for (const HeadRecord* record : records_) {
      values.emplace_back(head_class_name(record->metrics.head_class));
    }
    const Hdf5Dataset dataset = writer_.write_strings(group_.id(), "class", values, shape_with({}));
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"]};
    writer_.attach_scales(dataset, scales);
  }

  /// sink_keys and sink_masses, (batch, head, rank); -1 and NaN where there are fewer keys.
  void write_sinks() {
    std::vector<int32_t> keys;
    std::vector<double> masses;
    for (const HeadRecord* record : records_) {
      const std::vector<Sink>& sinks = record->metrics.sinks;
      for (size_t i = 0; i < kMostSinks; ++i) {
        keys.push_back(i < sinks.size() ? static_cast<int32_t>(sinks[i].key) : -1);
        masses.push_back(i < sinks.size() ? sinks[i].mass : kUndefined);
      }
    }
    std::vector<int64_t> ranks(kMostSinks);
    std::iota(ranks.begin(), ranks.end(), 0);
    scales_["sink_rank"] = write_scale("sink_rank", ranks, "place among the largest columns");
    const std::vector<int64_t> shape = shape_with({static_cast<int64_t>(kMostSinks)});
    const Hdf5Dataset key_set =
        writer_.write<int32_t>(group_.id(), "sink_keys", std::span(keys), shape);
    const Hdf5Dataset mass_set =
        writer_.write<double>(group_.id(), "sink_masses", std::span(masses), shape);
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"],
                                         &scales_["sink_rank"]};
    writer_.attach_scales(key_set, scales);
    writer_.attach_scales(mass_set, scales);
  }

  /// (batch, head, from_segment, to_segment), where a token map was stated.
  void write_segment_mass() {
    const SegmentMasses& first = records_.front()->metrics.segment_mass;
    if (first.from.empty()) return;
    std::vector<double> values;
    for (const HeadRecord* record : records_) {
      for (const auto& mass : record->metrics.segment_mass.mass) {
        values.push_back(mass.value_or(kUndefined));
      }
    }
    const auto from = static_cast<int64_t>(first.from.size());
    const auto to = static_cast<int64_t>(first.to.size());
    const Hdf5Dataset& rows = scale_of("from_segment", from);
    const Hdf5Dataset& columns = scale_of("to_segment", to);
    writer_.attribute(rows.id(), "segment_names", fmt::format("{}", fmt::join(first.from, " ")));
    writer_.attribute(columns.id(), "segment_names", fmt::format("{}", fmt::join(first.to, " ")));
    const Hdf5Dataset dataset = writer_.write<double>(group_.id(), "segment_mass",
                                                      std::span(values), shape_with({from, to}));
    writer_.attribute(dataset.id(), "long_name",
                      "mean over the rows of a segment of the mass on a segment");
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"], &rows, &columns};
    writer_.attach_scales(dataset, scales);
  }

  const Hdf5Dataset& scale_of(const std::string& axis, int64_t extent) {
    const auto found = scales_.find(axis);
    if (found != scales_.end()) return found->second;
    std::vector<int64_t> values(static_cast<size_t>(extent));
    std::iota(values.begin(), values.end(), 0);
    int64_t shift = 0;
    if (axis == "diagonal") shift = describe_call(layout_, "").num_queries - 1;
    if (axis.rfind("offset_", 0) == 0) shift = extent / 2;
    for (int64_t& value : values) value -= shift;
    return scales_[axis] = write_scale(axis, values, axis);
  }

  /// The array at `place` of every record.
  void write_array(size_t place) {
    const HeadArrayValues& first = records_.front()->arrays[place];
    const HeadArrayInfo& info = info_of(first.which);
    std::vector<double> values;
    for (const HeadRecord* record : records_) {
      const std::vector<double>& more = record->arrays[place].values;
      values.insert(values.end(), more.begin(), more.end());
    }
    const Hdf5Dataset dataset = writer_.write<double>(group_.id(), std::string(info.name),
                                                      std::span(values), shape_with(first.shape));
    writer_.attribute(dataset.id(), "long_name", info.long_name);
    std::vector<const Hdf5Dataset*> scales{&scales_["batch"], &scales_["head"]};
    for (size_t i = 0; i < info.axes.size(); ++i) {
      scales.push_back(&scale_of(std::string(info.axes[i]), first.shape[i]));
    }
    writer_.attach_scales(dataset, scales);
  }

  const Hdf5Writer& writer_;
  const Hdf5Group group_;
  const ExportGroup& layout_;
  const Records records_;
  std::map<std::string, Hdf5Dataset> scales_;
};

/// The records of a group's heads, in the order of its datasets.
Records records_of(const ExportGroup& group, const std::map<HeadName, const HeadRecord*>& all) {
  Records records;
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
void expect_like_arrays(const Records& records, const std::filesystem::path& path) {
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
    const Hdf5Group calls = writer.create_group(writer.root(), "calls");
    for (const ExportGroup& group : layout.groups) {
      Records chosen = records_of(group, by_name);
      expect_like_arrays(chosen, path);
      GroupWriter group_writer(writer, calls.id(), group, std::move(chosen));
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
