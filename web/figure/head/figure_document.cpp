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

void write_figure(const FigureSource& source, const FigureCut& cut, const FigureMap& map,
                  const std::function<void(std::string_view)>& append) {
  const OrderedJson facts = figure_facts(source, cut, map);
  const std::vector<int32_t> runs = run_pairs(map);
  FigurePage page{source.title, facts, {}};
  page.data = {{"q", map.q}, {"k", map.k}, bytes_of("base", map.pyramid.codes)};
  if (!map.sums.empty()) {
    page.data.push_back(bytes_of("sums", map.sums));
    page.data.push_back(bytes_of("exponents", map.exponents));
  }
  if (map.mask) {
    page.data.push_back(bytes_of("lists", map.mask->row_lists));
    page.data.push_back(bytes_of("starts", map.mask->starts));
    page.data.push_back(bytes_of("runs", runs));
  }
  write_figure_page(page, append);
}

}  // namespace attnscope
