#pragma once

#include <string>

#include "viewer/panels/scene.h"

namespace attnscope {

// The scene's line in words, for the film and its volume. All but no_line_text() need a line.

/// True where the line is of the words that are chosen, not of a query.
bool is_of_words(const Scene& scene);
/// "(5, 10, 22)", "mean of 4 tokens", or the words.
std::string chosen_line_text(const Scene& scene);
/// The remark behind that text on how the line was chosen: "picked", "where it looks".
std::string how_text(const Scene& scene);
/// "sum of 2 words' weight", "weight".
std::string line_unit(const Scene& scene);
/// "exact row", "column of u8 codes, ± 3.34 %".
std::string exactness_text(const Scene& scene);
/// How much of a row lies on the text and on which of its words, or how many of its numbers are not
/// there. `filmed` is the line's side with what is filmed as its video. Empty: nothing to tell.
std::string share_text(const Scene& scene, const TokenGrid& filmed);
/// Why there is no line, or none that is filmed; empty: there is one.
std::string no_line_text(const Scene& scene);

}  // namespace attnscope
