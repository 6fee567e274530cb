#pragma once

#include "cli/render/render_job.h"

namespace attnscope {

/// Pictures of maps, of their numbers by head and by frame. Each draws and writes, or in a dry run
/// only streams the plan.
void render_matrix(RenderJob& job);
void render_mosaic(RenderJob& job);
void render_frames(RenderJob& job);
void render_heatmap(RenderJob& job);

}  // namespace attnscope
