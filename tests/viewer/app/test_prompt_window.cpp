// The words of the prompt in the window: listed, clicked one by one and together, kept in a
// session.
#include <nlohmann/json.hpp>
#include <string>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/project_paths.h"
#include "tests/support/recorded_call.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The number behind a printed name; the `nth` of that name.
double printed(const std::string& out, const std::string& name, int nth = 0) {
  size_t at = 0;
  for (int i = 0; i <= nth; ++i) {
    at = out.find(name + " ", i == 0 ? 0 : at + 1);
    REQUIRE(at != std::string::npos);
  }
  return std::stod(out.substr(at + name.size() + 1));
}

}  // namespace

TEST_CASE("a script lists the prompt's words, clicks them and adds them up") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(
      folder.path().string(), {kSample, "--cache", "none"},
      "layer 2\nhead 0\nclick \"Toolbar/Menu\"\nclick \"Panes/Words\"\nwait exact\nexpect words "
      "== 11\n"
      // The mean over the video, as `stats` has it.
      "print text_mass\nprint special_mass\nshot mean.png\n"
      "query 3 8 7\nwait exact\nprint text_mass\nprint word_mass\n"
      "click \"Words/2\"\nwait exact\nexpect word == 2\nprint word_mass\nshot red.png\n"
      "click \"Words/3\"\nwait exact\nexpect word == 3\nprint word_mass\n"
      "word 2,3\nwait exact\nprint word_mass\nshot both.png\nexpect reverse == off\n"
      "key R\nwait exact\nexpect reverse == on\nshot rows.png\nkey R\nwait exact\n"
      "click \"Words/Special\"\nwait exact\nexpect special_mass == 0\n"
      "save-session kept.session\nclick \"Words/Clear\"\nwait exact\nexpect word == none\n"
      "key Ctrl+Z\nwait exact\nexpect word == 2,3\nkey K\nwait exact\nkey Esc\nwait exact\n"
      "expect word == none\nexpect query == 3 8 7\nkey Esc\nwait exact\nexpect query == none\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto at = [&](const std::string& name, int nth) { return printed(result.out, name, nth); };
  CHECK(at("text_mass", 0) == Approx(0.00266572).epsilon(1e-4));
  CHECK(at("text_mass", 1) == Approx(0.000802927).epsilon(1e-4));
  CHECK(at("special_mass", 0) > 0);
  CHECK(at("word_mass", 0) == 0);
  CHECK(at("word_mass", 3) == Approx(at("word_mass", 1) + at("word_mass", 2)).epsilon(1e-4));
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("red.png") != bytes("both.png"));
  CHECK(bytes("rows.png") != bytes("both.png"));
  CHECK(contains(bytes("kept.session"), "\nword 2,3\n"));
  CHECK(contains(bytes("kept.session"), "\nwords special off\n"));
  const WindowResult again =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "wait exact\nexpect word == 2,3\nexpect special_mass == 0\npane words\n"
                 "wait exact\nshot pane.png\nword lizard\n");
  CHECK(again.exit_code == 1);
  CHECK(contains(again.err, ":7: word lizard: no token of "));
}

TEST_CASE("words of cross attention have a film over the video, and none the other way") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  ReferenceCall call({1, 2, 2, 24, 6, 8}, 5);
  call.version(2)
      .fact("kind", "cross")
      .fact("queries",
            Json::array(
                {{{"name", "video"}, {"modality", "video"}, {"count", 24}, {"grid", {2, 3, 4}}}})
                .dump())
      .fact("keys", Json::array({{{"name", "words"},
                                  {"modality", "text"},
                                  {"count", 6},
                                  {"words", {"a", "dog", "runs", "</s>"}},
                                  {"valid", 4}}})
                        .dump())
      .fact("layer", "0");
  call.write(folder.path() / "a.safetensors");
  const WindowResult result = run_window(
      folder.path().string(), {"a.safetensors", "--cache", "none"},
      "words on\nwait exact\nexpect words == 3\nquery 1 2 3\nwait exact\nprint text_mass\n"
      "word \"dog runs\"\nwait exact\nexpect word == 1,2\nshot film.png\n"
      "click \"Query/t1\"\nwait exact\nprint query\nword none\nwait exact\nshot list.png\n"
      "word 1\nreverse on\nwait exact\nshot none.png\nprint words\n");
  INFO(result.err);
  // Nothing lists words there.
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "words: not known yet"));
  CHECK(printed(result.out, "text_mass") == Approx(1).epsilon(1e-5));
  CHECK(contains(result.out, "query 1 1 2"));
}
