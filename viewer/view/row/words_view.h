#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/view/row/prompt_words.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// True where the film of the query pane is of columns (who attends to these tokens). Of a query it
/// is where `reverse` says so. Of words it is unless `reverse` says so: which places of the video
/// look for a word is asked first, and what the word looks for second.
bool film_of_columns(const ViewState& state);

/// The line in the film of the query pane: the chosen words' lines, added up (logits: their mean),
/// else wanted_line(). Nothing where there is no query, or that side of the map has no text.
std::optional<LineRequest> film_line(const ViewState& state, const MapSource& call,
                                     const std::optional<int64_t>& hovered);
/// Why there is no film of the chosen words; empty: there is, or none are chosen.
std::string no_words_film(const ViewState& state, const MapSource& call);

/// The weights of the picked query, else of the token that the mouse points at, for the words'
/// list. Nothing where the list is not shown, there is no such token, or no text on its other side.
std::optional<LineRequest> words_line(const ViewState& state, const MapSource& call,
                                      const std::optional<int64_t>& pointed);
/// The mean over the video's rows, for the same list; not of queries' words (`reverse`).
std::optional<MassRequest> words_masses(const ViewState& state, const MapSource& call);

/// The words' list as far as its numbers have come. A value.
struct WordsView {
  std::vector<PromptWord> prompt;
  WordList list;
  bool reverse = false;   ///< how much each word attends to the token, not the token to it
  bool of_query = false;  ///< the masses are a row's (a column's); else means over the video
  int64_t queries = 0;    ///< whose mean it is, where of_query
  std::string query;      ///< which, for people: "(3, 8, 7)"
  int64_t rows = 0;       ///< of the video in the mean; 0: it is not there
  std::string none;       ///< why there is no list; empty: there is one

  bool has_masses() const { return of_query || rows > 0; }
  /// The numbers are parts of a sum that is 1: those of a row of a softmax.
  bool shares = false;
};
WordsView words_view(const ViewState& state, const MapSource& call, const MapLine* line,
                     const KeyMasses* masses);

}  // namespace attnscope
