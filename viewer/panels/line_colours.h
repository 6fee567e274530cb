#pragma once

#include "viewer/panels/legend.h"
#include "viewer/panels/scene.h"

namespace attnscope {

/// The tokens that the scene's line has a number for, and those that it belongs to.
const TokenNames& shown_side(const Scene& scene);
const TokenNames& chosen_side(const Scene& scene);
/// Whether the line is of the words that are chosen.
bool is_of_words(const Scene& scene);
/// "(5, 10, 22)", "mean of 4 tokens", "red + circle": whose line it is.
std::string chosen_line_text(const Scene& scene);
/// "sum of 2 words' weight", "weight".
std::string line_unit(const Scene& scene);
/// "exact row", "column of u8 codes, ± 3.3 %".
std::string exactness_text(const Scene& scene);

bool is_masked(const MapLine& line, size_t at);
/// The colours of the scene's line: one range for all that is filmed, so that film and volume look
/// alike. `filmed` is the line's side, with what is filmed as its video.
ColourScale line_scale(const Scene& scene, const TokenGrid& filmed);
/// Of the tokens that are drawn.
SeenSpecials specials_of(const MapLine& line, const ColourScale& scale, IndexRange drawn);

}  // namespace attnscope
