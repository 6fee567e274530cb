#include "python/native/bind.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/patterns/edit_sweep.h"
#include "io/pictures/colormap.h"
#include "python/native/call_numbers.h"
#include "python/native/opened_capture.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Words = std::map<std::string, std::string>;

nb::object or_none(double value) { return nb::cast(value); }
nb::object or_none(int64_t count) { return nb::cast(count); }
template <typename T>
nb::object or_none(const std::optional<T>& value) {
  return value ? nb::cast(*value) : nb::none();
}

nb::dict scores_of(const ClassScores& scores) {
  nb::dict result;
  for (const ClassScoreField& field : class_score_fields()) {
    result[std::string(field.name).c_str()] = or_none(scores.*field.member);
  }
  return result;
}

nb::list sinks_of(const std::vector<Sink>& sinks) {
  nb::list result;
  for (const Sink& sink : sinks) {
    nb::dict one;
    one["key"] = sink.key;
    one["mass"] = sink.mass;
    one["place"] = sink.place
                       ? nb::object(nb::make_tuple(sink.place->t, sink.place->y, sink.place->x))
                       : nb::none();
    one["text_index"] = or_none(sink.text_index);
    one["token"] = or_none(sink.token);
    result.append(one);
  }
  return result;
}

nb::dict record_dict(const HeadRecord& record) {
  nb::dict head;
  const Unrecorded& unrecorded = record.name.place.unrecorded;
  head["step"] = unrecorded.step ? nb::none() : nb::cast(record.name.step);
  head["layer"] = unrecorded.layer ? nb::none() : nb::cast(record.name.layer);
  head["branch"] = unrecorded.branch ? nb::none() : nb::cast(record.name.branch);
  head["kind"] = record.name.kind;
  head["batch"] = record.name.batch;
  head["head"] = record.name.head;
  head["block"] = record.name.place.block;
  head["slot"] = record.name.place.slot;
  head["chunk"] = record.name.place.chunk;
  head["forward"] = record.name.place.forward.forward;
  head["of_step"] = record.name.place.forward.of_step;
  head["class"] = std::string(head_class_name(record.metrics.head_class));
  for (const HeadField& field : head_fields()) {
    head[std::string(field.name).c_str()] = or_none(number_of(record.metrics, field));
    if (std::holds_alternative<Estimate HeadMetrics::*>(field.member)) {
      head[field.error_name().c_str()] = or_none(standard_error_of(record.metrics, field));
    }
  }
  head["sinks"] = sinks_of(record.metrics.sinks);
  head["class_scores"] = scores_of(record.metrics.class_scores);
  nb::dict arrays;
  for (const HeadArrayValues& array : record.arrays) {
    arrays[std::string(info_of(array.which).name).c_str()] =
        ResultArray<double>(array.shape, array.values, "an array of a head").to_numpy();
  }
  head["arrays"] = arrays;
  return head;
}

nb::list record_list(const std::vector<HeadRecord>& records) {
  nb::list list;
  for (const HeadRecord& record : records) list.append(record_dict(record));
  return list;
}

nb::list capture_stats(const OpenedCapture& capture, const Engine& engine, const Words& words,
                       const nb::object& progress) {
  const StatsOptions o = stats_options_of_words(words);
  std::vector<HeadRecord> records;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        records = measure_capture(*capture.capture, o, run);
      },
      progress);
  return record_list(records);
}

std::vector<HeadPlace> places_of(const std::vector<std::pair<int64_t, int64_t>>& heads) {
  std::vector<HeadPlace> places;
  for (const auto& [batch, head] : heads) places.push_back({batch, head});
  return places;
}

nb::list call_stats(const CallHandle& call, const Engine& engine,
                    const std::vector<std::pair<int64_t, int64_t>>& heads, const Words& words,
                    const nb::object& progress) {
  const StatsOptions o = stats_options_of_words(words);
  std::vector<HeadRecord> records;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        records = measure_call(call, places_of(heads), o, run);
      },
      progress);
  return record_list(records);
}

nb::dict quality_dict(const MaskQuality& quality, std::span<const MaskField> fields) {
  nb::dict result;
  for (const MaskField& field : fields) {
    std::visit(
        [&](auto member) { result[std::string(field.name).c_str()] = or_none(quality.*member); },
        field.member);
  }
  return result;
}

nb::list call_masks(const CallHandle& call, const Engine& engine, int64_t batch, int64_t head,
                    const std::vector<std::string>& masks, int64_t block, bool exact, bool lab,
                    const nb::object& progress) {
  std::vector<MaskQuality> qualities;
  std::vector<std::string> others;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        qualities = measure_masks_of(call, {batch, head}, {masks, block, exact, lab}, run, &others);
      },
      progress);
  for (const std::string& line : others) {
    if (PyErr_WarnEx(PyExc_UserWarning, line.c_str(), 1) < 0) throw nb::python_error();
  }
  nb::list result;
  for (const MaskQuality& quality : qualities) {
    nb::dict numbers = quality_dict(quality, lab ? lab_fields() : mask_fields());
    if (lab) {
      nb::dict segments;
      for (const auto& [name, error] : quality.segment_errors) segments[name.c_str()] = error;
      numbers["output_error_by_segment"] = segments;
    }
    result.append(numbers);
  }
  return result;
}

std::vector<std::string> swept(const std::string& text) { return swept_edits(text, "edit"); }

nb::bytes colours(const std::string& name) {
  const auto map = parse_colormap(name);
  if (!map) throw usage_error("colours " + one_line(name) + ": there is no such colour map");
  std::string table;
  for (int i = 0; i < 256; ++i) {
    const Rgb colour = colormap_at(*map, i / 255.0);
    for (const uint8_t channel : {colour.r, colour.g, colour.b})
      table += static_cast<char>(channel);
  }
  return nb::bytes(table.data(), table.size());
}

}  // namespace

void bind_numbers(nb::module_& module) {
  const auto progress = "progress"_a = nb::none();
  nb::borrow<nb::class_<CallHandle>>(module.attr("Call"))
      .def("stats", call_stats, "engine"_a, "heads"_a, "words"_a, progress, "A dict a head.")
      .def("masks", call_masks, "engine"_a, "batch"_a, "head"_a, "masks"_a, "block"_a, "exact"_a,
           "lab"_a, progress, "A dict a mask.");
  module.def("capture_stats", capture_stats, "capture"_a, "engine"_a, "words"_a, progress,
             "A dict a head that the words choose.");
  module.def("swept_edits", swept, "text"_a,
             "The edits that lists and ranges of values stand for.");
  module.def("colours", colours, "name"_a, "256 colours of a colour map, a byte a channel.");
  nb::list fields;
  for (const HeadField& field : head_fields()) {
    fields.append(nb::make_tuple(std::string(field.name), std::string(field.long_name),
                                 std::holds_alternative<Estimate HeadMetrics::*>(field.member),
                                 field.is_metric()));
  }
  module.attr("HEAD_FIELDS") = fields;
}

}  // namespace attnscope
