#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "io/export/format/export_layout.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/export_attributes.h"
#include "io/results/stats_files.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void flatten(const Json& value, std::vector<double>& values, std::vector<int64_t>& shape,
             size_t depth) {
  if (!value.is_array()) {
    values.push_back(number_of(value));
    return;
  }
  shape[depth] = static_cast<int64_t>(value.size());
  for (const Json& item : value) flatten(item, values, shape, depth + 1);
}

/// One group: the heads of a call and branch.
class GroupWriter {
 public:
  GroupWriter(const Hdf5Writer& writer, hid_t parent, const ExportGroup& layout,
              std::vector<const Json*> records)
      : writer_(writer),
        group_(writer.create_group(parent, layout.name)),
        layout_(layout),
        records_(std::move(records)) {}

  hid_t id() const { return group_.id(); }

  void write() {
    scales_["batch"] = write_scale("batch", layout_.batch, "batch item");
    scales_["head"] = write_scale("head", layout_.heads, "head");
    std::set<std::string> arrays;
    for (const StatsArray& array : stats_arrays()) {
      arrays.insert(array.name);
      if (records_.front()->contains(array.name)) write_array(array);
    }
    for (const auto& [name, value] : records_.front()->items()) {
      if (kIdentity.count(name) != 0 || arrays.count(name) != 0) continue;
      if (name == "class") {
        write_classes();
      } else if (name == "sinks") {
        write_sinks();
      } else if (!value.is_structured()) {
        write_numbers(name);
      }
    }
  }

 private:
  inline static const std::set<std::string> kIdentity{"step", "layer", "branch",
                                                      "kind", "batch", "head"};

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

  void write_numbers(const std::string& name) {
    std::vector<double> values;
    for (const Json* record : records_) values.push_back(number_of(record->at(name)));
    const Hdf5Dataset dataset =
        writer_.write<double>(group_.id(), name, std::span(values), shape_with({}));
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"]};
    writer_.attach_scales(dataset, scales);
  }

  void write_classes() {
    std::vector<std::string> values;
    for (const Json* record : records_) values.push_back(record->at("class").get<std::string>());
    const Hdf5Dataset dataset = writer_.write_strings(group_.id(), "class", values, shape_with({}));
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"]};
    writer_.attach_scales(dataset, scales);
  }

  /// sink_keys and sink_masses, (batch, head, rank); -1 and NaN where there are fewer keys.
  void write_sinks() {
    constexpr size_t kRanks = 5;
    std::vector<int32_t> keys;
    std::vector<double> masses;
    for (const Json* record : records_) {
      const Json& sinks = record->at("sinks");
      for (size_t i = 0; i < kRanks; ++i) {
        keys.push_back(i < sinks.size() ? sinks[i].at("key").get<int32_t>() : -1);
        masses.push_back(number_of(i < sinks.size() ? sinks[i].at("mass") : Json()));
      }
    }
    std::vector<int64_t> ranks(kRanks);
    std::iota(ranks.begin(), ranks.end(), 0);
    scales_["sink_rank"] = write_scale("sink_rank", ranks, "place among the largest columns");
    const std::vector<int64_t> shape = shape_with({static_cast<int64_t>(kRanks)});
    const Hdf5Dataset key_set =
        writer_.write<int32_t>(group_.id(), "sink_keys", std::span(keys), shape);
    const Hdf5Dataset mass_set =
        writer_.write<double>(group_.id(), "sink_masses", std::span(masses), shape);
    const Hdf5Dataset* const scales[] = {&scales_["batch"], &scales_["head"],
                                         &scales_["sink_rank"]};
    writer_.attach_scales(key_set, scales);
    writer_.attach_scales(mass_set, scales);
  }

  const Hdf5Dataset& scale_of(const std::string& axis, int64_t extent) {
    const auto found = scales_.find(axis);
    if (found != scales_.end()) return found->second;
    std::vector<int64_t> values(static_cast<size_t>(extent));
    std::iota(values.begin(), values.end(), 0);
    const AttentionProblem& problem = *layout_.call->problem;
    int64_t shift = 0;
    if (axis == "diagonal") shift = problem.num_queries() - 1;
    if (axis.rfind("offset_", 0) == 0) shift = extent / 2;
    for (int64_t& value : values) value -= shift;
    return scales_[axis] = write_scale(axis, values, axis);
  }

  void write_array(const StatsArray& array) {
    std::vector<double> values;
    std::vector<int64_t> inner(array.axes.size());
    for (const Json* record : records_) flatten(record->at(array.name), values, inner, 0);
    const std::vector<int64_t> shape = shape_with(inner);
    const Hdf5Dataset dataset =
        writer_.write<double>(group_.id(), array.name, std::span(values), shape);
    writer_.attribute(dataset.id(), "long_name", array.long_name);
    std::vector<const Hdf5Dataset*> scales{&scales_["batch"], &scales_["head"]};
    for (size_t i = 0; i < array.axes.size(); ++i) {
      scales.push_back(&scale_of(array.axes[i], inner[i]));
    }
    writer_.attach_scales(dataset, scales);
  }

  const Hdf5Writer& writer_;
  const Hdf5Group group_;
  const ExportGroup& layout_;
  const std::vector<const Json*> records_;
  std::map<std::string, Hdf5Dataset> scales_;
};

}  // namespace

void write_stats_hdf5(const ExportSpec& spec, const StatsRecords& records,
                      const std::filesystem::path& path) {
  const ExportLayout layout = make_export_layout(spec);
  const Hdf5Session session;
  ExportManifest stored;
  Hdf5Writer writer(path);
  {
    write_root_attributes(writer, spec);
    create_export_marks(writer, "1 when every head is there", stored);
    const Hdf5Group calls = writer.create_group(writer.root(), "calls");
    for (const ExportGroup& group : layout.groups) {
      std::vector<const Json*> chosen;
      for (int64_t item : group.batch) {
        for (int64_t head : group.heads) {
          for (const Json& record : records) {
            const CallId& id = group.call->id;
            if (record.at("step") == id.step && record.at("layer") == id.layer &&
                record.at("kind") == kind_name(id.kind) && record.at("branch") == group.branch &&
                record.at("batch") == item && record.at("head") == head) {
              chosen.push_back(&record);
            }
          }
        }
      }
      GroupWriter group_writer(writer, calls.id(), group, std::move(chosen));
      write_group_attributes(writer, group_writer.id(), spec, group);
      group_writer.write();
    }
  }
  writer.close();
  seal_export(stored, PosixFile(path, PosixFile::Mode::existing));
}

}  // namespace attnscope
