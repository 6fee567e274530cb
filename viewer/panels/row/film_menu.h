#pragma once

#include "viewer/panels/widgets.h"
#include "viewer/view/row/film_content.h"

namespace attnscope {

/// Pixels that the button takes.
float film_button_width(const Ui& ui);
/// The button that opens the choices of a film: all moments or one, the video under it, which
/// moments, playing, saving. It ends at x = `right`.
void draw_film_button(const Ui& ui, float right, float y, const Scene& scene,
                      const FilmContent& content, PanelRequests& requests);

}  // namespace attnscope
