#pragma once

#include <array>

#include "viewer/gl/picture_texture.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// The entries around the one under the mouse with their numbers, which tokens it is of, and these
/// tokens' patches of the video; beside the mouse, within the window.
class Magnifier {
 public:
  /// Nothing where the scene has nothing magnified. `overview`: the map shows many entries as one;
  /// single ones then have colours of their own.
  void draw(const Ui& ui, const ScreenRect& window, bool overview, const Scene& scene,
            PanelRequests& requests);

 private:
  struct Look;
  void draw_entries(const Ui& ui, const Scene& scene, const Look& look) const;
  void draw_cell(const Ui& ui, const Scene& scene, const Look& look, int64_t down,
                 int64_t across) const;
  void tell(const Ui& ui, const Scene& scene, const Look& look, float left) const;
  bool draw_patch(const Ui& ui, const Scene& scene, bool key, const ScreenRect& rect,
                  PanelRequests& requests);

  std::array<gl::PictureTexture, 2> patches_;  ///< of query and key
};

}  // namespace attnscope
