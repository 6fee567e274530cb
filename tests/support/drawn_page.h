#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/pictures/page_bands.h"
#include "io/pictures/text/text_ink.h"
#include "tests/support/catch.h"

namespace attnscope::test {

/// All bands of a page as one canvas, with its texts and lines.
inline Canvas drawn_page(const PageBands& page, const PictureStyle& look) {
  Canvas all(page.width, page.height, look);
  int y = 0;
  const auto marks = draw_bands(page, [&](std::span<const Rgb> row) {
    std::copy(row.begin(), row.end(), all.row(y++).begin());
  });
  for (const CanvasMark& mark : marks) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) {
      all.text(text->x, text->y, text->text, text->cap_height, text->colour);
    } else {
      const auto& line = std::get<LineMark>(mark);
      all.polyline(line.points, line.width, line.colour);
    }
  }
  return all;
}

/// Checks that each text is within the page, and on none of the others.
inline void check_page_texts(const Canvas& page) {
  std::vector<const TextMark*> texts;
  for (const CanvasMark& mark : page.marks()) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) texts.push_back(text);
  }
  REQUIRE(texts.size() > 5);
  const auto box_of = [](const TextMark& text) {
    return PixelRect{text.x, text.y, text_width(text.text, text.cap_height), text.cap_height};
  };
  std::string cut, overlapping;
  for (size_t i = 0; i < texts.size(); ++i) {
    const PixelRect a = box_of(*texts[i]);
    const bool inside =
        a.x >= 0 && a.y >= 0 && a.x + a.width <= page.width() && a.y + a.height <= page.height();
    if (!inside) cut += texts[i]->text + "; ";
    for (size_t j = 0; j < i; ++j) {
      const PixelRect b = box_of(*texts[j]);
      const bool apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y ||
                         b.y + b.height <= a.y;
      if (!apart) overlapping += texts[j]->text + " on " + texts[i]->text + "; ";
    }
  }
  CHECK(cut == "");
  CHECK(overlapping == "");
}

/// The texts of a page, a line each.
inline std::string page_texts(const Canvas& page) {
  std::string all;
  for (const CanvasMark& mark : page.marks()) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) all += text->text + "\n";
  }
  return all;
}

}  // namespace attnscope::test
