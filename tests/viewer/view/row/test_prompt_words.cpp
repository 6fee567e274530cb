#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/row/prompt_words.h"
#include "viewer/view/row/words_view.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A 2×2×2 video behind six text tokens of which five are valid.
struct Prompt {
  Prompt() {
    grid = TokenGrid::video(14, {2, 2, 2}, 6, TextPlace::start);
    grid.set_text_valid({5});
    call.name = "call";
    call.queries = call.keys = grid;
    call.batch = call.heads = {0};
    call.branches = {"cond"};
    call.tokens = {words};
    call.rows = call.cols = {0, 14};
    state = opened_view(ViewLimits::of({call}));
    state.words.shown = true;
  }
  TokenNames names() const { return {&grid, words, 0, "call"}; }
  ViewState with(const std::function<void(WordsLook&)>& change) const {
    WordsLook look = state.words;
    change(look);
    return apply_action(state, action::SetWords{look}, ViewLimits::of({call}));
  }

  std::vector<std::string> words{"<s>", "\u2581red", "\u2581cir", "cle", "</s>", "\u2581late"};
  TokenGrid grid;
  MapSource call;
  ViewState state;
};

MapLine line_of(const LineRequest& request, const std::vector<float>& values) {
  return {request, values, {}};
}

}  // namespace

TEST_CASE("a prompt's words are spelt without marks, special tokens and padding apart") {
  const Prompt prompt;
  const std::vector<PromptWord> words = prompt_words(prompt.names());
  REQUIRE(words.size() == 6);
  CHECK(words[1].text == "red");
  CHECK_FALSE(words[1].special);
  CHECK(words[0].special);
  CHECK_FALSE(words[0].padding);
  // The text of a token does not matter where the token map tells that it is no valid key.
  CHECK(words[5].text == "late");
  CHECK(words[5].padding);
  CHECK(words[5].special);
}

TEST_CASE("the list adds words up, and special ones apart; left out they are in no sum") {
  const Prompt prompt;
  const std::vector<PromptWord> words = prompt_words(prompt.names());
  const std::vector<double> masses{0.3, 0.01, 0.04, 0.02, 0.2, 0.1};
  WordsLook look;
  look.chosen = {1, 2, 4};
  WordList list = list_words(words, masses, {}, {}, look);
  REQUIRE(list.words.size() == 3);
  REQUIRE(list.special.size() == 3);
  CHECK(list.words_mass == Approx(0.07));
  CHECK(list.special_mass == Approx(0.6));
  CHECK(list.chosen_mass == Approx(0.25));
  CHECK(list.largest == 0.3);
  CHECK(list.excluded == 0);
  look.special = false;
  list = list_words(words, masses, {}, {}, look);
  CHECK(list.special.empty());
  CHECK(list.excluded == 3);
  CHECK(list.special_mass == 0);
  CHECK(list.chosen_mass == Approx(0.05));
  CHECK(list.largest == 0.04);
  look.by_mass = true;
  look.filter = "C";
  list = list_words(words, masses, {}, {}, look);
  REQUIRE(list.words.size() == 2);
  CHECK(list.words[0].word.text == "cir");
  CHECK(list.filtered == 1);
  // Words that are not listed are still in the sum.
  CHECK(list.words_mass == Approx(0.07));
  const WordList unknown = list_words(words, {}, masses, {}, WordsLook{});
  CHECK(std::isnan(unknown.words[0].mass));
  CHECK(unknown.words_mass == 0);
  CHECK(unknown.words[0].usual == 0.01);
}

TEST_CASE("words are named by places, ranges, words and phrases") {
  const Prompt prompt;
  const TokenNames names = prompt.names();
  CHECK(chosen_words(names, "5") == std::vector<int64_t>{5});
  CHECK(chosen_words(names, "5,1,1,3") == std::vector<int64_t>{1, 3, 5});
  CHECK(chosen_words(names, "1-3") == std::vector<int64_t>{1, 2, 3});
  CHECK(chosen_words(names, "0,2-3") == std::vector<int64_t>{0, 2, 3});
  CHECK(chosen_words(names, "red") == std::vector<int64_t>{1});
  CHECK(chosen_words(names, "red circle") == std::vector<int64_t>{1, 2, 3});
  CHECK(has(usage_text([&] { chosen_words(names, "6"); }),
            "outside the text of call (valid 0 to 5)"));
  CHECK(
      usage_text([&] { chosen_words(names, "blue"); }).starts_with("word blue: no token of call"));
  CHECK_FALSE(usage_text([&] { chosen_words(names, "3-1"); }).empty());
  const TokenGrid video = TokenGrid::unknown(4);
  CHECK(has(usage_text([&] { chosen_words({&video, {}, 0, "call"}, "0"); }), "has no text"));
  const std::vector<PromptWord> words = prompt_words(names);
  CHECK(chosen_text(words, std::vector<int64_t>{1}) == "«red»");
  CHECK(chosen_text(words, std::vector<int64_t>{1, 2, 3}) == "«red cir cle»");
  CHECK(chosen_text(words, std::vector<int64_t>{1, 3}) == "«red» + «cle»");
  CHECK(has(chosen_text(words, std::vector<int64_t>{0, 2, 4, 5}), "«<s>» + «cir»"));
}

TEST_CASE("the film is of the words where some are chosen: columns at first, rows reversed") {
  const Prompt prompt;
  CHECK(film_line(prompt.state, prompt.call, 9)->tokens == std::vector<int64_t>{9});
  ViewState state = prompt.with([](WordsLook& look) { look.chosen = {2, 1}; });
  CHECK(state.words.chosen == std::vector<int64_t>{1, 2});
  LineRequest request = film_line(state, prompt.call, 9).value();
  CHECK(request.reverse);
  CHECK(request.sum);
  CHECK(request.tokens == std::vector<int64_t>{1, 2});
  state.reverse = true;
  CHECK_FALSE(film_line(state, prompt.call, 9)->reverse);
  // Logits are not added up.
  state.product = ViewProduct::logits;
  CHECK_FALSE(film_line(state, prompt.call, 9)->sum);
  const std::string text =
      usage_text([&] { prompt.with([](WordsLook& look) { look.chosen = {6}; }); });
  CHECK(has(text, "word 6: outside the text (valid 0 to 5)"));
}

TEST_CASE("words of cross attention are keys and no queries") {
  Prompt prompt;
  prompt.call.kind = CallKind::cross;
  prompt.call.queries = TokenGrid::video(8, {2, 2, 2}, 0, TextPlace::none);
  prompt.call.keys = TokenGrid::text_only(6);
  ViewState state = prompt.state;
  state.words.chosen = {1};
  CHECK(film_line(state, prompt.call, {})->reverse);
  CHECK(words_masses(state, prompt.call)->rows == IndexRange{0, 8});
  CHECK(words_masses(state, prompt.call)->keys == IndexRange{0, 6});
  CHECK(words_line(state, prompt.call, 3)->tokens == std::vector<int64_t>{3});
  state.reverse = true;
  CHECK_FALSE(film_line(state, prompt.call, 3));
  CHECK(has(no_words_film(state, prompt.call), "no queries"));
  CHECK_FALSE(words_line(state, prompt.call, 3));
  CHECK(words_view(state, prompt.call, nullptr, nullptr).none == "no query of this map is text");
}

TEST_CASE("the list has the row of the picked query, of the one under the mouse, or the mean") {
  const Prompt prompt;
  CHECK_FALSE(words_line(prompt.state, prompt.call, {}));
  CHECK(words_line(prompt.state, prompt.call, 7)->tokens == std::vector<int64_t>{7});
  ViewState picked = prompt.state;
  picked.query = ChosenQuery{{8}};
  CHECK(words_line(picked, prompt.call, 7)->tokens == std::vector<int64_t>{8});
  CHECK(words_line(picked, prompt.call, 7)->quantity == Quantity::weights);
  picked.product = ViewProduct::logits;
  CHECK(words_line(picked, prompt.call, 7)->quantity == Quantity::weights);
  ViewState hidden = picked;
  hidden.words.shown = false;
  CHECK_FALSE(words_line(hidden, prompt.call, 7));
  CHECK_FALSE(words_masses(hidden, prompt.call));

  const MassRequest masses = words_masses(prompt.state, prompt.call).value();
  CHECK(masses.rows == IndexRange{6, 14});
  const KeyMasses usual{masses, 8, {0.1, 0.2, 0.05, 0.05, 0.1, 0}};
  WordsView view = words_view(prompt.state, prompt.call, nullptr, &usual);
  CHECK_FALSE(view.of_query);
  CHECK(view.rows == 8);
  CHECK(view.list.words_mass == Approx(0.3));
  CHECK(std::isnan(view.list.words[0].usual));
  std::vector<float> values(14, 0.0f);
  values[1] = 0.5f;
  values[9] = 0.5f;
  const MapLine line = line_of(words_line(picked, prompt.call, 7).value(), values);
  view = words_view(picked, prompt.call, &line, &usual);
  CHECK(view.of_query);
  CHECK(view.query == "(0, 1, 0)");
  CHECK(view.list.words_mass == Approx(0.5));
  CHECK(view.list.words[0].usual == 0.2);
  CHECK(view.shares);
}
