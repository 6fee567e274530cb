#pragma once

#include <string>

#include "viewer/gl/picture_texture.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/row/film_content.h"

namespace attnscope {

/// The picture of the video at a plane of latent frames, with the row's numbers over it as the film
/// has them.
class SlicePicture {
 public:
  /// Asks for the picture of latent frame `t` and draws the numbers over it, where the film is over
  /// the video and there is one; else there is none. `filmed` has what is filmed as its video.
  void take(const Scene& scene, const TokenGrid& filmed, const ColourScale& scale,
            std::span<const uint8_t> evicted, int64_t t, PanelRequests& requests);
  void drop() { drawn_.reset(), complete_ = true; }
  /// True unless the picture is still to come.
  bool complete() const { return complete_; }
  /// The texture, its first row the upper one; 0: none.
  unsigned name() const { return drawn_ ? texture_.name() : 0; }
  /// Another one for every picture that name() has had.
  int64_t version() const { return drawn_ ? version_ : 0; }
  /// Why a picture cannot be had; empty: it can, or none is wanted.
  const std::string& problem() const { return problem_; }
  /// True where the line can lie over pictures of the video: it is no difference, and they exist.
  static bool has_pictures(const Scene& scene, const TokenGrid& filmed);

 private:
  struct Drawn {
    std::shared_ptr<const MapLine> line;
    IndexRange video;
    int64_t t = 0;
    FilmMode mode = FilmMode::tint;
    float opacity = 1;
    double factor = 1, low = 0, high = 0;
    ScaleKind kind = ScaleKind::log2;
    Colormap map = Colormap::viridis;
    friend bool operator==(const Drawn&, const Drawn&) = default;
  };
  gl::PictureTexture texture_;
  std::optional<Drawn> drawn_;
  int64_t version_ = 0;
  bool complete_ = true;
  std::string problem_;
};

}  // namespace attnscope
