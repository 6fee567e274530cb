#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/console.h"
#include "cli/common/parser.h"
#include "core/base/memory_budget.h"
#include "io/pictures/film/filmstrip.h"
#include "io/pictures/picture_style.h"

namespace attnscope {

/// The options of how a picture looks, as they were given.
struct PictureOptions {
  std::string style = "dark";
  std::string width, size;  ///< "85mm", "1920x1080px"
  double dpi = 0, font_size = 0;
  int64_t cell = 0;
  std::optional<std::string> title;
  std::string legend = "on";
  std::string frames;
  int64_t columns = 0;
};

/// Adds --style --width --size --dpi --font-size --title --legend; of pictures with cells --cell,
/// of films --frames and --columns.
void add_picture_options(CommandParser& command, PictureOptions& options, bool cells = true,
                         bool films = true);
/// Throws Error(usage) where one of them was given and `out` is no picture; an empty `out` is none.
/// `films`: it may be one that moves.
void check_picture_options(const CommandParser& command, const std::string& out, bool films);
/// The style that they choose for a picture of this name. Throws Error(usage) for what does not go
/// together.
PictureStyle style_of(const PictureOptions& options, const std::string& out);
/// How a film of so many latent frames is drawn. Throws Error(usage) where --frames names others.
FilmStyle film_style_of(const PictureOptions& options, const std::string& out, int64_t frames);
/// Says where a film is higher than one looks at, and what makes it smaller.
void tell_large_film(const std::string& out, PageSize page, const FilmStyle& film,
                     const Console& console);
/// A picture that is not drawn yet.
struct PlannedPicture {
  int width = 0, height = 0;
  int64_t bytes = 0;  ///< of memory while it is drawn
  std::string size;   ///< page_text()
};
/// Takes the memory that drawing it needs. Throws Error(resource) that tells what makes it smaller.
MemoryReservation reserve_page(MemoryBudget& budget, PageSize page);
PlannedPicture planned_picture(PageSize page, const PictureStyle& look);
/// "1204 × 960 pixels", and where the style has another dpi than screens its size on paper.
std::string page_text(int width, int height, const PictureStyle& look);

}  // namespace attnscope
