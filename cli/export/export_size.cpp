#include "cli/export/export_size.h"

#include <fmt/core.h>

#include <span>
#include <string>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/export/write/pooled_export.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

/// A way to store a product's entries, and the name that --dtype has for it.
struct EntryType {
  Encoding encoding;
  const char* name;
};

/// The types of a product that has several, the most exact and so the largest first.
std::span<const EntryType> types_of(ExportProduct product) {
  static constexpr EntryType kWeights[] = {
      {Encoding::f32, "f32"}, {Encoding::f16_scaled, "f16"}, {Encoding::u8_log2, "u8"}};
  static constexpr EntryType kLogits[] = {{Encoding::f32, "f32"}, {Encoding::f16, "f16"}};
  switch (product) {
    case ExportProduct::weights:
    case ExportProduct::rows:
      return kWeights;
    case ExportProduct::logits:
      return kLogits;
    default:
      return {};
  }
}

/// "--dtype u8 takes 2.0 MiB", or what else makes the file smaller.
std::string smaller_way(const ExportSpec& spec, int64_t limit) {
  std::string smallest;
  for (const EntryType& type : types_of(spec.product)) {
    ExportSpec other = spec;
    other.encoding = type.encoding;
    const int64_t bytes = planned_bytes(ExportPlan(std::move(other)));
    const std::string text = fmt::format("--dtype {} takes {}", type.name, format_bytes(bytes));
    if (bytes <= limit) return text;
    smallest = text + ", too; ";
  }
  const bool pools = spec.product == ExportProduct::weights;
  return smallest + "take fewer heads, --rows or --cols" +
         (pools ? ", or the means and maxima of blocks (--product pooled)" : "");
}

}  // namespace

int64_t planned_bytes(const ExportPlan& plan) {
  if (plan.spec.product == ExportProduct::pooled) return pooled_payload_bytes(plan);
  return estimate_export(plan).file_bytes;
}

void check_max_size(const ExportOptions& o, const ExportPlan& plan) {
  if (o.max_size.empty()) return;
  const int64_t limit = parse_size(o.max_size, "--max-size", -1);
  const int64_t bytes = planned_bytes(plan);
  if (bytes <= limit) return;
  const bool at_most = plan.spec.product != ExportProduct::pooled && estimate_export(plan).at_most;
  throw Error(ErrorCode::resource, fmt::format("--max-size {}: {} takes {}{}; {}",
                                               one_line(o.max_size), o.out, at_most ? "up to " : "",
                                               format_bytes(bytes), smaller_way(plan.spec, limit)));
}

}  // namespace attnscope
