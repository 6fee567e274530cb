#include "python/native/bind.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/export/read/stored_maps.h"
#include "python/native/engine.h"
#include "python/native/result_array.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Positions = nb::ndarray<nb::ro, const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct OpenedExport {
  std::shared_ptr<const StoredMaps> maps;
};

const StoredHead& head_at(const OpenedExport& opened, size_t number) {
  return opened.maps->heads().at(number);
}

nb::dict head_facts(const OpenedExport& opened, size_t number) {
  const StoredHead& head = head_at(opened, number);
  const StoredFacts& facts = *head.facts;
  nb::dict result;
  const Unrecorded& unrecorded = facts.place.unrecorded;
  const bool no_layer = unrecorded.layer || facts.layer == kNoLayer;
  result["step"] = unrecorded.step ? nb::none() : nb::cast(facts.step);
  result["layer"] = no_layer ? nb::none() : nb::cast(facts.layer);
  result["branch"] = unrecorded.branch ? nb::none() : nb::cast(facts.branch);
  result["kind"] = facts.kind;
  result["block"] = facts.place.block;
  result["slot"] = facts.place.slot;
  result["batch"] = head.batch;
  result["head"] = head.head;
  result["product"] = opened.maps->stored().product;
  result["dtype"] = std::string(opened.maps->dtype_name(head));
  result["lse"] = head.group->has_lse;
  result["mask"] = facts.mask;
  result["rows"] = static_cast<int64_t>(facts.queries.size());
  result["keys"] = nb::make_tuple(facts.keys.begin, facts.keys.end);
  return result;
}

nb::object head_rows(const OpenedExport& opened, size_t number) {
  const std::vector<int64_t>& rows = head_at(opened, number).facts->queries;
  return ResultArray<int64_t>({static_cast<int64_t>(rows.size())}, rows, "an export").to_numpy();
}

/// The rows at these positions, which ascend, chunk by chunk; NaN where a chunk is missing.
ResultArray<float> read_rows(const StoredMaps& maps, const StoredHead& head,
                             std::span<const int64_t> positions, RunWatch& watch) {
  const ChunkGrid& grid = head.group->grid;
  ResultArray<float> result({static_cast<int64_t>(positions.size()), grid.cols},
                            maps.path().string());
  for (size_t first = 0; first < positions.size();) {
    if (watch.stop().stop_requested()) throw stopped_error();
    const int64_t row_chunk = positions[first] / grid.chunk_rows;
    size_t past = first + 1;
    while (past < positions.size() && positions[past] / grid.chunk_rows == row_chunk) ++past;
    std::vector<int64_t> queries;
    for (size_t i = first; i < past; ++i) {
      queries.push_back(head.facts->queries[static_cast<size_t>(positions[i])]);
    }
    maps.read_rows(head, queries, head.facts->keys,
                   {result.data() + static_cast<int64_t>(first) * grid.cols,
                    queries.size() * static_cast<size_t>(grid.cols)});
    first = past;
    watch.progress(static_cast<double>(past) / static_cast<double>(positions.size()));
  }
  return result;
}

nb::object entries(const OpenedExport& opened, size_t number, const Positions& positions,
                   const nb::object& progress) {
  const StoredHead& head = head_at(opened, number);
  std::optional<ResultArray<float>> result;
  run_watched(
      [&](RunWatch& watch) {
        result.emplace(
            read_rows(*opened.maps, head, {positions.data(), positions.shape(0)}, watch));
      },
      progress);
  return result->to_numpy();
}

nb::object lse(const OpenedExport& opened, size_t number, const Positions& positions) {
  const StoredHead& head = head_at(opened, number);
  ResultArray<double> result({static_cast<int64_t>(positions.shape(0))}, "an export");
  for (size_t i = 0; i < positions.shape(0); ++i) {
    result.data()[i] = opened.maps->lse(head, positions.data()[i]);
  }
  return result.to_numpy();
}

}  // namespace

void bind_exports(nb::module_& module) {
  nb::class_<OpenedExport>(module, "Export")
      .def("__len__", [](const OpenedExport& opened) { return opened.maps->heads().size(); })
      .def("facts", head_facts, "number"_a, "What is known of a head, by name.")
      .def("rows", head_rows, "number"_a, "int64: the capture's query of each row.")
      .def("entries", entries, "number"_a, "positions"_a, "progress"_a = nb::none(),
           "float32 [positions, columns]; NaN where nothing is there yet.")
      .def("lse", lse, "number"_a, "positions"_a, "float64 [positions]; NaN where there is none.");
  module.def(
      "is_export", [](const std::string& path) { return is_export_file(path); }, "path"_a);
  module.def(
      "open_export",
      [](const std::string& path, const nb::object& progress) {
        OpenedExport opened;
        run_watched([&](RunWatch&) { opened.maps = std::make_shared<const StoredMaps>(path); },
                    progress);
        return opened;
      },
      "path"_a, "progress"_a = nb::none());
}

}  // namespace attnscope
