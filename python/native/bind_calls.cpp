#include "python/native/bind.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/capture/call/call_minus.h"
#include "python/native/array_call.h"
#include "python/native/call_maps.h"
#include "python/native/call_numbers.h"
#include "python/native/opened_capture.h"
#include "python/native/result_array.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

nb::object grid_of(const TokenGrid& tokens) {
  if (!tokens.has_grid()) return nb::none();
  return nb::make_tuple(tokens.frames(), tokens.height(), tokens.width());
}

template <typename T>
nb::object or_none(bool there, const T& value) {
  return there ? nb::cast(value) : nb::none();
}

/// What is taken from the call's result, as its file has it; None without.
nb::object minus_fact(const CallEntry& call) {
  const auto minus = minus_of(call);
  if (!minus) return nb::none();
  nb::dict fact;
  fact["slot"] = minus->slot;
  fact["factor"] = minus->factor;
  if (minus->heads) fact["heads"] = *minus->heads;
  return fact;
}

nb::dict facts_of(const CallHandle& handle) {
  const CallEntry& call = *handle.entry;
  const AttentionProblem& p = handle.problem();
  nb::dict facts;
  const Unrecorded& unrecorded = call.id.place.unrecorded;
  facts["step"] = or_none(!unrecorded.step, call.id.step);
  facts["layer"] = or_none(!unrecorded.layer && call.id.layer != kNoLayer, call.id.layer);
  facts["branches"] = or_none(!unrecorded.branch, call.id.branches);
  facts["kind"] = std::string(kind_name(call.id.kind));
  facts["block"] = call.id.place.block;
  facts["slot"] = call.id.place.slot;
  facts["chunk"] = or_none(call.id.place.has_chunk(), call.id.place.chunk);
  const CallForward& forward = call.id.place.forward;
  facts["forward"] = or_none(forward.is_stated(), forward.forward);
  facts["of_step"] = or_none(forward.of_step >= 0, forward.of_step);
  facts["batch"] = p.batch();
  facts["heads"] = p.num_heads();
  facts["kv_heads"] = p.num_kv_heads();
  facts["queries"] = p.num_queries();
  facts["keys"] = p.num_keys();
  facts["head_dim"] = p.head_dim();
  facts["dtype"] = std::string(dtype_name(call.recorded_dtype()));
  const HeadScales& scales = p.scales();
  facts["scale"] = scales.is_one() ? nb::cast(scales.of(0)) : nb::cast(scales.each());
  facts["score"] = score_name(p.score());
  facts["mask"] = p.mask().describe();
  facts["sinks"] = p.sinks().describe();
  facts["minus"] = minus_fact(call);
  facts["grid"] = grid_of(p.query_tokens());
  facts["key_grid"] = grid_of(p.key_tokens());
  facts["text"] = p.key_tokens().text_text();
  facts["values"] = static_cast<bool>(p.v());
  facts["model"] = or_none(!call.model.empty(), call.model);
  facts["prompt"] = or_none(!call.prompt.empty(), call.prompt);
  facts["timestep"] = call.timestep;
  facts["tokens"] = call.tokens;
  facts["file"] = call.file.string();
  facts["name"] = p.name();
  return facts;
}

nb::object numbers(const std::vector<int32_t>& values) {
  return ResultArray<int32_t>({std::ssize(values)}, values, "tokens").to_numpy();
}

/// Where each token of the queries or of the keys is: int32 arrays t, y, x of the video, text (its
/// number there) and segment (of a token map: which of `segments`); −1 where it is in none.
nb::dict tokens_of(const CallHandle& call, bool keys) {
  const TokenGrid& tokens = keys ? call.problem().key_tokens() : call.problem().query_tokens();
  const auto count = static_cast<size_t>(tokens.tokens());
  std::vector<int32_t> t(count, -1), y(t), x(t), text(t), segment(t);
  const IndexRange words = tokens.text_range();
  for (size_t i = 0; i < count; ++i) {
    const auto index = static_cast<int64_t>(i);
    if (const auto coord = tokens.coord(index)) {
      t[i] = static_cast<int32_t>(coord->t);
      y[i] = static_cast<int32_t>(coord->y);
      x[i] = static_cast<int32_t>(coord->x);
    }
    if (index >= words.begin && index < words.end) {
      text[i] = static_cast<int32_t>(index - words.begin);
    }
    if (tokens.has_map()) segment[i] = static_cast<int32_t>(tokens.segment_number(index));
  }
  nb::dict result;
  result["t"] = numbers(t);
  result["y"] = numbers(y);
  result["x"] = numbers(x);
  result["text"] = numbers(text);
  result["segment"] = numbers(segment);
  nb::list segments;
  for (const TokenSegment& each : tokens.segments()) segments.append(each.name);
  result["segments"] = segments;
  return result;
}

/// Calls by their numbers, each with its (batch item, head).
using ChosenHeads = std::vector<std::pair<int64_t, std::vector<std::pair<int64_t, int64_t>>>>;

std::pair<ChosenHeads, std::vector<std::string>> selection_of(const Capture& capture,
                                                              const SelectionOptions& selection) {
  ChosenHeads result;
  std::vector<std::string> missing;
  for (const SelectedCall& selected : capture.select(parse_selection(selection), &missing)) {
    std::vector<std::pair<int64_t, int64_t>> heads;
    for (const int64_t b : selected.batch) {
      for (const int64_t h : selected.heads) heads.emplace_back(b, h);
    }
    result.emplace_back(selected.call - capture.calls().data(), std::move(heads));
  }
  return {std::move(result), std::move(missing)};
}

void bind_captures(nb::module_& module) {
  nb::class_<OpenedCapture>(module, "Capture")
      .def_prop_ro("path", [](const OpenedCapture& c) { return c.capture->path().string(); })
      .def_prop_ro("warnings", [](const OpenedCapture& c) { return c.warnings; })
      .def_prop_ro("notes", [](const OpenedCapture& c) { return c.capture->notes(); })
      .def("__len__", [](const OpenedCapture& c) { return c.capture->calls().size(); })
      .def(
          "call",
          [](const OpenedCapture& c, size_t number) {
            const CallEntry& call = c.capture->calls().at(number);
            return CallHandle{{c.capture, &call}, c.capture, c.preset};
          },
          "number"_a)
      .def(
          "select",
          [](const OpenedCapture& c, const std::map<std::string, std::string>& words,
             const Engine& engine, const nb::object& progress) {
            SelectionOptions selection = selection_of_words(words);
            if (asks_for_numbers(selection)) {
              run_watched(
                  [&](RunWatch& watch) {
                    EngineRun run(engine, watch);
                    settle_where(selection, {}, *c.capture, run);
                  },
                  progress);
            }
            return selection_of(*c.capture, selection);
          },
          "selection"_a, "engine"_a, "progress"_a = nb::none(),
          "Numbers of the calls, each with its (batch item, head), that selection words choose; "
          "and what they name and the capture lacks, a line each.");
  module.def(
      "open_capture",
      [](const std::map<std::string, std::string>& options, const Engine& engine,
         const nb::object& progress) {
        std::optional<OpenedCapture> opened;
        run_watched([&](RunWatch& watch) { opened = open_watched(options, engine, watch); },
                    progress);
        return std::move(*opened);
      },
      "options"_a, "engine"_a, "progress"_a = nb::none());
}

}  // namespace

void bind_calls(nb::module_& module) {
  nb::class_<CallHandle>(module, "Call")
      .def("facts", facts_of, "Everything that is known of the call, by name.")
      .def("tokens", tokens_of, "keys"_a, "Where each token of the queries or keys is.")
      .def_prop_ro(
          "capture_path",
          [](const CallHandle& call) {
            return or_none(static_cast<bool>(call.capture),
                           call.capture ? call.capture->path().string() : std::string());
          },
          "What was opened; None of arrays.");
  bind_captures(module);
  module.def(
      "array_call",
      [](const DataArray& q, const DataArray& k, const std::optional<DataArray>& v,
         const std::optional<DataArray>& mask, const std::map<std::string, std::string>& options,
         const std::optional<DataArray>& sinks) {
        return make_array_call({q, k, v, mask, sinks}, options);
      },
      "q"_a, "k"_a, "v"_a.none(), "mask"_a.none(), "options"_a, "sinks"_a = nb::none(),
      "A call of arrays, which are read where they are: in the host's memory, or in that of a CUDA "
      "device, as capsules of __dlpack__(stream=1). Options: layout, scale, mask (a word), score, "
      "grid, text.");
}

}  // namespace attnscope
