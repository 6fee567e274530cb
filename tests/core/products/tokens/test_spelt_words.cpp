#include "core/products/tokens/spelt_words.h"
#include "core/products/tokens/text_token.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// "red|circle": the words; punctuation in (), special tokens in [].
std::string words_text(const std::vector<std::string>& tokens) {
  std::string text;
  int64_t end = 0;
  for (const SpeltWord& word : spelt_words(tokens)) {
    CHECK(word.tokens.begin == end);
    CHECK(word.tokens.size() > 0);
    end = word.tokens.end;
    if (!text.empty()) text += "|";
    switch (word.kind) {
      case SpeltWord::Kind::word:
        text += word.text;
        break;
      case SpeltWord::Kind::punctuation:
        text += "(" + word.text + ")";
        break;
      case SpeltWord::Kind::special:
        text += "[" + word.text + "]";
        break;
    }
  }
  CHECK(end == std::ssize(tokens));
  return text;
}

}  // namespace

TEST_CASE("tokens are joined to words by their tokenizer's marks") {
  // SentencePiece, byte-level BPE, CLIP, WordPiece.
  CHECK(words_text({"\u2581A", "\u2581dra", "gon", ",", "\u2581red", ".", "</s>"}) ==
        "A|dragon|(,)|red|(.)|[</s>]");
  CHECK(words_text({"A", "\u0120dra", "gon", "!!", "\u0120red", "<|im_end|>"}) ==
        "A|dragon|(!!)|red|[<|im_end|>]");
  CHECK(words_text({"<|startoftext|>", "a</w>", "dra", "gon</w>", ",</w>", "<|endoftext|>"}) ==
        "[<|startoftext|>]|a|dragon|(,)|[<|endoftext|>]");
  CHECK(words_text({"[CLS]", "a", "dra", "##gon", "flies", "[SEP]", "[PAD]", "[PAD]"}) ==
        "[[CLS]]|a|dragon|flies|[[SEP]]|[[PAD]]|[[PAD]]");
}

TEST_CASE("where no token is marked each is a word") {
  CHECK(words_text({"[CLS]", "a", "red", "circle", ",", "[SEP]"}) ==
        "[[CLS]]|a|red|circle|(,)|[[SEP]]");
  CHECK(words_text({}).empty());
}

TEST_CASE("hyphens and apostrophes join, other punctuation and empty pieces do not") {
  CHECK(words_text({"\u2581red", "-", "hair", "ed", "\u2581man", "'", "s", "\u2581", "cat", "(",
                    "s", ")"}) == "red-haired|man's|()|cat|(()|s|())");
  // A word, and another behind a lone dash.
  CHECK(words_text({"\u2581red", "\u2581-", "\u2581cat"}) == "red|(-)|cat");
}

TEST_CASE("scripts without spaces have a word a token, others of more bytes do not") {
  CHECK(words_text({"\u2581\u4e00\u53ea", "\u732b", "\u3002"}) == "\u4e00\u53ea|\u732b|(\u3002)");
  CHECK(words_text({"\u2581\u043a\u043e", "\u0442", "\u2581\uace0", "\uc591"}) ==
        "\u043a\u043e\u0442|\uace0\uc591");
  // Bytes that are no UTF-8 stay what they are.
  CHECK(words_text({"\u2581\xff\xfe", "\xe4"}) == "\xff\xfe\xe4");
}

TEST_CASE("a word that is spelt once is found by its text") {
  const std::vector<std::string> tokens{"\u2581A", "\u2581dra", "gon", ",", "\u2581red",
                                        "-",       "hair",      "ed",  ".", "</s>"};
  const PromptText prompt{tokens, std::ssize(tokens), "call"};
  for (const SpeltWord& word : spelt_words(tokens)) {
    INFO(word.text);
    CHECK(resolve_text_token(word.text, prompt) == word.tokens);
  }
}
