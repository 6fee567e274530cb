#include "viewer/view/row/words_view.h"

#include <algorithm>

#include "viewer/view/maps/map_source.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// The side that the list's words stand on.
const TokenGrid& words_side(const ViewState& state, const MapSource& call) {
  return state.reverse ? call.queries : call.keys;
}

std::string why_no_list(const ViewState& state, const MapSource& call) {
  if (is_signed(call.score)) return "weights of either sign have no masses";
  if (!call.weights) return "an export of logits has no masses";
  if (call.block > 1) return "an export of blocks has no single rows";
  if (!words_side(state, call).text_range().empty()) return "";
  const TokenGrid& other = state.reverse ? call.keys : call.queries;
  if (other.text_range().empty()) return "this map has no text";
  return state.reverse ? "no query of this map is text" : "no key of this map is text";
}

std::vector<double> line_part(const std::vector<float>& values, IndexRange range) {
  return {values.begin() + range.begin, values.begin() + range.end};
}

}  // namespace

bool film_of_columns(const ViewState& state) {
  return state.words.chosen.empty() ? state.reverse : !state.reverse;
}

std::string no_words_film(const ViewState& state, const MapSource& call) {
  if (state.words.chosen.empty()) return "";
  const bool columns = film_of_columns(state);
  const IndexRange text = (columns ? call.keys : call.queries).text_range();
  if (call.block > 1) return "an export of blocks has no single rows";
  if (text.empty()) {
    return columns ? "the words are no keys here: nothing attends to them"
                   : "the words are no queries here: they attend to nothing";
  }
  return state.words.chosen.back() < text.size() ? "" : "the chosen word is not in this text";
}

std::optional<LineRequest> film_line(const ViewState& state, const MapSource& call,
                                     const std::optional<int64_t>& hovered) {
  if (state.words.chosen.empty()) return wanted_line(state, hovered);
  if (!no_words_film(state, call).empty()) return std::nullopt;
  LineRequest request;
  request.head = state.head;
  request.quantity = product_quantity(state.product);
  request.reverse = film_of_columns(state);
  request.sum = request.quantity == Quantity::weights;
  const IndexRange text = (request.reverse ? call.keys : call.queries).text_range();
  for (const int64_t number : state.words.chosen) request.tokens.push_back(text.begin + number);
  return request;
}

std::optional<LineRequest> words_line(const ViewState& state, const MapSource& call,
                                      const std::optional<int64_t>& pointed) {
  if (!state.words.shown && state.words.chosen.empty()) return std::nullopt;
  if (!why_no_list(state, call).empty()) return std::nullopt;
  const int64_t tokens = (state.reverse ? call.keys : call.queries).tokens();
  LineRequest request;
  request.head = state.head;
  request.reverse = state.reverse;
  if (state.query) {
    request.tokens = state.query->tokens;
  } else if (pointed && *pointed < tokens) {
    request.tokens = {*pointed};
  } else {
    return std::nullopt;
  }
  return request;
}

std::optional<MassRequest> words_masses(const ViewState& state, const MapSource& call) {
  if (state.reverse || (!state.words.shown && state.words.chosen.empty())) return std::nullopt;
  if (!why_no_list(state, call).empty()) return std::nullopt;
  const IndexRange video = call.queries.video_range();
  const IndexRange text = call.keys.text_range();
  if (video.empty() || text.size() > kMostMassKeys) return std::nullopt;
  return MassRequest{state.head, video, text};
}

WordsView words_view(const ViewState& state, const MapSource& call, const MapLine* line,
                     const KeyMasses* masses) {
  WordsView view;
  view.reverse = state.reverse;
  view.none = why_no_list(state, call);
  if (!view.none.empty()) return view;
  const IndexRange text = words_side(state, call).text_range();
  view.prompt = prompt_words(TokenNames::of(call, state.head.batch, !state.reverse));
  view.shares = !state.reverse && call.score != ScoreFunction::sigmoid;
  std::vector<double> usual, values;
  std::vector<uint8_t> masked;
  if (masses != nullptr) {
    usual = masses->masses;
    view.rows = masses->rows;
  }
  if (line != nullptr) {
    view.of_query = true;
    view.queries = static_cast<int64_t>(line->request.tokens.size());
    view.query = view.queries > 1
                     ? "the mean of " + std::to_string(view.queries) + " tokens"
                     : token_text(TokenNames::of(call, state.head.batch, state.reverse),
                                  line->request.tokens.front());
    values = line_part(line->values, text);
    if (!line->masked.empty()) {
      masked.assign(line->masked.begin() + text.begin, line->masked.begin() + text.end);
    }
  }
  view.list = list_words(view.prompt, view.of_query ? values : usual,
                         view.of_query ? std::span<const double>(usual) : std::span<const double>(),
                         masked, state.words);
  return view;
}

}  // namespace attnscope
