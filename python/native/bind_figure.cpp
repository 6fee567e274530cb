#include "python/native/bind.h"

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "python/native/call_figure.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

FigureQuestion question_of(const nb::dict& words) {
  FigureQuestion q;
  q.choice.in_python = true;
  for (const auto [name, value] : words) {
    const auto word = nb::cast<std::string>(name);
    if (word == "rows") {
      q.choice.rows = nb::cast<std::string>(value);
    } else if (word == "cols") {
      q.choice.cols = nb::cast<std::string>(value);
    } else if (word == "stride") {
      q.choice.stride = nb::cast<int64_t>(value);
    } else if (word == "command") {
      q.command = nb::cast<std::string>(value);
    } else {
      throw usage_error("unknown option " + one_line(word));
    }
  }
  return q;
}

/// A dict: page (bytes; empty where there is none), refusal, queries, keys, base
/// (float32 [rows, cols], or None).
nb::dict figure(const CallHandle& call, const Engine& engine, int64_t batch, int64_t head,
                const nb::dict& words, const nb::object& progress) {
  const FigureQuestion question = question_of(words);
  FigureAnswer answer;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        answer = figure_of(call, {batch, head}, question, run);
      },
      progress);
  nb::dict parts;
  parts["page"] = nb::bytes(answer.page.data(), answer.page.size());
  parts["refusal"] = nb::str(answer.refusal.data(), answer.refusal.size());
  parts["queries"] = answer.rows;
  parts["keys"] = answer.cols;
  parts["base"] = nb::none();
  if (!answer.base.empty()) {
    parts["base"] =
        ResultArray<float>({answer.base_rows, answer.base_cols}, answer.base, "a page's base")
            .to_numpy();
  }
  return parts;
}

}  // namespace

void bind_figure(nb::module_& module) {
  nb::borrow<nb::class_<CallHandle>>(module.attr("Call"))
      .def("figure", figure, "engine"_a, "batch"_a, "head"_a, "words"_a, "progress"_a = nb::none(),
           "A head as a page: a dict of page, refusal, queries, keys, base. words: rows, cols, "
           "stride, "
           "command.");
}

}  // namespace attnscope
