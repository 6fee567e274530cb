#include "core/products/tokens/text_token.h"
#include "core/products/tokens/token_piece.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

IndexRange find(const std::string& text, const std::vector<std::string>& tokens) {
  return resolve_text_token(text, {tokens, static_cast<int64_t>(tokens.size()), "call"});
}

std::string refusal(const std::string& text, const std::vector<std::string>& tokens,
                    const std::vector<std::string>& parts) {
  return refused([&] { find(text, tokens); }, ErrorCode::usage, parts);
}

}  // namespace

TEST_CASE("a token's marks are taken off and say where words begin and end") {
  const TokenPiece start = token_piece("▁dra");
  CHECK(start.text == "dra");
  CHECK(start.starts_word);
  CHECK_FALSE(start.ends_word);
  CHECK(token_piece("Ġred").text == "red");
  CHECK(token_piece("Ġred").starts_word);
  CHECK(token_piece("dog</w>").text == "dog");
  CHECK(token_piece("dog</w>").ends_word);
  CHECK(token_piece("##ing").text == "ing");
  CHECK(token_piece("##ing").continues_word);
  CHECK(token_piece(" a ").text == "a");
  // No more than marks, or no marks.
  CHECK(token_piece("▁").text.empty());
  CHECK(token_piece("##").text == "##");
  CHECK(token_piece("").text.empty());
  CHECK(token_piece("plain").text == "plain");
  CHECK_FALSE(token_piece("plain").starts_word);
}

TEST_CASE("a text token is found by its number or its word, whatever the tokenizer's marks") {
  const std::vector<std::string> t5{"▁A", "▁red", "▁dra", "gon", "fly", "▁and", "▁Straße", "</s>"};
  CHECK(find("3", t5) == IndexRange{3, 4});
  CHECK(find("2-4", t5) == IndexRange{2, 5});
  CHECK(find("RED", t5) == IndexRange{1, 2});
  CHECK(find("a", t5) == IndexRange{0, 1});
  CHECK(find("Dragonfly", t5) == IndexRange{2, 5});
  CHECK(find("▁dragon", t5) == IndexRange{2, 4});
  CHECK(find("gon", t5) == IndexRange{3, 4});
  CHECK(find("STRAßE", t5) == IndexRange{6, 7});
  CHECK(find("</s>", t5) == IndexRange{7, 8});
  CHECK(find("Собака", {"ĠСОБ", "ака", "Ġdog"}) == IndexRange{0, 2});
  CHECK(find("dog", {"[CLS]", "hot", "dogs", "dog"}) == IndexRange{3, 4});
  CHECK(find("playing", {"play", "##ing", "ing"}) == IndexRange{0, 2});
  CHECK(find("unicorn</w>", {"uni", "corn</w>", "a</w>"}) == IndexRange{0, 2});
  // A word does not run over the beginning or the end of another.
  CHECK(refusal("redred", {"▁red", "▁red"}, {"no token of call is spelt so"}).empty());
  CHECK(refusal("ared", {"a</w>", "red</w>"}, {"no token"}).empty());
  CHECK(refusal("ared", {"a", "red", "##s"}, {"no token"}).empty());
  CHECK(find("ared", {"a", "red"}) == IndexRange{0, 2});
}

TEST_CASE("a phrase is found where its words follow each other") {
  const std::vector<std::string> t5{"▁A", "▁red", "▁cir", "cle", "▁and", "▁red", "▁dog"};
  CHECK(find("red circle", t5) == IndexRange{1, 4});
  CHECK(find(" Red  Circle ", t5) == IndexRange{1, 4});
  CHECK(find("a red circle and", t5) == IndexRange{0, 5});
  CHECK(find("red dog", t5) == IndexRange{5, 7});
  CHECK(refusal("circle red", t5, {"no token of call is spelt so", "1 \"▁red\""}).empty());
  CHECK(refusal("red circle", {"red", "cir", "cle", "red", "circle"}, {"2 places", "0-2"}).empty());
  // A piece that goes on with a word begins none.
  CHECK(refusal("red dish", {"red", "##dish"}, {"no token"}).empty());
  CHECK(find("red dish", {"red</w>", "dish</w>"}) == IndexRange{0, 2});
  CHECK(find("red dish", {"▁red dish"}) == IndexRange{0, 1});
}

TEST_CASE("a text token that cannot be meant is refused with what there is") {
  const std::vector<std::string> tokens{"▁a", "▁dog", "▁and", "▁a", "▁ho", "tdog"};
  CHECK(refusal("a", tokens, {"2 places in call", "0 \"▁a\"", "3 \"▁a\"", "number"}).empty());
  CHECK(refusal("dogs", tokens, {"no token of call", "1 \"▁dog\""}).empty());
  CHECK(refusal("zebra", tokens, {"the prompt has", "0 \"▁a\"", "1 \"▁dog\""}).empty());
  CHECK(refusal("6", tokens, {"valid 0 to 5"}).empty());
  CHECK(refusal("4-6", tokens, {"valid 0 to 5"}).empty());
  CHECK(refusal("4-3", tokens, {"valid 0 to 5"}).empty());
  CHECK(refusal("99999999999999999999", tokens, {"no token"}).empty());
  CHECK(refusal("▁", tokens, {"names no token"}).empty());
  CHECK(refusal("x\ny", tokens, {"x\\ny"}).empty());
  const auto unnamed = [](const std::string& text, int64_t length) {
    return refused(
        [&] {
          resolve_text_token(text, {{}, length, "call"});
        },
        ErrorCode::usage, {length == 0 ? "no text tokens" : "no token strings were recorded"});
  };
  CHECK(unnamed("dog", 5).empty());
  CHECK(unnamed("0", 0).empty());
}

TEST_CASE("a batch item has the words of all items, or its own") {
  const std::vector<std::vector<std::string>> none, all{{"a", "dog"}}, each{{"a"}, {"dog", "ran"}};
  CHECK(words_of(none, 3).empty());
  CHECK(words_of(all, 3).size() == 2);
  CHECK(words_of(each, 1).back() == "ran");
}

TEST_CASE("without a choice all text tokens but padding are chosen") {
  TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::end);
  grid.set_text_valid({2, 4});
  const std::vector<std::string> words{"▁a", "▁dra", "gon", "▁dog"};
  const PromptText prompt{words, 4, "call"};
  CHECK(choose_text_tokens({}, grid, 0, prompt) == std::vector<int64_t>{0, 1});
  CHECK(choose_text_tokens({}, grid, 1, prompt) == std::vector<int64_t>{0, 1, 2, 3});
  const std::vector<std::string> asked{"dog", "dragon"};
  CHECK(choose_text_tokens(asked, grid, 0, prompt) == std::vector<int64_t>{3, 1, 2});
  const std::vector<std::string> unknown{"cat"};
  CHECK(refused([&] { choose_text_tokens(unknown, grid, 0, prompt); }, ErrorCode::usage,
                {"--text-token cat"}) == "");
}
