#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "io/pictures/picture_page.h"
#include "io/pictures/text/system_fonts.h"
#include "io/pictures/text/text_ink.h"
#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const PictureStyle kDark;

namespace fs = std::filesystem;

const std::array kSizes{kDark.small_height, kDark.text_height, kDark.title_height};

/// A system without any font.
const SystemFonts& no_fonts() {
  static const SystemFonts fonts(std::vector<fs::path>{});
  return fonts;
}

int64_t ink_of(const std::vector<LetterInk>& letters) {
  int64_t sum = 0;
  for (const LetterInk& letter : letters) {
    sum = std::accumulate(letter.levels.begin(), letter.levels.end(), sum);
  }
  return sum;
}

/// Sizes fit each other and no level is beyond the darkest.
bool is_sound(const LetterInk& letter) {
  return letter.levels.size() ==
             static_cast<size_t>(letter.width) * static_cast<size_t>(letter.height) &&
         std::all_of(letter.levels.begin(), letter.levels.end(),
                     [](uint8_t level) { return level <= kFullInk; });
}

uint8_t level_at(const LetterInk& letter, int x, int y) {
  return letter.levels[static_cast<size_t>(y - letter.y) * static_cast<size_t>(letter.width) +
                       static_cast<size_t>(x - letter.x)];
}

/// The UTF-8 of one character.
std::string utf8(char32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

/// Puts tests/data/fonts/boxes.ttc into a folder below this one, under another name.
fs::path install_boxes(const TemporaryFolder& folder, const std::string& name) {
  fs::create_directories(folder.path() / "truetype");
  const fs::path file = folder.path() / "truetype" / name;
  fs::copy_file(fs::path(project_folder()) / "tests/data/fonts/boxes.ttc", file);
  return file;
}

}  // namespace

TEST_CASE("every letter of the embedded font is drawn, and no two are alike") {
  const std::vector<std::pair<char32_t, char32_t>> ranges{{0x21, 0x7e},   {0xa1, 0xac},
                                                          {0xae, 0x17f},  // Latin with Extended-A
                                                          {0x391, 0x3a1}, {0x3a3, 0x3c9},  // Greek
                                                          {0x400, 0x45f}};  // Cyrillic
  std::set<std::pair<int, std::vector<uint8_t>>> seen;
  size_t letters = 0;
  for (const auto& [first, last] : ranges) {
    for (char32_t c = first; c <= last; ++c, ++letters) {
      INFO("U+" << std::hex << static_cast<uint32_t>(c));
      const std::string text = utf8(c);
      const auto ink = text_ink(text, 42, &no_fonts());
      REQUIRE(ink.size() == 1);
      CHECK(is_sound(ink[0]));
      CHECK(ink_of(ink) > 0);
      CHECK(text_width(text, 42, &no_fonts()) > 0);
      seen.insert({ink[0].y, ink[0].levels});
    }
  }
  // Letters of the three scripts that look alike, such as A, Α and А.
  CHECK(seen.size() > letters - 70);
  CHECK(seen.size() < letters);
  for (const char* symbol :
       {"·", "×", "–", "—", "…", "→", "−", "≤", "∞", "√", "■", "«", "„", "€"}) {
    INFO(symbol);
    const auto ink = text_ink(symbol, kDark.text_height, &no_fonts());
    REQUIRE(ink.size() == 1);
    // Not the box of a missing letter.
    CHECK(ink[0].height < 20);
  }
}

TEST_CASE("capitals and digits fill their height, from the upper edge to the base line") {
  for (const int size : kSizes) {
    const LetterInk h = text_ink("H", size, &no_fonts()).front();
    INFO(size);
    for (int x = h.x; x < h.x + h.width; ++x) {
      // Sharp edges: no row is paler than those between.
      CHECK(level_at(h, x, 0) == level_at(h, x, 1));
      CHECK(level_at(h, x, size - 1) == level_at(h, x, 1));
      if (h.y < 0) CHECK(level_at(h, x, -1) == 0);
    }
    CHECK(h.y + h.height == size);
    const LetterInk g = text_ink("g", size, &no_fonts()).front();
    CHECK(g.y > 0);
    CHECK(g.y + g.height > size);
    for (const char digit : std::string("0123456789")) {
      CHECK(text_width(std::string(8, digit), size) == text_width("00000000", size));
    }
  }
}

TEST_CASE("text is as wide as its letters together, in every script and size") {
  CHECK(text_width("", kDark.text_height) == 0);
  CHECK(text_ink("", kDark.text_height).empty());
  CHECK(text_ink(" \t ", kDark.text_height).empty());
  // Advances of DejaVu Sans in units of 2048 to the em, capitals of 1493.
  CHECK(text_width("0", 1493) == 1303);
  CHECK(text_width("Hello", 1493) == 1540 + 1260 + 569 + 569 + 1253);
  CHECK(text_width("Привет", 1493, &no_fonts()) == 1540 + 1300 + 1331 + 1206 + 1260 + 1194);
  CHECK(text_width("λόγος", 1493, &no_fonts()) == 1212 + 1253 + 1212 + 1253 + 1202);
  for (const std::string text :
       {"The quick brown fox", "Ξεσκεπάζω", "Съешь ещё", "naïve Łódź", "→ ≤ …"}) {
    INFO(text);
    for (const int size : kSizes) {
      const int width = text_width(text, size, &no_fonts());
      const auto ink = text_ink(text, size, &no_fonts());
      // Overhangs aside, ink stays within the width.
      CHECK(ink.front().x >= -size / 7 - 1);
      CHECK(ink.back().x + ink.back().width <= width + size / 7 + 1);
      CHECK(fitting_bytes(text, size, width, &no_fonts()) == text.size());
      CHECK(fitting_bytes(text, size, width - 1, &no_fonts()) < text.size());
      CHECK(std::abs(2 * width - text_width(text + text, size, &no_fonts())) <= 1);
      for (const LetterInk& letter : ink) CHECK(is_sound(letter));
    }
  }
  CHECK(fitting_bytes("жук", kDark.text_height, text_width("жу", kDark.text_height)) == 4);
  CHECK(fitting_bytes("жук", kDark.text_height, 0) == 0);
}

TEST_CASE("marks that only say how to write take no place") {
  CHECK(text_width("a\u200b\u00ad\ufe0f\ufeffb", kDark.text_height, &no_fonts()) ==
        text_width("ab", kDark.text_height));
  CHECK(text_ink("a\u200db", kDark.text_height, &no_fonts()).size() == 2);
  // A combining accent stands over its letter.
  CHECK(text_width("e\u0301", kDark.text_height, &no_fonts()) ==
        text_width("e", kDark.text_height));
}

TEST_CASE("bytes that are no UTF-8 are each seen as one odd letter") {
  const int odd = text_width("\ufffd\ufffd\ufffd\ufffd", 1493, &no_fonts()) / 4;
  for (const std::string bytes : {"\xff", "\xc3", "\xe7\x8c", "\x80", "\xf0\x9f\x98"}) {
    CHECK(text_width(bytes, 1493, &no_fonts()) == odd);
    CHECK(text_ink("a" + bytes + "b", kDark.text_height, &no_fonts()).size() == 3);
  }
  CHECK(text_ink("\xff\xc3", kDark.text_height, &no_fonts()).size() == 2);
}

TEST_CASE("a letter that no font has is a box with its code") {
  const std::string cat = "\u732b", dog = "\u72d7", face = "\U0001f600";
  for (const int size : kSizes) {
    INFO(size);
    const auto ink = text_ink(cat, size, &no_fonts());
    REQUIRE(ink.size() == 1);
    const LetterInk& box = ink[0];
    CHECK(is_sound(box));
    const int right = box.x + box.width - 1, bottom = box.y + box.height - 1;
    for (int x = box.x; x <= right; ++x) {
      CHECK(level_at(box, x, box.y) == kFullInk);
      CHECK(level_at(box, x, bottom) == kFullInk);
    }
    for (int y = box.y; y <= bottom; ++y) {
      CHECK(level_at(box, box.x, y) == kFullInk);
      CHECK(level_at(box, right, y) == kFullInk);
    }
    CHECK(text_width(cat, size, &no_fonts()) > box.width);
    // Other codes are other boxes of the same size; codes of five digits and more are wider.
    const LetterInk other = text_ink(dog, size, &no_fonts()).front();
    CHECK(other.width == box.width);
    CHECK(other.levels != box.levels);
    CHECK(text_ink(face, size, &no_fonts()).front().width > box.width);
    CHECK(text_ink(cat + dog, size, &no_fonts())[1].levels == other.levels);
  }
}

TEST_CASE("a letter that the embedded font lacks comes from the system's fonts") {
  const std::string cat = "\u732b";
  // The em is as large as the embedded font's: 2048/1493 of the capitals. Face 2 has 900 units of
  // 1000, the first one 300.
  const int size = 73;
  const double em = size * 2048.0 / 1493;
  for (const auto& [name, units] :
       {std::pair<std::string, int>{"NotoSansCJK-Regular.ttc", 900}, {"wqy-microhei.ttc", 300}}) {
    INFO(name);
    const TemporaryFolder folder;
    const fs::path file = install_boxes(folder, name);
    const SystemFonts system({folder.path()});
    CHECK(system.find({"none.ttf", name}) == file);
    CHECK_FALSE(system.find({"none.ttf"}).has_value());
    const SystemFont* font = system.with_letter(0x732b);
    REQUIRE(font != nullptr);
    CHECK(font->face->number() == (units == 900 ? 2 : 0));
    CHECK(font->face->units_per_em() == 1000);
    CHECK(font->face->line_height() == 1200);
    CHECK(system.with_letter(0x732c) == nullptr);
    CHECK(text_width(cat, size, &system) == static_cast<int>(std::ceil(em)));
    const auto ink = text_ink(cat, size, &system);
    REQUIRE(ink.size() == 1);
    CHECK(ink[0].height == static_cast<int>(std::ceil(em * units / 1000)));
    CHECK(ink[0].y + ink[0].height == size);
    CHECK(level_at(ink[0], size / 2, size - 10) == kFullInk);
    CHECK(text_ink("\U00020000", size, &system)[0].levels == ink[0].levels);
    // Others stay boxes, and the embedded letters are the same with and without.
    CHECK(text_ink("\u72d7", size, &system)[0].levels ==
          text_ink("\u72d7", size, &no_fonts())[0].levels);
    CHECK(text_ink("aЖ" + cat, size, &system)[1].levels == text_ink("aЖ", size)[1].levels);
  }
}

TEST_CASE("a font file that is none is passed over") {
  const TemporaryFolder folder;
  install_boxes(folder, "wqy-microhei.ttc");
  std::ofstream(folder.path() / "NotoSansCJK-Regular.ttc") << "no font at all, but text";
  std::ofstream(folder.path() / "NotoSansSC-Regular.otf") << "";
  fs::create_directory(folder.path() / "NotoSansSC-Regular.ttf");
  const SystemFonts fonts({"/nowhere", folder.path()});
  const SystemFont* font = fonts.with_letter(0x732b);
  REQUIRE(font != nullptr);
  CHECK(font->file.filename() == "wqy-microhei.ttc");
}

TEST_CASE("text mixes with what it is written on, and is cut off at the edges") {
  const Rgb paper{10, 20, 30}, colour{250, 150, 50};
  Canvas canvas(40, 20, paper);
  canvas.text(2, 3, "HI", kDark.text_height, colour);
  int full = 0, between = 0;
  for (int y = 0; y < 20; ++y) {
    for (const Rgb c : canvas.row(y)) {
      full += c == colour;
      between += c.r > paper.r && c.r < colour.r;
      CHECK((c.r >= paper.r && c.r <= colour.r));
      // On the line from the one colour to the other.
      CHECK(std::abs((c.r - paper.r) * 130 - (c.g - paper.g) * 240) <= 240);
    }
  }
  CHECK(full > 40);
  CHECK(between > 20);
  for (const auto& [x, y] :
       {std::pair{-8, 3}, {35, 3}, {2, -9}, {2, 15}, {-500, -500}, {500, 500}}) {
    canvas.text(x, y, "\u732bHÅg", kDark.title_height, colour);
  }
}

TEST_CASE("a sheet of text looks as it did, to the pixel") {
  const std::vector<std::string> lines{"The five boxing wizards jump quickly. 0123456789",
                                       "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ · × – — … → ≤ ∞",
                                       "Příliš žluťoučký kůň, Çağ, Łódź, ñandú, đặt tên",
                                       "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
                                       "Съешь ещё этих мягких французских булок",
                                       "\u732b \U0001f600 \xff"};
  Canvas canvas(760, 330, kDark.background);
  int y = 12;
  for (const std::string& line : lines) {
    // Drawn without the system's fonts, which differ.
    for (const LetterInk& letter : text_ink(line, kDark.text_height, &no_fonts())) {
      for (int i = 0; i < letter.width * letter.height; ++i) {
        const auto level = static_cast<uint8_t>(letter.levels[static_cast<size_t>(i)] * 17);
        if (level == 0) continue;
        canvas.fill({12 + letter.x + i % letter.width, y + letter.y + i / letter.width, 1, 1},
                    {level, level, level});
      }
    }
    y += 30;
  }
  canvas.text(12, y, lines[0], kDark.small_height, kDark.text);
  canvas.text(12, y + 24, lines[1], kDark.title_height, kDark.query);
  canvas.text(12, y + 60, lines[4], kDark.title_height, kDark.key);
  const fs::path golden = fs::path(project_folder()) / "tests/golden/text.png";
  if (std::getenv("ATTNSCOPE_UPDATE_GOLDEN") != nullptr)
    write_picture(canvas, {}, "", golden, true);
  const Picture then = read_png(golden.string());
  REQUIRE(then.width == 760);
  REQUIRE(then.height == 330);
  int wrong = 0;
  for (int at = 0; at < 330; ++at) {
    for (int x = 0; x < 760; ++x) wrong += !(then.at(x, at) == canvas.at(x, at));
  }
  CHECK(wrong == 0);
}
