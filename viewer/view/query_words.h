#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/problem/token_grid.h"
#include "viewer/view/view_state.h"

namespace attnscope {

struct MapSource;

/// The tokens on one side of a map: what they are, and how its text is spelt. Borrows from the
/// call.
struct TokenNames {
  const TokenGrid* grid = nullptr;
  std::span<const std::string> words;  ///< of the text, may be fewer than it has, or none
  int64_t batch = 0;
  std::string_view where;  ///< how messages name the call

  /// The queries of a call, or its keys.
  static TokenNames of(const MapSource& call, int64_t batch, bool keys);
};

/// The segments of a token map that can be filmed: those whose grid is row-major. Their names, in
/// order.
std::vector<std::string> film_segments(const TokenGrid& grid);
/// The sequence with one of film_segments() as its video; as it is where there is none of the name.
TokenGrid filmed(const TokenGrid& grid, const std::string& segment);
/// Throws Error(usage) that names what there is; an empty name is the video.
void check_film_segment(const TokenGrid& grid, const std::string& segment);

/// The token at a latent place, or the number'th token of the text (counted from 0). Throw
/// Error(usage) naming what exists: "query 9 0 0: …", "query text 300: …".
ChosenQuery query_at(const TokenNames& names, LatentCoord place);
ChosenQuery query_text(const TokenNames& names, int64_t number);
/// The tokens of a box of the grid, "5,0:30,10:12" (their mean is shown). `what` begins messages.
/// Throws Error(usage).
ChosenQuery query_box(const TokenNames& names, const std::string& box, const std::string& what);

/// "(5, 10, 22)", "text 5 «red»" (without its tokenizer's marks), "padding 240", or "token 17"
/// where no grid is known. One printable line.
std::string token_text(const TokenNames& names, int64_t token);
/// The query as a script writes it: "5 10 22", "text 5", "token 17"; of several tokens: "mean of
/// 4"; of none: "none".
std::string query_words(const TokenNames& names, const std::optional<ChosenQuery>& query);
/// "q(5, 10, 22) → k(0, 3, 4)", "q(5, 10, 22) → k text 5 «red»".
std::string pair_text(const TokenNames& queries, int64_t query, const TokenNames& keys,
                      int64_t key);

}  // namespace attnscope
