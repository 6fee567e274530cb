#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/pictures/canvas.h"
#include "io/pictures/text/font_subset.h"

namespace attnscope {

/// A piece of a line of text in one font.
struct LetterRun {
  size_t font = 0;
  std::vector<size_t> letters;  ///< places in the font's codes
  std::string text;             ///< UTF-8
  double x = 0, end = 0;        ///< pixels of the page
};

/// A font that the texts of a page are written in: of its letters those alone that they have.
struct PageFont {
  std::string name;  ///< "DejaVuSans" of the program's own, else "Fallback1" …
  FontSubset letters;
};

/// The fonts of a page's texts, for files that bring them along. Letters of fonts that cannot be
/// brought are none of its runs: the canvas has them in its pixels.
class PageFonts {
 public:
  explicit PageFonts(std::span<const CanvasMark> marks);
  const std::vector<PageFont>& fonts() const { return fonts_; }
  /// A text in the order it is read.
  std::vector<LetterRun> runs(const TextMark& text) const;

 private:
  std::vector<const FontFace*> faces_;
  std::vector<PageFont> fonts_;
};

}  // namespace attnscope
