#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/stream/tile_sink.h"
#include "io/export/format/export_layout.h"
#include "io/export/format/export_spec.h"

namespace attnscope {

/// A spec, and what follows from it alone: the file's layout and the stream that fills it. Made
/// once a run. Layout and tasks borrow the spec's lists, which stay where they are when this is
/// moved.
struct ExportPlan {
  /// A spec has one plan, so it may stand for it. Throws Error(usage) as make_export_layout() does.
  ExportPlan(ExportSpec the_spec);  // NOLINT(google-explicit-constructor)
  /// A plan of what is written without being computed: it has no tasks.
  ExportPlan(ExportSpec the_spec, ExportLayout the_layout)
      : spec(std::move(the_spec)), layout(std::move(the_layout)) {}
  ExportPlan(ExportPlan&&) = default;
  ExportPlan& operator=(ExportPlan&&) = default;

  ExportSpec spec;  ///< but for capture_hash, not to be changed any more
  ExportLayout layout;
  /// One task a selected head, in the order of groups, batch items and heads: the file's order.
  std::vector<HeadTask> tasks;

  const TileRequest& request() const { return layout.request; }
};

/// Sizes known before anything is written.
struct ExportSize {
  int64_t payload_bytes = 0;  ///< of the datasets that grow with the map
  int64_t file_bytes = 0;     ///< estimate of the whole file
  bool at_most = false;       ///< how much it will be depends on the values
};
/// Throws Error(usage) where sizes overflow.
ExportSize estimate_export(const ExportPlan& plan);

/// The bytes of the file at the least, whatever the HDF5 library adds.
int64_t least_export_bytes(const ExportLayout& layout);

}  // namespace attnscope
