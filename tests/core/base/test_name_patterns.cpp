#include "core/base/error.h"
#include "core/base/name_patterns.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a star stands for any characters") {
  CHECK(matches_pattern("attn1", "attn1"));
  CHECK_FALSE(matches_pattern("attn1", "attn12"));
  CHECK_FALSE(matches_pattern("attn", "audio_attn"));
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("*attn*", "audio_attn1"));
  CHECK(matches_pattern("a*n1", "audio_attn1"));
  CHECK(matches_pattern("a*t*1", "audio_to_1_attn1"));
  CHECK_FALSE(matches_pattern("a*t*2", "audio_to_1_attn1"));
  CHECK(matches_pattern("**b", "ab"));
  CHECK_FALSE(matches_pattern("", "a"));
  CHECK(matches_pattern("", ""));
  // Characters that patterns of other tools give a meaning are what they are.
  CHECK_FALSE(matches_pattern("attn?", "attn1"));
  CHECK(matches_pattern("blocks[0]", "blocks[0]"));
}

TEST_CASE("no pattern lets every name through, and one without a name is an error") {
  CHECK(matches_any({}, "x"));
  const std::vector<std::string> patterns{"a*", "b"};
  CHECK(matches_any(patterns, "b"));
  CHECK_FALSE(matches_any(patterns, "bb"));
  const std::set<std::string> slots{"", "attn1", "attn2"};
  CHECK(pattern_problem("attn*", slots, "--slots", "the export").empty());
  CHECK(pattern_problem("atn2", slots, "--slots", "the export") ==
        "--slots atn2: not in the export, did you mean attn2? (it has attn1, attn2)");
  CHECK(pattern_problem("a", {""}, "--slots", "it") ==
        "--slots a: not in it (it has none recorded)");
}
