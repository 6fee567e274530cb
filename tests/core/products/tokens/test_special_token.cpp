#include "core/products/tokens/special_token.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("tokens of the tokenizer's own are told from words") {
  for (const char* token : {"<pad>", "</s>", "<s>", "<|endoftext|>", "<|startoftext|></w>", "[CLS]",
                            "[unused12]", "", "<extra_id_0>"}) {
    INFO(token);
    CHECK(is_special_token(token));
  }
  for (const char* token : {"red", "\u2581", "<", "<>", "<0x0A>", "[", "[a b]", "a>b", "< b >",
                            "\u2581red", "dog</w>", "..."}) {
    INFO(token);
    CHECK_FALSE(is_special_token(token));
  }
  CHECK(is_padding_token("<pad>"));
  CHECK(is_padding_token("[PAD]"));
  CHECK(is_padding_token(""));
  CHECK_FALSE(is_padding_token("</s>"));
  CHECK_FALSE(is_padding_token("pad"));
}
