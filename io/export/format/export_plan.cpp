#include "io/export/format/export_plan.h"

#include <initializer_list>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Rough sizes of what the library adds: headers, attributes, scales and their lists a group.
constexpr int64_t kFileOverhead = 6 * 1024;
constexpr int64_t kGroupOverhead = 24 * 1024;
/// int32 index, t, y, x and an 8-bit segment.
constexpr int64_t kCoordinateBytes = 4 * 4 + 1;

int64_t sum_sizes(std::initializer_list<int64_t> sizes) {
  int64_t total = 0;
  for (int64_t size : sizes) {
    const auto sum = checked_add(total, size);
    if (!sum) throw usage_error("export: the maps are too large for a file");
    total = *sum;
  }
  return total;
}

std::vector<HeadTask> tasks_of(const ExportLayout& layout) {
  std::vector<HeadTask> tasks;
  for (const ExportGroup& group : layout.groups) {
    for (int64_t item : group.batch) {
      for (int64_t head : group.heads) {
        tasks.push_back(
            {group.call->problem.get(), item, head, group.row_range, group.row_list, group.keys});
      }
    }
  }
  return tasks;
}

}  // namespace

ExportPlan::ExportPlan(ExportSpec the_spec)
    : spec(std::move(the_spec)), layout(make_export_layout(spec)), tasks(tasks_of(layout)) {}

ExportSize estimate_export(const ExportPlan& plan) {
  const ExportSpec& spec = plan.spec;
  const ExportLayout& layout = plan.layout;
  ExportSize size;
  size.at_most = spec.gzip || spec.product == ExportProduct::threshold;
  size.file_bytes = kFileOverhead + static_cast<int64_t>(spec.options_json.size());
  for (const ExportGroup& group : layout.groups) {
    const ChunkGrid& grid = group.grid;
    // A master has them once more.
    const int64_t axes =
        (spec.is_sharded() ? 2 : 1) * (kGroupOverhead + kCoordinateBytes * (grid.rows + grid.cols));
    // make_export_layout has checked the larger products of these factors.
    const int64_t lse = group.has_lse ? grid.heads * grid.rows * 4 : 0;
    if (spec.keeps_part_of_rows()) {
      // Weight and key, and the row's mass; for threshold where its list begins.
      const bool topk = spec.product == ExportProduct::topk;
      const int64_t kept = topk ? spec.kept_largest().keys : grid.cols;
      const int64_t factors[] = {grid.heads, grid.rows, kept * 8 + (topk ? 4 : 12)};
      const auto bytes = checked_count(factors);
      if (!bytes) throw usage_error("export: the maps are too large for a file");
      size.payload_bytes = sum_sizes({size.payload_bytes, *bytes});
      size.file_bytes = sum_sizes({size.file_bytes, *bytes, axes});
      continue;
    }
    const int64_t entries =
        layout.has_entries() ? grid.heads * grid.rows * grid.cols * grid.element_bytes : 0;
    const int64_t stored = layout.has_entries() ? grid.bytes() + 4 * grid.chunks() : 0;
    size.payload_bytes = sum_sizes({size.payload_bytes, entries, lse});
    size.file_bytes = sum_sizes({size.file_bytes, stored, lse, axes, spec.align});
  }
  return size;
}

int64_t least_export_bytes(const ExportLayout& layout) {
  int64_t bytes = 0;
  for (const ExportGroup& group : layout.groups) {
    if (layout.has_entries()) bytes = sum_sizes({bytes, group.grid.bytes()});
    if (group.has_lse) bytes = sum_sizes({bytes, group.num_heads() * group.num_rows() * 4});
  }
  return bytes;
}

}  // namespace attnscope
