#include "io/pictures/page_fonts.h"

#include <algorithm>
#include <set>

#include "io/files/utf8.h"
#include "io/pictures/text/embedded_font.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {

PageFonts::PageFonts(std::span<const CanvasMark> marks) {
  std::vector<std::set<char32_t>> codes;
  for (const CanvasMark& mark : marks) {
    const auto* const text = std::get_if<TextMark>(&mark);
    if (text == nullptr) continue;
    for (const PlacedLetter& letter : placed_letters(text->text, text->cap_height)) {
      if (letter.face == nullptr || !has_truetype_outlines(*letter.face)) continue;
      const auto at = std::find(faces_.begin(), faces_.end(), letter.face) - faces_.begin();
      if (at == std::ssize(faces_)) {
        faces_.push_back(letter.face);
        codes.emplace_back();
      }
      codes[static_cast<size_t>(at)].insert(letter.code);
    }
  }
  for (size_t i = 0; i < faces_.size(); ++i) {
    const bool own = faces_[i]->file().data() == embedded_font().data();
    const std::vector<char32_t> letters(codes[i].begin(), codes[i].end());
    fonts_.push_back({own ? "DejaVuSans" : "Fallback" + std::to_string(i),
                      make_font_subset(*faces_[i], letters)});
  }
}

std::vector<LetterRun> PageFonts::runs(const TextMark& text) const {
  std::vector<LetterRun> runs;
  const FontFace* last = nullptr;
  for (const PlacedLetter& letter : placed_letters(text.text, text.cap_height)) {
    const auto face = std::find(faces_.begin(), faces_.end(), letter.face);
    if (face == faces_.end()) {
      last = nullptr;
      continue;
    }
    const auto font = static_cast<size_t>(face - faces_.begin());
    if (letter.face != last) {
      runs.push_back({font, {}, "", text.x + letter.begin, 0});
    }
    last = letter.face;
    LetterRun& run = runs.back();
    const std::vector<char32_t>& codes = fonts_[font].letters.codes;
    run.letters.push_back(static_cast<size_t>(
        std::lower_bound(codes.begin(), codes.end(), letter.code) - codes.begin()));
    append_character(letter.code, run.text);
    run.end = text.x + letter.end;
  }
  return runs;
}

}  // namespace attnscope
