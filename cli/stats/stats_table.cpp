#include "cli/stats/stats_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace attnscope {

namespace {

/// Outside the main stack, the block instead of the layer.
std::string slot_of(const HeadName& name) {
  return name.layer == kNoLayer ? name.place.text() : name.place.slot;
}

/// The column of chunks, empty where no call is a piece of a stream.
std::string chunk_column(bool any, const std::string& text) {
  return any ? fmt::format("{:>5} ", text) : "";
}

}  // namespace

void print_stats_table(std::span<const HeadRecord> records) {
  size_t branch_width = 6, slot_width = 0;
  bool chunks = false;
  for (const HeadRecord& record : records) {
    branch_width = std::max(branch_width, one_line(record.name.branch).size());
    slot_width = std::max(slot_width, one_line(slot_of(record.name)).size());
    chunks |= record.name.place.has_chunk();
  }
  if (slot_width > 0) slot_width = std::max<size_t>(slot_width, 4) + 1;
  fmt::print("{:>5} {}{:>5} {:<{}}{:<{}} {:<5} {:>2} {:>4} {:<8}", "step",
             chunk_column(chunks, "chunk"), "layer", slot_width > 0 ? "slot" : "", slot_width,
             "branch", branch_width, "kind", "b", "head", "class");
  for (const HeadField& field : head_fields()) {
    if (!field.heading.empty()) fmt::print(" {:>8}", field.heading);
  }
  fmt::print("\n");
  for (const HeadRecord& record : records) {
    const HeadName& name = record.name;
    const Unrecorded& unrecorded = name.place.unrecorded;
    const bool no_layer = unrecorded.layer || name.layer == kNoLayer;
    const std::string chunk = name.place.has_chunk() ? std::to_string(name.place.chunk) : "-";
    fmt::print("{:>5} {}{:>5} {:<{}}{:<{}} {:<5} {:>2} {:>4} {:<8}",
               unrecorded.step ? "-" : std::to_string(name.step), chunk_column(chunks, chunk),
               no_layer ? "-" : std::to_string(name.layer),
               slot_width > 0 ? one_line(slot_of(name)) : "", slot_width,
               unrecorded.branch ? "-" : one_line(name.branch), branch_width, name.kind, name.batch,
               name.head, head_class_name(record.metrics.head_class));
    for (const HeadField& field : head_fields()) {
      if (field.heading.empty()) continue;
      const auto value = number_of(record.metrics, field);
      fmt::print(" {:>8}", value ? fmt::format("{:.{}f}", *value, field.decimals) : "-");
    }
    fmt::print("\n");
  }
}

}  // namespace attnscope
