#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

constexpr float kBannerHeight = 28;

/// The scene's warning across the window, with a button that dismisses it.
void draw_warning_banner(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                         PanelRequests& requests);

}  // namespace attnscope
