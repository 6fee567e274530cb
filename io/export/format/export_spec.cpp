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

void ExportSpec::find_hashes(const Capture& capture, bool with_values,
                             const std::stop_token& stop) {
  const std::vector<SelectedCall> all = selection();
  if (!share) return set_hashes(capture.call_hashes(all, with_values, stop));
  const std::vector<std::string> own = capture.call_hashes(share->touched(all), with_values, stop);
  const std::vector<int64_t> places = share->places();
  call_hashes.assign(all.size(), "");
  for (size_t i = 0; i < own.size(); ++i) call_hashes[static_cast<size_t>(places[i])] = own[i];
  capture_hash = join_call_hashes(own);
}

void ExportSpec::set_hashes(std::vector<std::string> hashes) {
  call_hashes = std::move(hashes);
  capture_hash = join_call_hashes(call_hashes);
}

}  // namespace attnscope
