#include "io/metrics/metric_group_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "io/files/json_types.h"

namespace attnscope {
namespace {

Hdf5Dataset write_values(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                         const MetricValues& values, const std::vector<int64_t>& shape) {
  return std::visit(
      [&](const auto& list) {
        using Value = typename std::decay_t<decltype(list)>::value_type;
        if constexpr (std::is_same_v<Value, std::string>) {
          return writer.write_strings(parent, name, list, shape);
        } else {
          return writer.write<Value>(parent, name, std::span(list), shape);
        }
      },
      values);
}

}  // namespace

MetricGroupWriter::MetricGroupWriter(const Hdf5Writer& writer, hid_t parent,
                                     const std::string& name, const MetricGroup& group,
                                     const std::vector<MetricRun>* runs)
    : writer_(writer), group_(group), runs_(runs), top_(writer.create_group(parent, name)) {}

void MetricGroupWriter::write() {
  if (runs_ != nullptr) {
    std::vector<int64_t> places(runs_->size());
    std::iota(places.begin(), places.end(), 0);
    scales_["run"] = write_scale(id(), "run", places, "place of the run in /runs");
  }
  scales_["batch"] = write_scale(id(), "batch", group_.batch, "batch item");
  scales_["head"] = write_scale(id(), "head", group_.heads, "head");
  if (runs_ != nullptr) {
    std::vector<std::string> names;
    for (const MetricRun& run : *runs_) names.push_back(run.name);
    const auto count = std::ssize(names);
    attach(writer_.write_strings(id(), "run_name", names, {&count, 1}), {"run"}, "");
  }
  for (const MetricVariable& variable : group_.variables) write_variable(variable);
}

Hdf5Dataset MetricGroupWriter::write_scale(hid_t parent, const std::string& name,
                                           const std::vector<int64_t>& values,
                                           std::string_view long_name) const {
  const auto extent = std::ssize(values);
  const std::vector<int32_t> indices(values.begin(), values.end());
  Hdf5Dataset scale = writer_.write<int32_t>(parent, name, std::span(indices), {&extent, 1});
  writer_.make_scale(scale, name, extent);
  writer_.attribute(scale.id(), "long_name", long_name);
  return scale;
}

void MetricGroupWriter::attach(const Hdf5Dataset& dataset, const std::vector<std::string>& axes,
                               const std::string& level) {
  std::vector<const Hdf5Dataset*> scales;
  for (const std::string& axis : axes) {
    const auto own = scales_.find(level + axis);
    scales.push_back(&(own != scales_.end() ? own : scales_.find(axis))->second);
  }
  writer_.attach_scales(dataset, scales);
}

/// Where the values of an axis stand, that is not run, batch or head.
std::vector<int64_t> MetricGroupWriter::places(const std::string& axis, int64_t extent,
                                               int64_t block) const {
  std::vector<int64_t> values(static_cast<size_t>(extent));
  std::iota(values.begin(), values.end(), 0);
  int64_t shift = 0;
  if (axis == "diagonal") shift = group_.call.num_queries - 1;
  if (axis.rfind("offset_", 0) == 0) shift = extent / 2;
  for (int64_t& value : values) value = value * block - shift;
  return values;
}

void MetricGroupWriter::make_axis(hid_t parent, const MetricVariable& variable, size_t i,
                                  const std::string& level, int64_t block) {
  const std::string& axis = variable.axes[i];
  const std::string key = level + axis;
  if (scales_.count(key) != 0) return;
  scales_[key] =
      write_scale(parent, axis, places(axis, variable.shape[i], block),
                  axis == "sink_rank" ? "place among the largest columns" : std::string_view(axis));
  const auto labels = variable.labels.find(axis);
  if (labels == variable.labels.end()) return;
  writer_.attribute(
      scales_[key].id(), "labels",
      OrderedJson(labels->second).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  if (axis == "from_segment" || axis == "to_segment") {
    writer_.attribute(scales_[key].id(), "segment_names",
                      fmt::format("{}", fmt::join(labels->second, " ")));
  }
}

void MetricGroupWriter::write_variable(const MetricVariable& variable) {
  const size_t slash = variable.name.find('/');
  const bool nested = slash != std::string::npos;
  const std::string level = nested ? variable.name.substr(0, slash + 1) : "";
  const std::string name = nested ? variable.name.substr(slash + 1) : variable.name;
  if (nested && levels_.count(level) == 0) {
    levels_.emplace(level, writer_.create_group(id(), variable.name.substr(0, slash)));
  }
  const hid_t parent = nested ? levels_.at(level).id() : id();
  const int64_t block = nested && level.rfind("level_", 0) == 0 ? std::stoll(level.substr(6)) : 1;
  std::vector<std::string> axes;
  std::vector<int64_t> shape;
  if (runs_ != nullptr) {
    axes = {"run"};
    shape = {std::ssize(*runs_)};
  }
  if (variable.of_heads) {
    axes.insert(axes.end(), {"batch", "head"});
    shape.insert(shape.end(), {std::ssize(group_.batch), std::ssize(group_.heads)});
  }
  for (size_t i = 0; i < variable.axes.size(); ++i) {
    make_axis(parent, variable, i, level, block);
    axes.push_back(variable.axes[i]);
    shape.push_back(variable.shape[i]);
  }
  const Hdf5Dataset dataset = write_values(writer_, parent, name, variable.values, shape);
  writer_.attribute(dataset.id(), "long_name", variable.long_name);
  writer_.attribute(dataset.id(), "axes", fmt::format("{}", fmt::join(axes, " ")));
  if (nested) writer_.attribute(dataset.id(), "block", block);
  attach(dataset, axes, level);
}

}  // namespace attnscope
