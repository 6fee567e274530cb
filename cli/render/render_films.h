#pragma once

#include "cli/render/render_job.h"

namespace attnscope {

/// Films of volumes over the video. Each draws and writes, or in a dry run only streams the plan.
void render_filmstrip(RenderJob& job);
void render_text(RenderJob& job);
void render_offsets(RenderJob& job);

}  // namespace attnscope
