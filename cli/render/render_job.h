#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/picture_options.h"
#include "cli/render/overlay.h"
#include "cli/render/render_options.h"
#include "cli/run/stream_run.h"
#include "core/base/memory_budget.h"
#include "core/stream/tile_sink.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"
#include "io/pictures/canvas.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/table_layout.h"

namespace attnscope {

/// One head of the selection.
struct RenderHead {
  const CallEntry* call = nullptr;
  int64_t batch = 0, head = 0;
};

/// A checked request to draw, and what all pictures need to do it.
struct RenderJob {
  const RenderRequest& request;
  PictureKind kind;
  const Console& console;
  const Capture& capture;
  ColourChoice colours;
  OverlayFiles overlay;
  StreamRun& run;
  std::vector<RenderHead> heads;  ///< by (call, batch item, head)
  OrderedJson facts;              ///< for --json; pictures add theirs
  OrderedJson drawn = {};         ///< the heads' names; a picture adds what it draws of each
  std::optional<PlannedPicture> page = {};  ///< once a picture knows it
};

/// The selected heads in capture order.
std::vector<RenderHead> selected_heads(const RenderRequest& request, const Capture& capture);

/// Their names, a row a head.
OrderedJson drawn_json(const std::vector<RenderHead>& heads);

/// Tasks for the whole maps, cropped by --rows and --cols where given.
std::vector<HeadTask> map_tasks(const RenderJob& job);

/// "step 10 layer 2 cond joint batch 0 head 3".
std::string head_label(const RenderHead& head);
/// Names the softmax domain of the heads' rows, masks included (core/products/softmax_domain.h).
std::string domain_text(const RenderJob& job, const std::string& domain);
/// The model, or the capture's name where none was recorded.
std::string page_title(const RenderJob& job);
/// "q_state not recorded" where that is so of a head; else empty.
std::string state_text(const RenderJob& job);
/// The capture's name where the title is not it, and state_text().
std::string capture_text(const RenderJob& job);

/// Rows and columns of a table over the heads: a row a (call, batch item), named by its layer and
/// by whatever else differs between rows; a column a head.
TableNames head_names(const RenderJob& job);
/// Where each head stands in that table.
std::vector<size_t> head_places(const RenderJob& job);

/// Throws Error(usage) unless there is exactly one head; `instead` says what to do with several.
void require_one_head(const RenderJob& job, const std::string& instead);
/// Throws Error(usage) unless all heads' queries and keys are like the first head's.
void require_alike_grids(const RenderJob& job);

/// The style of the picture.
PictureStyle picture_look(const RenderJob& job);
/// Notes the page that the picture will have, before anything is computed, and reserves its memory.
MemoryReservation plan_page(RenderJob& job, PageSize page);
/// Writes the canvas to -o.
void write_picture(RenderJob& job, const Canvas& canvas);
/// Says, or prints as JSON, that it was written.
void report_picture(RenderJob& job, int width, int height);

}  // namespace attnscope
