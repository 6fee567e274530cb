#include "web/figure/head/figure_document.h"

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "io/files/json_types.h"
#include "web/figure/figure_page.h"

namespace attnscope {
namespace {

template <typename T>
FigureBytes bytes_of(const char* name, const std::vector<T>& values) {
  return {name, std::as_bytes(std::span(values))};
}

/// Runs of the mask as pairs of numbers.
std::vector<int32_t> run_pairs(const FigureMap& map) {
  std::vector<int32_t> pairs;
  if (!map.mask) return pairs;
  for (const IndexRange& run : map.mask->runs) {
    pairs.push_back(static_cast<int32_t>(run.begin));
    pairs.push_back(static_cast<int32_t>(run.end));
  }
  return pairs;
}

}  // namespace

FigureArrays figure_arrays(const FigureMap& map) {
  FigureArrays arrays;
  arrays.runs = run_pairs(map);
  std::vector<FigureBytes>& data = arrays.data;
  data = {{"q", map.q}, {"k", map.k}, bytes_of("base", map.pyramid.codes)};
  if (!map.sums.empty()) {
    data.push_back(bytes_of("sums", map.sums));
    data.push_back(bytes_of("exponents", map.exponents));
  }
  if (map.mask) {
    data.push_back(bytes_of("lists", map.mask->row_lists));
    data.push_back(bytes_of("starts", map.mask->starts));
    data.push_back(bytes_of("runs", arrays.runs));
  }
  return arrays;
}

void write_figure(const FigureSource& source, const FigureCut& cut, const FigureMap& map,
                  const std::function<void(std::string_view)>& append) {
  const OrderedJson facts = figure_facts(source, cut, map);
  const FigureArrays arrays = figure_arrays(map);
  write_figure_page({source.title, facts, arrays.data, source.style}, append);
}

}  // namespace attnscope
