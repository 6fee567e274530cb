#pragma once

#include <nanobind/nanobind.h>

// The module attnscope._native: what attnscope's Python classes are made of. Each function adds one
// subject. Functions that compute take `progress`, None or a function of the share that is done,
// and raise what run_watched() says; every attnscope::Error is raised as what
// the function of set_error_maker() makes of (text, code).
namespace attnscope {

/// Engine, and how errors and the program of the package are named.
void bind_engine(nanobind::module_& module);
/// Captures, calls and their facts; calls of arrays.
void bind_calls(nanobind::module_& module);
/// Parts of maps: weights, logits, LSE, outputs, blocks, queries. Members of Call.
void bind_maps(nanobind::module_& module);
/// A head as a page. A member of Call.
void bind_figure(nanobind::module_& module);
/// Exports in a capture's place.
void bind_exports(nanobind::module_& module);
/// Numbers of heads, and what masks keep.
void bind_numbers(nanobind::module_& module);
/// Metrics of running models: recorded calls, the journal of a run, tables of several.
void bind_metrics(nanobind::module_& module);

}  // namespace attnscope
