#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

/// "mask topk ×" where a mask lies over the map and its pane is not seen: a click on the name shows
/// the pane (Legend/Mask), one on the cross takes the mask away (Legend/Mask off). Ends at `right`;
/// takes at most `width` pixels, and gives how many it takes, 0 where there is none.
float draw_mask_chip(const Ui& ui, float right, float y, float width, const Scene& scene,
                     PanelRequests& requests);

}  // namespace attnscope
