#include "io/pictures/page_bands.h"

#include <utility>
#include <variant>

namespace attnscope {

PageBands page_of(const Canvas& canvas) {
  return {canvas.width(), canvas.height(), [&canvas](const TakeBand& take) { take(canvas); }};
}

std::vector<CanvasMark> draw_bands(const PageBands& page,
                                   const std::function<void(std::span<const Rgb> row)>& put_row) {
  std::vector<CanvasMark> marks;
  int top = 0;
  page.draw([&](const Canvas& band) {
    for (int y = 0; y < band.height(); ++y) put_row(band.row(y));
    for (CanvasMark mark : band.marks()) {
      if (auto* const text = std::get_if<TextMark>(&mark)) {
        text->y += top;
      } else {
        for (PixelPoint& point : std::get<LineMark>(mark).points) point.y += top;
      }
      marks.push_back(std::move(mark));
    }
    top += band.height();
  });
  return marks;
}

}  // namespace attnscope
