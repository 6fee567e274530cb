#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/query_words.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("tokens are found by latent place and by their place in the text") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const Capture capture = Capture::open(folder.path());
  const MapSource call = map_sources(capture)[0];
  const TokenNames names = TokenNames::of(call, 0, false);
  CHECK(query_at(names, {0, 0, 0}).tokens == std::vector<int64_t>{2});
  CHECK(query_at(names, {1, 2, 3}).tokens == std::vector<int64_t>{25});
  CHECK(query_at(names, {1, 0, 2}).tokens == std::vector<int64_t>{2 + 12 + 2});
  CHECK(query_text(names, 1).tokens == std::vector<int64_t>{1});
  for (const LatentCoord bad : {LatentCoord{2, 0, 0}, {0, 3, 0}, {0, 0, 4}, {-1, 0, 0}}) {
    CHECK(has(usage_text([&] { query_at(names, bad); }), "valid 0 0 0 to 1 2 3"));
  }
  CHECK(has(usage_text([&] { query_text(names, 2); }), "query text 2: outside the text"));
  CHECK(has(usage_text([&] { query_text(names, 2); }), "valid 0 to 1"));
  CHECK_FALSE(usage_text([&] { query_text(names, -1); }).empty());
}

TEST_CASE("tokens are written as people read them") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const Capture capture = Capture::open(folder.path());
  const MapSource call = map_sources(capture)[0];
  const TokenNames names = TokenNames::of(call, 1, true);
  CHECK(token_text(names, 0) == "text 0 «red»");
  CHECK(token_text(names, 1) == "text 1 «dog»");
  CHECK(token_text(names, 2) == "(0, 0, 0)");
  CHECK(token_text(names, 25) == "(1, 2, 3)");
  CHECK(pair_text(names, 25, names, 2) == "q(1, 2, 3) → k(0, 0, 0)");
  CHECK(pair_text(names, 2, names, 0) == "q(0, 0, 0) → k text 0 «red»");
  CHECK(pair_text(names, 1, names, 3) == "q text 1 «dog» → k(0, 0, 1)");
  CHECK(query_words(names, ChosenQuery{{25}}) == "1 2 3");
  CHECK(query_words(names, ChosenQuery{{1}}) == "text 1");
  CHECK(query_words(names, ChosenQuery{{1, 2, 3}}) == "mean of 3");
  CHECK(query_words(names, std::nullopt) == "none");
}

TEST_CASE("padding, unknown grids and strange strings have words too") {
  TokenGrid padded = TokenGrid::video(10, {1, 2, 3}, 4, TextPlace::end);
  padded.set_text_valid({2});
  const std::vector<std::string> words{"a\nb", "\u2581", "<pad>", "<pad>"};
  const TokenNames names{&padded, words, 0, "file"};
  CHECK(token_text(names, 6) == "text 0 «a\\nb»");
  CHECK(token_text(names, 7) == "text 1 «\u2581»");
  CHECK(token_text(names, 8) == "padding 2");
  CHECK(query_words(names, ChosenQuery{{8}}) == "text 2");
  const TokenNames nameless{&padded, {}, 0, "file"};
  CHECK(token_text(nameless, 7) == "text 1");
  const TokenGrid unknown = TokenGrid::unknown(5);
  const TokenNames plain{&unknown, {}, 0, "file.safetensors"};
  CHECK(token_text(plain, 3) == "token 3");
  CHECK(pair_text(plain, 3, plain, 4) == "q token 3 → k token 4");
  CHECK(query_words(plain, ChosenQuery{{3}}) == "token 3");
  CHECK(has(usage_text([&] { query_at(plain, {0, 0, 0}); }), "file.safetensors has no token grid"));
  CHECK(has(usage_text([&] { query_text(plain, 0); }), "has no text tokens"));
  const TokenGrid text = TokenGrid::text_only(5);
  const TokenNames all{&text, {}, 0, "file"};
  CHECK(has(usage_text([&] { query_at(all, {0, 0, 0}); }), "take query text N"));
}

TEST_CASE("the letters that a window needs are those of all its words") {
  MapSource call;
  call.name = "step 1 \u2192 layer 2";
  call.branches = {"cond", "негатив"};
  call.tokens = {{"\u2581red", "\u732b\u72d7"}, {"\u732b", "\U0001f600", "e\xff"}};
  MapSource other;
  other.about = "Lëtzebuergesch";
  CHECK(shown_letters({}).empty());
  CHECK(
      shown_letters(std::vector{call, other}) ==
      U"\u00eb\u0430\u0432\u0433\u0435\u0438\u043d\u0442\u2192\u2581\u72d7\u732b\ufffd\U0001f600");
}
