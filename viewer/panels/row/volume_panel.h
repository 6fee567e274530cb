#pragma once

#include <optional>
#include <string>

#include "viewer/gl/volume_painter.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/row/slice_picture.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/row/picture_rest.h"
#include "viewer/view/row/volume_camera.h"

namespace attnscope {

/// The picked or pointed-at token's row (reverse: column) as a volume of frames × rows × columns,
/// in the film's colours: turned by dragging, with a threshold and a plane that cuts it open. Its
/// picture is kept and drawn anew only where something of it has changed.
class VolumePanel {
 public:
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// True unless the picture on the volume's plane is still to come. Of the frame that was drawn
  /// last, in which the volume was seen.
  bool complete() const { return plane_.complete(); }
  int64_t texture_bytes() const { return painter_ ? painter_->bytes() : 0; }

 private:
  void take_line(const Scene& scene);
  uint8_t number_of(const Scene& scene, size_t at) const;
  /// For the driver.
  bool is_too_large() const;
  /// Gives the x where the line below it ends.
  float draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                    PanelRequests& requests);
  /// Gives the y below them.
  float draw_controls(const Ui& ui, const ScreenRect& row, const Scene& scene,
                      PanelRequests& requests);
  void video_button(const Ui& ui, const Scene& scene, PanelRequests& requests) const;
  void slice_slider(const Ui& ui, const ScreenRect& room, const Scene& scene,
                    PanelRequests& requests) const;
  static bool draw_no_line(const Ui& ui, const ScreenRect& room, float line_end,
                           const Scene& scene);
  bool draw_no_volume(const Ui& ui, const ScreenRect& room) const;
  void draw_all(const Ui& ui, const ScreenRect& room, const Scene& scene, PanelRequests& requests);
  void draw_volume(const Ui& ui, const ScreenRect& area, const Scene& scene,
                   PanelRequests& requests);
  void draw_picture(const ScreenRect& area, const Scene& scene, PanelRequests& requests);
  void draw_box(const Ui& ui, const ScreenRect& area, const Scene& scene, bool behind) const;
  void mark_cells(const Ui& ui, const ScreenRect& area, const Scene& scene) const;
  void take_mouse(const Ui& ui, const ScreenRect& area, const Scene& scene,
                  PanelRequests& requests);
  void point_at(const ScreenRect& area, const Scene& scene, bool clicked, PanelRequests& requests);
  void draw_below(const Ui& ui, const ScreenRect& rect, const std::string& share,
                  const Scene& scene, PanelRequests& requests);
  void threshold_mark(const Ui& ui, const ScreenRect& bar, const Scene& scene,
                      PanelRequests& requests) const;
  std::optional<VolumeSlice> slice_of(const VolumeLook& look) const;

  std::optional<gl::VolumePainter> painter_;  ///< made when it is first needed
  /// The inputs that the cells and the scale were made from.
  struct Made {
    std::shared_ptr<const MapLine> line;
    ViewProduct product = ViewProduct::weights;
    ScaleKind scale = ScaleKind::log2;
    std::string colormap, segment;
    friend bool operator==(const Made&, const Made&) = default;
  } made_;
  /// The inputs that the picture was drawn from.
  struct Drawn {
    Made made;
    VolumeLook look;
    ViewTheme theme = ViewTheme::dark;
    int width = 0, height = 0;
    int64_t plane = 0;  ///< SlicePicture::version()
    friend bool operator==(const Drawn&, const Drawn&) = default;
  };
  std::optional<Drawn> drawn_;
  PictureRest rest_;
  SlicePicture plane_;
  TokenGrid filmed_;
  std::optional<ColourScale> scale_;
  SeenSpecials specials_;
  std::vector<uint8_t> evicted_;  ///< [tokens]: 1 where a cache had dropped it; or empty
  VolumeCells cells_;
  std::optional<VolumeCamera> camera_;  ///< of the pane as it was drawn last
  bool turning_ = false;                ///< the mouse was pressed on the volume and has moved since
};

/// The button at the right end of the query pane's header that turns film to volume and back, in a
/// narrow pane of the line below it. Gives what it leaves of the header and of
/// that line.
struct BesideButton {
  ScreenRect header;
  float line_end = 0;
};
BesideButton volume_button(const Ui& ui, const std::string& pane, const ScreenRect& rect,
                           const Scene& scene, PanelRequests& requests);

}  // namespace attnscope
