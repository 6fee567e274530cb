#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "viewer/gl/picture_texture.h"
#include "viewer/panels/map_layer.h"
#include "viewer/panels/row/film_layout.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/row/film_content.h"

namespace attnscope {

/// The line and the tokens that a film is of, beside the scene. Borrowed for one frame.
struct Filmed {
  const std::shared_ptr<const MapLine>& line;
  const TokenGrid& tokens;  ///< of the line, with what is filmed as their video
  const ColourScale& scale;
  std::span<const uint8_t> evicted = {};   ///< [tokens]: 1 where a cache had dropped it; or empty
  bool picks = false;                      ///< a click on a cell picks it as the query
  std::optional<ChosenQuery> picked = {};  ///< what is picked already; Ctrl adds to it
  std::vector<int64_t> outlined = {};      ///< tokens
  ImU32 outline = 0, other = 0;  ///< colours of these, and of the other end under the mouse
};

/// The frames of a film: all of them as a strip, or one with a bar to play through; as colours, or
/// over the pictures of the video.
class FilmView {
 public:
  explicit FilmView(gl::MapPainter& painter) : layer_(painter) {}

  /// Makes the film of a line, where something of it has changed.
  void take(const Scene& scene, const Filmed& filmed);
  /// Draws it into `area`; pictures that it would like to have go into `requests`.
  void draw(const Ui& ui, const ScreenRect& area, const Scene& scene, const Filmed& filmed,
            PanelRequests& requests);
  /// Under what was drawn last.
  float bottom() const { return bottom_; }
  const FilmContent& content() const { return content_; }
  /// Why a picture of the video cannot be shown, one line; empty: all can.
  const std::string& problem() const { return problem_; }
  /// The token that is outlined, where it is one and among the cells.
  std::optional<LatentCoord> outlined() const { return outlined_place_; }
  /// True unless a picture of the frames that were drawn last is still to come.
  bool complete() const { return complete_; }

 private:
  /// The settings that all pictures in the texture were made with.
  struct Look {
    uint64_t film = 0;
    FilmMode mode = FilmMode::tint;
    Difference how = Difference::off;
    float opacity = 1;
    double factor = 1, low = 0, high = 0;
    ScaleKind kind = ScaleKind::log2;
    Colormap map = Colormap::viridis;
    int width = 0, height = 0;
    size_t slots = 0;
    friend bool operator==(const Look&, const Look&) = default;
  };
  void upload_maps();
  bool draw_picture(const Ui& ui, size_t slot, size_t moment, const ScreenRect& rect,
                    const Scene& scene, const Filmed& filmed, PanelRequests& requests);
  void begin_pictures(const Ui& ui, const Scene& scene, const Filmed& filmed, size_t slots);
  void ask_ahead(PanelRequests& requests) const;
  std::string name_of(size_t moment) const;
  void turn_wheel(const Scene& scene, PanelRequests& requests);
  void add_map(size_t moment, const ScreenRect& rect);
  void draw_evicted(const Ui& ui, bool over) const;
  void draw_evicted(const Ui& ui, int64_t slot, bool over) const;
  void draw_outlines(const Ui& ui, const Scene& scene, const Filmed& filmed) const;
  void draw_pins(const Ui& ui, const Scene& scene, const Filmed& filmed) const;
  void mouse(const Ui& ui, const Scene& scene, const Filmed& filmed, PanelRequests& requests);
  static void pick(const Filmed& filmed, std::vector<int64_t> tokens, PanelRequests& requests);
  void brush(const Ui& ui, const Filmed& filmed, int64_t slot, LatentCoord at,
             PanelRequests& requests);
  void draw_bar(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  size_t moment_of_slot(size_t slot) const { return first_ + slot; }
  int64_t latent_of_slot(size_t slot) const;

  MapLayer layer_;
  gl::GridTexture maps_;
  gl::PictureTexture pictures_;
  size_t known_pictures_ = 0;  ///< of the video, that the content was made with
  FilmLayout film_;
  FilmContent content_;
  std::shared_ptr<const MapLine> line_;
  IndexRange video_;
  uint64_t made_ = 0;        ///< how many films were made
  int64_t map_columns_ = 1;  ///< moments side by side in the texture of maps
  size_t first_ = 0;         ///< the moment in the first slot
  Look look_;
  std::vector<int64_t> drawn_;  ///< [slots]: the moment whose picture is there; −1: none
  float tall_ = 1;              ///< a cell's height over its width
  double outlined_ = 0;         ///< FilmContent::outlined()
  std::optional<LatentCoord> outlined_place_;
  int64_t left_ = 0;  ///< pixels that may still be made in this frame
  float bottom_ = 0;
  std::optional<LatentCoord> brushed_from_;  ///< where the button went down
  bool complete_ = true;
  std::string problem_;
};

}  // namespace attnscope
