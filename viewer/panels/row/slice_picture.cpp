#include "viewer/panels/row/slice_picture.h"

#include <algorithm>

#include "viewer/view/maps/video_frame.h"

namespace attnscope {
namespace {

/// Of the picture's longer side: a pane's worth.
constexpr int64_t kPixels = 768;

const TokenGrid& side_of(const Scene& scene) {
  return *(scene.line->request.reverse ? scene.queries : scene.keys).grid;
}

}  // namespace

bool SlicePicture::has_pictures(const Scene& scene, const TokenGrid& filmed) {
  return !scene.pictures.empty() && filmed.has_grid() && !scene.state.against() &&
         filmed.video_range() == side_of(scene).video_range();
}

void SlicePicture::take(const Scene& scene, const TokenGrid& filmed, const ColourScale& scale,
                        std::span<const uint8_t> evicted, int64_t t, PanelRequests& requests) {
  problem_.clear();
  const FilmLook& look = scene.state.film;
  if (!look.over || !has_pictures(scene, filmed)) return drop();
  const Drawn wanted{scene.line,        filmed.video_range(), t,
                     look.mode,         look.opacity,         scene.factor,
                     scale.range().low, scale.range().high,   scale.kind(),
                     scale.map()};
  const FilmContent content =
      film_content(*scene.line, filmed, true, scene.pictures, FilmTime::latent, evicted);
  const auto moment = static_cast<size_t>(t);
  if (!content.has_pictures || moment >= content.moments.size()) return drop();
  const int64_t picture = content.moments[moment].picture;
  if (picture < 0) return drop();
  const int64_t longer = std::max(content.height, content.width);
  const FrameRequest request{picture, static_cast<int>(kPixels * content.width / longer),
                             static_cast<int>(kPixels * content.height / longer)};
  // Kept as long as it is seen, so that it is not read again.
  requests.frames.push_back(request);
  if (drawn_ == wanted) return;
  const auto frame = find(scene.tiles, request);
  if (!frame) {
    drop();
    complete_ = false;
    return;
  }
  if (!frame->problem.empty()) {
    problem_ = frame->problem;
    return drop();
  }
  FilmOver over;
  over.mode = look.mode;
  over.opacity = static_cast<double>(look.opacity);
  over.outlined = content.outlined(scene.factor);
  over.line = std::max(1, static_cast<int>(kPixels / 160));
  texture_.resize(request.width, request.height);
  texture_.update(
      0, 0,
      film_over(frame->image, content.numbers_at(moment, scene.factor),
                static_cast<int>(content.height), static_cast<int>(content.width), scale, over));
  drawn_ = wanted;
  complete_ = true;
  ++version_;
}

}  // namespace attnscope
