#pragma once

#include "viewer/panels/legend.h"
#include "viewer/panels/scene.h"

namespace attnscope {

/// The tokens that the scene's line has a number for, and those that it belongs to.
const TokenNames& shown_side(const Scene& scene);
const TokenNames& chosen_side(const Scene& scene);
bool is_masked(const MapLine& line, size_t at);
/// The colours of the scene's line: one range for all that is filmed, so that film and volume look
/// alike. `filmed` is the line's side, with what is filmed as its video.
ColourScale line_scale(const Scene& scene, const TokenGrid& filmed);
/// Tokens of the line that a cache had dropped: 1; empty: none.
std::vector<uint8_t> evicted_of(const Scene& scene, const TokenGrid& filmed);
/// Of the tokens that are drawn. What was evicted is told as that, and not as masked too.
SeenSpecials specials_of(const MapLine& line, const ColourScale& scale,
                         const std::vector<uint8_t>& evicted, IndexRange drawn);

}  // namespace attnscope
