#include <string>
#include <vector>

#include "core/base/nearest_word.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("the nearest word is suggested when there is one") {
  const std::vector<std::string> words{"export",  "info",     "query",        "bench",
                                       "--heads", "--layers", "cogvideox-5b", "cogvideox-1.5-5b"};
  const auto nearest = [&](const char* word) { return nearest_word(word, words); };
  CHECK(nearest("exprot") == "export");
  CHECK(nearest("expor") == "export");
  CHECK(nearest("Export") == "export");
  CHECK(nearest("qurey") == "query");
  CHECK(nearest("--layres") == "--layers");
  CHECK(nearest("cogvideo-5b") == "cogvideox-5b");
  CHECK(nearest("cogvideox") == "cogvideox-5b");
  CHECK(nearest("ben") == "bench");
  CHECK(nearest("render").empty());
  CHECK(nearest("x").empty());
  CHECK(nearest("").empty());
  CHECK(nearest_word("export", {}).empty());
}
