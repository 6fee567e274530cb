#include "python/native/bind.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/metrics/merge_metrics.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/metrics/run_spread.h"
#include "python/native/call_metrics.h"
#include "python/native/recorded_call.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Words = std::map<std::string, std::string>;

/// Heads of one call, measured and not written yet.
struct MeasuredGroups {
  std::vector<MetricGroup> groups;
};

OrderedJson json_of(const std::string& text) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  if (json.is_discarded()) throw usage_error("is no JSON: " + one_line(text));
  return json;
}

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

MetricRun run_of(const std::string& text) {
  try {
    return MetricRun::parse(json_of(text));
  } catch (const OrderedJson::exception&) {
    throw usage_error("is no run: " + one_line(text));
  }
}

MetricWords metric_words(bool stats, const Words& words, const std::vector<int64_t>& blocks,
                         const std::vector<std::string>& masks, int64_t mask_block,
                         bool mask_exact) {
  return {stats, stats_options_of_words(words), blocks, {masks, mask_block, mask_exact}};
}

MeasuredGroups measured_groups(const CallHandle& call, const Engine& engine,
                               const MetricWords& words, const nb::object& progress) {
  MeasuredGroups measured;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        measured.groups = measure_metrics(call, words, run);
      },
      progress);
  return measured;
}

/// The calls go by the number of their forward, since nobody can tell their branch.
void number(MeasuredGroups& measured, int64_t forward, int64_t of_step, bool has_step) {
  for (MetricGroup& group : measured.groups) {
    HeadName& name = group.call.name;
    name.place.forward = {forward, of_step, 0};
    name.branch = name.place.forward.branch();
    name.place.unrecorded.branch = false;
    name.place.unrecorded.step = !has_step;
    if (!has_step) name.step = 0;
  }
}

nb::object array_of(const MetricVariable& variable, std::vector<int64_t> shape) {
  shape.insert(shape.end(), variable.shape.begin(), variable.shape.end());
  return std::visit(
      [&](const auto& list) -> nb::object {
        using Value = typename std::decay_t<decltype(list)>::value_type;
        if constexpr (std::is_same_v<Value, std::string>) {
          return nb::cast(list);
        } else {
          return ResultArray<Value>(shape, list, "a metric").to_numpy();
        }
      },
      variable.values);
}

nb::dict group_dict(const MetricGroup& group, int64_t runs) {
  const HeadName& name = group.call.name;
  nb::dict result;
  const Unrecorded& unrecorded = name.place.unrecorded;
  result["step"] = unrecorded.step ? nb::none() : nb::cast(name.step);
  result["layer"] = unrecorded.layer ? nb::none() : nb::cast(name.layer);
  result["branch"] = unrecorded.branch ? nb::none() : nb::cast(name.branch);
  result["kind"] = name.kind;
  result["block"] = name.place.block;
  result["slot"] = name.place.slot;
  result["chunk"] = name.place.chunk;
  result["forward"] = name.place.forward.forward;
  result["of_step"] = name.place.forward.of_step;
  result["call"] = text_of(call_description_json(group.call));
  result["batch"] = group.batch;
  result["heads"] = group.heads;
  nb::dict variables;
  for (const MetricVariable& variable : group.variables) {
    std::vector<int64_t> shape{runs};
    if (variable.of_heads) {
      shape.insert(shape.end(), {std::ssize(group.batch), std::ssize(group.heads)});
    }
    nb::dict one;
    one["of_heads"] = variable.of_heads;
    one["axes"] = variable.axes;
    one["shape"] = shape;
    one["labels"] = variable.labels;
    one["long_name"] = variable.long_name;
    one["values"] = array_of(variable, shape);
    variables[variable.name.c_str()] = one;
  }
  result["variables"] = variables;
  return result;
}

/// A table, or the journal of one.
nb::dict read_table(const std::string& path) {
  RunTable table;
  {
    const nb::gil_scoped_release unlocked;
    table = is_metric_journal(path) ? read_metric_journal(path)
                                    : read_metric_file(path, MetricPart::everything);
  }
  nb::dict result;
  result["options"] = text_of(table.options);
  nb::list runs, groups;
  for (const MetricRun& run : table.runs) runs.append(text_of(run.json()));
  for (const MetricGroup& group : table.groups) {
    groups.append(group_dict(group, std::ssize(table.runs)));
  }
  result["runs"] = runs;
  result["groups"] = groups;
  return result;
}

void bind_journal(nb::module_& module) {
  using unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<MetricJournal>(module, "MetricJournal")
      .def(
          "__init__",
          [](MetricJournal* place, const std::string& out, const std::string& options, bool force) {
            new (place) MetricJournal(out, json_of(options), force);
          },
          "out"_a, "options"_a, "force"_a)
      .def_prop_ro("notes", &MetricJournal::notes)
      .def_prop_ro("names",
                   [](const MetricJournal& journal) {
                     std::vector<std::string> names;
                     for (const MetricRun& run : journal.runs()) names.push_back(run.name);
                     return names;
                   })
      .def(
          "unlike_name",
          [](const MetricJournal& journal, const std::string& name) {
            return unlike_name(name, journal.runs());
          },
          "name"_a, "The name, with a number behind it where a run has it.")
      .def(
          "begin",
          [](MetricJournal& journal, const std::string& run) { return journal.begin(run_of(run)); },
          "run"_a, unlocked(), "Begins a run; the name that it has.")
      .def(
          "append",
          [](MetricJournal& journal, const MeasuredGroups& measured) {
            for (const MetricGroup& group : measured.groups) journal.append(group);
          },
          "groups"_a, unlocked())
      .def(
          "finish",
          [](MetricJournal& journal, const std::string& run, const Engine& engine) {
            MemoryBudget budget(engine.memory());
            journal.finish(run_of(run), budget);
          },
          "run"_a, "engine"_a, unlocked(),
          "Ends the run, and puts what was measured into the table.");
}

}  // namespace

void bind_metrics(nb::module_& module) {
  const auto progress = "progress"_a = nb::none();
  module.def("recorded_call", recorded_call, "name"_a, "tensors"_a, "metadata"_a,
             "The call that a recorder would write to a file of this name.");
  nb::class_<MeasuredGroups>(module, "MeasuredGroups")
      .def("__len__", [](const MeasuredGroups& m) { return m.groups.size(); })
      .def("number", number, "forward"_a, "of_step"_a, "has_step"_a,
           "Calls whose branch was told wrongly go by the number of their forward.")
      .def_prop_ro("heads", [](const MeasuredGroups& m) {
        size_t heads = 0;
        for (const MetricGroup& group : m.groups) heads += group.batch.size() * group.heads.size();
        return heads;
      });
  module.def(
      "measure",
      [](const CallHandle& call, const Engine& engine, bool stats, const Words& words,
         const std::vector<int64_t>& blocks, const std::vector<std::string>& masks,
         int64_t mask_block, bool mask_exact, const nb::object& watch) {
        return measured_groups(
            call, engine, metric_words(stats, words, blocks, masks, mask_block, mask_exact), watch);
      },
      "call"_a, "engine"_a, "stats"_a, "words"_a, "blocks"_a, "masks"_a, "mask_block"_a,
      "mask_exact"_a, progress, "Numbers of all heads of a call.");
  module.def(
      "check_metrics", [](const Words& words) { stats_options_of_words(words); }, "words"_a,
      "Raises where options of stats cannot be meant.");
  bind_journal(module);
  module.def("student_t95", student_t95, "freedom"_a,
             "The t that 95 % of Student's distribution lie below in size.");
  module.def("read_metrics", read_table, "path"_a, "A table of metrics, or the journal of one.");
  module.def(
      "holds_metrics", [](const std::string& path) { return holds_metrics(path); }, "path"_a,
      nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace attnscope
