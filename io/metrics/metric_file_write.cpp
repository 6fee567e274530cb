#include "io/metrics/metric_file.h"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "io/export/format/export_layout.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/files/checksum.h"
#include "io/files/json_types.h"
#include "io/metrics/metric_group_writer.h"

namespace attnscope {
namespace {

std::string dumped(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// `/` would nest groups; control characters and white space at the end are no netCDF names.
std::string plain_part(const std::string& text) {
  std::string part = text;
  for (char& c : part) {
    if (c == '/' || static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) c = '_';
  }
  return part;
}

std::string call_name(const HeadName& name, bool with_place) {
  std::string text = fmt::format("step{:04}_layer{}_{}_{}", name.step,
                                 name.layer == kNoLayer ? "none" : fmt::format("{:03}", name.layer),
                                 plain_part(name.branch), plain_part(name.kind));
  if (!with_place) return text;
  if (name.place.has_chunk()) text += fmt::format("_chunk{:03}", name.place.chunk);
  const CallForward& forward = name.place.forward;
  if (forward.is_stated()) text += fmt::format("_forward{:04}", forward.forward);
  if (forward.call > 0) text += fmt::format("_call{:03}", forward.call);
  for (const std::string& part : {name.place.block, name.place.slot}) {
    if (!part.empty()) text += "_" + plain_part(part);
  }
  return text;
}

/// The groups by their calls, named as exports name theirs: chunk, forward, block and slot where
/// they tell calls apart.
std::vector<ExportGroup> groups_of(const std::vector<MetricGroup>& all) {
  std::map<std::string, int> alike;
  for (const MetricGroup& group : all) ++alike[call_name(group.call.name, false)];
  std::vector<ExportGroup> groups;
  std::set<std::string> taken;
  for (const MetricGroup& group : all) {
    const HeadName& name = group.call.name;
    const bool with_place = alike[call_name(name, false)] > 1 || name.layer == kNoLayer;
    const std::string text = call_name(name, with_place);
    ExportGroup& made = groups.emplace_back();
    made.recorded_call = std::make_shared<const CallDescription>(group.call);
    made.name = text;
    for (int n = 2; !taken.insert(made.name).second; ++n) made.name = fmt::format("{}_{}", text, n);
  }
  return groups;
}

/// A list of strings over the dimension `run` of /runs.
class RunsWriter {
 public:
  RunsWriter(const Hdf5Writer& writer, const std::vector<MetricRun>& runs)
      : writer_(writer), runs_(runs), group_(writer.create_group(writer.root(), "runs")) {}

  void write() {
    std::vector<int32_t> places(runs_.size());
    std::iota(places.begin(), places.end(), 0);
    const auto count = std::ssize(places);
    scale_ =
        writer_.write<int32_t>(group_.id(), "run", std::span<const int32_t>(places), {&count, 1});
    writer_.make_scale(scale_, "run", count);
    texts("name", [](const MetricRun& run) { return run.name; });
    texts("prompt", [](const MetricRun& run) { return run.prompt; });
    texts("id", [](const MetricRun& run) { return run.id; });
    numbers<double>("seed", "NaN where it is not known", [](const MetricRun& run) {
      return run.seed ? static_cast<double>(*run.seed) : std::numeric_limits<double>::quiet_NaN();
    });
    numbers<uint8_t>("complete", "1 where the model's run came to its end",
                     [](const MetricRun& run) { return static_cast<uint8_t>(run.complete); });
    numbers<double>("seconds", "that measuring took",
                    [](const MetricRun& run) { return run.seconds; });
    texts("facts", [](const MetricRun& run) { return dumped(run.json()); });
  }

 private:
  template <typename Of>
  void texts(const std::string& name, Of of) {
    std::vector<std::string> values;
    for (const MetricRun& run : runs_) values.push_back(of(run));
    const auto count = std::ssize(values);
    attach(writer_.write_strings(group_.id(), name, values, {&count, 1}));
  }
  template <typename Value, typename Of>
  void numbers(const std::string& name, std::string_view long_name, Of of) {
    std::vector<Value> values;
    for (const MetricRun& run : runs_) values.push_back(of(run));
    const auto count = std::ssize(values);
    const Hdf5Dataset dataset =
        writer_.write<Value>(group_.id(), name, std::span<const Value>(values), {&count, 1});
    writer_.attribute(dataset.id(), "long_name", long_name);
    attach(dataset);
  }
  void attach(const Hdf5Dataset& dataset) {
    const Hdf5Dataset* const scales[] = {&scale_};
    writer_.attach_scales(dataset, scales);
  }

  const Hdf5Writer& writer_;
  const std::vector<MetricRun>& runs_;
  const Hdf5Group group_;
  Hdf5Dataset scale_;
};

/// The hash of the runs, which stands in place of a capture's.
std::string runs_hash(const std::vector<MetricRun>& runs) {
  std::string ids;
  for (const MetricRun& run : runs) ids += run.id + "\n";
  return fmt::format("{:016x}", checksum64(std::as_bytes(std::span(ids))));
}

}  // namespace

void write_metric_file(const RunTable& table, const std::filesystem::path& path) {
  ExportSpec spec;
  spec.product = ExportProduct::stats;
  spec.encoding = Encoding::f32;
  spec.capture_name = text_option(table.options, "model");
  spec.capture_hash = runs_hash(table.runs);
  spec.options_json = dumped(table.options);
  spec.backend = text_option(table.options, "backend");
  const Hdf5Session session;
  ExportManifest stored;
  Hdf5Writer writer(path);
  {
    write_root_attributes(writer, spec);
    create_export_marks(writer, "1 when every head is there", stored);
    RunsWriter(writer, table.runs).write();
    const std::vector<ExportGroup> groups = groups_of(table.groups);
    write_call_index(writer, groups);
    const Hdf5Group calls = writer.create_group(writer.root(), "calls");
    for (size_t g = 0; g < groups.size(); ++g) {
      const MetricGroup& group = table.groups[g];
      MetricGroupWriter group_writer(writer, calls.id(), groups[g].name, group, &table.runs);
      write_group_attributes(writer, group_writer.id(), spec, groups[g]);
      writer.attribute(group_writer.id(), "part_call", dumped(call_description_json(group.call)));
      group_writer.write();
    }
  }
  writer.close();
  seal_export(stored, PosixFile(path, PosixFile::Mode::existing));
}

}  // namespace attnscope
