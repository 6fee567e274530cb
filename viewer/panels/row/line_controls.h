#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// The token or words that the line is of, and how they were chosen, in the line of text that
/// `room` begins with. What is picked has a × beside it that lets it go: PANE/Release. Gives the x
/// where the text ends.
float draw_chosen_line(const Ui& ui, const std::string& pane, const ScreenRect& room,
                       const std::string& what, const std::string& how, const Scene& scene,
                       PanelRequests& requests);

/// At the right end of a pane's header, from `from` on where there is room: which way the line
/// goes. Registered as PANE/NAME.
void draw_line_controls(const Ui& ui, const std::string& pane, const ScreenRect& rect, float from,
                        const Scene& scene, PanelRequests& requests);

}  // namespace attnscope
