#include "io/export/format/export_spec.h"

#include <utility>

namespace attnscope {

std::string_view export_product_name(ExportProduct product) {
  switch (product) {
    case ExportProduct::weights:
      return "weights";
    case ExportProduct::logits:
      return "logits";
    case ExportProduct::lse:
      return "lse";
    case ExportProduct::topk:
      return "topk";
    case ExportProduct::threshold:
      return "threshold";
    case ExportProduct::pooled:
      return "pooled";
    case ExportProduct::output:
      return "output";
    case ExportProduct::stats:
      return "stats";
    case ExportProduct::rows:
      break;
  }
  return "rows";
}

std::span<const ExportProduct> exported_maps() {
  static constexpr ExportProduct kMaps[] = {ExportProduct::weights, ExportProduct::logits,
                                            ExportProduct::lse,     ExportProduct::rows,
                                            ExportProduct::topk,    ExportProduct::threshold,
                                            ExportProduct::pooled,  ExportProduct::output};
  return kMaps;
}

std::vector<SelectedCall> ExportSpec::selection() const {
  std::vector<SelectedCall> selected;
  for (const ExportCall& call : calls) selected.push_back(call.selected);
  return selected;
}

std::vector<SelectedCall> ExportSpec::own_selection() const {
  return share ? share->of(selection()) : selection();
}

}  // namespace attnscope
