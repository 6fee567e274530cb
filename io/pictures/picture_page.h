#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/pictures/page_bands.h"
#include "io/pictures/picture_style.h"

namespace attnscope {

class StagedFile;

/// The text above a picture that explains it: a title, and quiet lines below it. Lines too long for
/// a page are broken at their " · "; pieces that are still too long end in "…".
struct PictureText {
  std::string title;
  std::vector<std::string> lines;
};

/// Pixels from the top of the page to what stands below the header.
int header_height(const PictureText& text, const PictureStyle& look);
/// Pixels that the header's longest line takes.
int header_width(const PictureText& text, const PictureStyle& look);
/// Draws it into the upper left corner of the page, within the margin. A title of the style's own
/// stands in place of the text's. Where the page's width is given, lines are broken at words too.
void draw_header(Canvas& canvas, const PictureText& text, const PictureStyle& look);
/// Pixels from one line of text to the next.
int line_rise(const PictureStyle& look);
/// The text in lines of at most `width` pixels, broken at spaces; words that are longer end in "…".
std::vector<std::string> wrapped_words(std::string_view text, int width, int cap_height);

struct PageSize {
  int width = 0, height = 0;
  int64_t band_bytes = 0;  ///< of memory, where it is drawn in bands; 0: it is drawn as a whole
};
/// Of memory while it is drawn.
int64_t page_bytes(PageSize page);
/// A side of a cell: the style's; or the largest of at most `most` pixels whose page, as `size_of`
/// gives it, has the style's size; or `usual` where it has none. Sizes must grow with the cell.
/// Throws Error(usage) where no cell fits, with the least page that does; `way_out` says what
/// helps.
int fitting_cell(const PictureStyle& look, int usual, int most,
                 const std::function<PageSize(int)>& size_of, std::string_view way_out);
/// The largest side of at most `most` pixels whose page, which has the style's width, fits; 0: none
/// does.
int largest_cell(const PictureStyle& look, int most, const std::function<PageSize(int)>& size_of);
/// The cells a side of a map that a page has room for beside labels and legend; at most `usual`.
int64_t cells_on_page(const PictureStyle& look, int64_t usual);
/// Throws that Error(usage) where the page of a picture that needs `least` does not have it.
void check_page(const PictureStyle& look, PageSize least, std::string_view way_out);

/// The text, or as much of its beginning as takes `width` pixels with a "…" behind it; capitals of
/// `cap_height` pixels.
std::string elided(const std::string& text, int width, int cap_height);
/// As much of its end, in whole words, with a "…" before it.
std::string elided_front(const std::string& text, int width, int cap_height);

/// The endings of pictures that do not move: .png, .svg, .pdf.
std::vector<std::string_view> picture_endings();
/// True of those that keep texts and lines as such (PictureStyle::vector).
bool is_vector_name(const std::filesystem::path& path);
/// Writes a page as the ending of its name says: .svg and .pdf with the size that the style's dpi
/// gives, .png with its dpi in it where these are not a screen's. Through PATH.part, a band at a
/// time; an existing file is replaced with `force` only. Throws Error(file).
void write_picture(const PageBands& page, const PictureStyle& look, const std::string& title,
                   const std::filesystem::path& path, bool force);
void write_picture(const Canvas& canvas, const PictureStyle& look, const std::string& title,
                   const std::filesystem::path& path, bool force);
/// As write_picture(), without giving the file its name.
void put_picture(const PageBands& page, const PictureStyle& look, const std::string& title,
                 StagedFile& file);
void put_picture(const Canvas& canvas, const PictureStyle& look, const std::string& title,
                 StagedFile& file);
/// The dpi that a .png tells; 0: none.
double told_dpi(const PictureStyle& look);

}  // namespace attnscope
