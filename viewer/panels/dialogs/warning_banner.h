#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

constexpr float kBannerHeight = 28;

/// The scene's warning across the window, with a button that dismisses it.
void draw_warning_banner(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                         PanelRequests& requests);

/// Says that the capture is the program's own sample, with a button that keeps it.
void draw_sample_banner(const Ui& ui, const ScreenRect& rect, PanelRequests& requests);

}  // namespace attnscope
