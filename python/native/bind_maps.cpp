#include "python/native/bind.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "python/native/call_maps.h"
#include "python/native/call_queries.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Heads = std::vector<std::pair<int64_t, int64_t>>;
using Progress = nb::object;

std::vector<HeadPlace> places_of(const Heads& heads) {
  std::vector<HeadPlace> places;
  for (const auto& [batch, head] : heads) places.push_back({batch, head});
  return places;
}

/// (begin, end), or an int64 array that ascends.
Places places_of(const nb::object& places) {
  if (nb::isinstance<nb::tuple>(places)) {
    const auto [begin, end] = nb::cast<std::pair<int64_t, int64_t>>(places);
    return {{begin, end}, {}};
  }
  using Indices = nb::ndarray<nb::ro, const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  const auto indices = nb::cast<Indices>(places);
  return {{}, {indices.data(), indices.data() + indices.shape(0)}};
}

/// rows_alone: of q only the rows that are chosen are looked through for NaN before, of k nothing.
ValueCheck check_of(bool rows_alone) { return rows_alone ? ValueCheck::rows : ValueCheck::all; }

/// Computes a result, which must not touch Python, and hands it on.
template <typename Compute>
nb::object compute(const Engine& engine, const Progress& progress, const Compute& work) {
  using Result = decltype(work(std::declval<EngineRun&>()));
  std::optional<Result> result;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        result.emplace(work(run));
      },
      progress);
  return result->to_numpy();
}

nb::object entries(const CallHandle& call, const Engine& engine, const Heads& heads,
                   const nb::object& rows, const nb::object& cols, bool logits, bool rows_alone,
                   const Progress& progress) {
  const Places row_places = places_of(rows), col_places = places_of(cols);
  return compute(engine, progress, [&](EngineRun& run) {
    return entries_of(call, places_of(heads), row_places, col_places,
                      logits ? Quantity::logits : Quantity::weights, check_of(rows_alone), run);
  });
}

/// float64 [rows, 2], sum and exponent; [0, 2] where the score has no normalisers.
nb::object row_norms(const CallHandle& call, const Engine& engine, int64_t batch, int64_t head,
                     const nb::object& rows, const Progress& progress) {
  const Places row_places = places_of(rows);
  return compute(engine, progress, [&](EngineRun& run) {
    const std::vector<RowNorm> norms = row_norms_of(call, {batch, head}, row_places, run);
    ResultArray<double> pairs({static_cast<int64_t>(norms.size()), 2}, call.problem().name());
    double* to = pairs.data();
    for (const RowNorm& norm : norms) {
      *to++ = norm.sum;
      *to++ = static_cast<double>(norm.exponent);
    }
    return pairs;
  });
}

using NormPairs =
    nb::ndarray<nb::ro, const double, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

nb::object known_entries(const CallHandle& call, const Engine& engine, int64_t batch, int64_t head,
                         const nb::object& rows, const nb::object& cols, const NormPairs& pairs,
                         const Progress& progress) {
  const Places row_places = places_of(rows), col_places = places_of(cols);
  std::vector<RowNorm> norms;
  for (size_t i = 0; i < pairs.shape(0); ++i) {
    norms.push_back({pairs.data()[2 * i], static_cast<int64_t>(pairs.data()[2 * i + 1])});
  }
  if (!norms.empty() && std::ssize(norms) != row_places.size()) {
    throw usage_error("norms of " + std::to_string(norms.size()) + " rows for " +
                      std::to_string(row_places.size()));
  }
  return compute(engine, progress, [&](EngineRun& run) {
    return known_entries_of(call, {batch, head}, row_places, col_places, norms, run);
  });
}

nb::object lse(const CallHandle& call, const Engine& engine, const Heads& heads,
               const nb::object& rows, bool rows_alone, const Progress& progress) {
  const Places row_places = places_of(rows);
  return compute(engine, progress, [&](EngineRun& run) {
    return lse_of(call, places_of(heads), row_places, check_of(rows_alone), run);
  });
}

nb::object outputs(const CallHandle& call, const Engine& engine, const Heads& heads,
                   const nb::object& rows, bool rows_alone, const Progress& progress) {
  const Places row_places = places_of(rows);
  return compute(engine, progress, [&](EngineRun& run) {
    return outputs_of(call, places_of(heads), row_places, check_of(rows_alone), run);
  });
}

nb::tuple pooled(const CallHandle& call, const Engine& engine, const Heads& heads, int64_t block,
                 const Progress& progress) {
  if (block < 1) throw usage_error("block " + std::to_string(block) + ": expected 1 or more");
  std::vector<PooledMap> maps;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        maps = pooled_of(call, places_of(heads), block, run);
      },
      progress);
  const int64_t rows = maps.empty() ? 0 : maps.front().rows;
  const int64_t cols = maps.empty() ? 0 : maps.front().cols;
  const auto stacked = [&](Pool pool) {
    ResultArray<float> all({static_cast<int64_t>(maps.size()), rows, cols}, call.problem().name());
    float* to = all.data();
    for (const PooledMap& map : maps) {
      to = std::copy(map.values(pool).begin(), map.values(pool).end(), to);
    }
    return all.to_numpy();
  };
  return nb::make_tuple(stacked(Pool::max), stacked(Pool::mean));
}

QueryWords query_words(const nb::dict& words) {
  QueryWords q;
  for (const auto [name, value] : words) {
    const auto word = nb::cast<std::string>(name);
    if (word == "coords") {
      q.tokens.coords = nb::cast<std::vector<std::string>>(value);
    } else if (word == "indices") {
      q.tokens.indices = nb::cast<std::vector<int64_t>>(value);
    } else if (word == "text_tokens") {
      q.tokens.text_tokens = nb::cast<std::vector<std::string>>(value);
    } else if (word == "pixels") {
      q.tokens.pixels = nb::cast<std::vector<std::string>>(value);
    } else if (word == "domain") {
      q.domain = nb::cast<std::string>(value);
    } else if (word == "weighting") {
      q.weighting = nb::cast<std::string>(value);
    } else if (word == "segment") {
      q.segment = nb::cast<std::string>(value);
    } else if (word == "reverse") {
      q.reverse = nb::cast<bool>(value);
    } else if (word == "cache") {
      q.cache = nb::cast<std::string>(value);
    } else {
      throw usage_error("unknown option " + one_line(word));
    }
  }
  return q;
}

nb::object line(const std::vector<float>& values) {
  return ResultArray<float>({static_cast<int64_t>(values.size())}, values, "a query").to_numpy();
}

/// A list with a dict a head: batch, head, video [T, H, W] (or [tokens]), text, segments.
nb::list query(const CallHandle& call, const Engine& engine, const Heads& heads,
               const nb::dict& words, const Progress& progress) {
  const QueryWords q = query_words(words);
  QueryAnswer answer;
  run_watched(
      [&](RunWatch& watch) {
        EngineRun run(engine, watch);
        answer = answer_query(call, places_of(heads), q, run);
      },
      progress);
  nb::list result;
  for (const QueryVolume& volume : answer.volumes) {
    nb::dict parts;
    parts["batch"] = volume.batch;
    parts["head"] = volume.head;
    const auto cells = static_cast<int64_t>(volume.video.size());
    const bool has_grid = answer.grid[0] * answer.grid[1] * answer.grid[2] == cells && cells > 0;
    parts["video"] = has_grid ? ResultArray<float>({answer.grid.begin(), answer.grid.end()},
                                                   volume.video, "a query")
                                    .to_numpy()
                              : line(volume.video);
    parts["text"] = line(volume.text);
    nb::dict segments;
    for (const SegmentValues& other : volume.others) {
      segments[other.name.c_str()] = line(other.values);
    }
    parts["segments"] = segments;
    result.append(parts);
  }
  return result;
}

}  // namespace

void bind_maps(nb::module_& module) {
  const auto progress = "progress"_a = nb::none();
  const auto alone = "rows_alone"_a = false;
  nb::borrow<nb::class_<CallHandle>>(module.attr("Call"))
      .def("entries", entries, "engine"_a, "heads"_a, "rows"_a, "cols"_a, "logits"_a, alone,
           progress, "float32 [heads, rows, cols].")
      .def("row_norms", row_norms, "engine"_a, "batch"_a, "head"_a, "rows"_a, progress,
           "float64 [rows, 2]: what known_entries() takes.")
      .def("known_entries", known_entries, "engine"_a, "batch"_a, "head"_a, "rows"_a, "cols"_a,
           "norms"_a, progress, "float32 [1, rows, cols]: weights, with norms of these very rows.")
      .def("lse", lse, "engine"_a, "heads"_a, "rows"_a, alone, progress, "float64 [heads, rows].")
      .def("outputs", outputs, "engine"_a, "heads"_a, "rows"_a, alone, progress,
           "float32 [heads, rows, channels].")
      .def("pooled", pooled, "engine"_a, "heads"_a, "block"_a, progress,
           "(max, mean), float32 [heads, row blocks, column blocks] each.")
      .def("query", query, "engine"_a, "heads"_a, "words"_a, progress,
           "A dict a head: batch, head, video, text, segments.");
}

}  // namespace attnscope
