// Heads that are chosen one by one, or from a list.
#include <nlohmann/json.hpp>
#include <set>

#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// (layer, batch item, head)
using Places = std::vector<std::tuple<int64_t, int64_t, int64_t>>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Places places_of(const Json& rows) {
  Places places;
  for (const Json& row : rows) {
    places.emplace_back(row.at("layer").get<int64_t>(), row.at("batch").get<int64_t>(),
                        row.at("head").get<int64_t>());
  }
  return places;
}

/// The heads that `stats --json` finds.
Places chosen(const std::string& capture, std::vector<std::string> selection,
              std::string* said = nullptr) {
  selection.insert(selection.begin(), {"stats", capture, "--sample", "4", "--json"});
  const auto result = run_attnscope(selection);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  if (said != nullptr) *said = result.err;
  return places_of(Json::parse(result.out).at("heads"));
}

/// A capture of one call of two batch items of one branch, three heads each.
std::string write_two_items(const TemporaryFolder& folder) {
  std::vector<float> values(2 * 3 * 6 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1F * static_cast<float>(i % 7);
  const std::string data(reinterpret_cast<const char*>(values.data()),
                         values.size() * sizeof(float));
  CallFile()
      .fact("layer", "2")
      .fact("q_state", "final")
      .tensor("q", "F32", {2, 3, 6, 4}, data)
      .tensor("k", "F32", {2, 3, 6, 4}, data)
      .write(folder.path() / "two.safetensors");
  return folder / "two.safetensors";
}

std::string write_list(const std::string& path, const std::string& rows) {
  write_bytes(path, R"({"format":"attnscope-heads/1","heads":[)" + rows + "]}");
  return path;
}

}  // namespace

TEST_CASE("heads are picked one by one in every command") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const Places two{{0, 0, 1}, {2, 0, 3}};
  CHECK(chosen(capture, {"--pick", "2.3,0.1"}) == two);
  CHECK(chosen(capture, {"--pick", "2.3", "--pick", "10:0.1"}) == two);
  CHECK(chosen(capture, {"--pick", "2.3,0.1", "--layers", "1-3"}) == Places{{2, 0, 3}});
  const auto works = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--pick", "0.1,2.3"});
    const auto result = run_attnscope(words);
    INFO(words.front() << "\n" << result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  };
  const std::string maps = folder / "maps.h5", part = folder / "part-{shard}.h5";
  works({"export", capture, "-o", maps, "--product", "lse"});
  const std::string first = "/calls/step0010_layer000_cond_joint",
                    last = "/calls/step0010_layer002_cond_joint";
  CHECK(read_dataset(maps, first + "/head").values == std::vector<double>{1});
  CHECK(read_dataset(maps, last + "/head").values == std::vector<double>{3});
  const auto query = Json::parse(works({"query", capture, "--index", "700", "--json"}));
  CHECK(places_of(query.at("heads")) == two);
  const auto masks = Json::parse(works({"mask", capture, "--mask", "window:64", "--json"}));
  CHECK(places_of(masks.at("heads")) == two);
  const auto plan = Json::parse(works(
      {"render", capture, "--picture", "mosaic", "-o", folder / "m.png", "--dry-run", "--json"}));
  CHECK(plan.at("heads") == 2);
  works({"convert", capture, "-o", folder / "less"});
  // The only head of each of its calls.
  CHECK(chosen(folder / "less", {}) == Places{{0, 0, 0}, {2, 0, 0}});
  // Of an export as of a capture.
  works({"export", capture, "-o", folder / "rows.h5", "--index", "700"});
  const auto rows =
      run_attnscope({"query", folder / "rows.h5", "--index", "700", "--json", "--pick", "2.3"});
  INFO(rows.err);
  CHECK(places_of(Json::parse(rows.out).at("heads")) == Places{{2, 0, 3}});
}

TEST_CASE("lists of heads are what stats, mask and diff write, or one's own") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const Places wanted{{0, 0, 1}, {2, 0, 1}};
  const std::vector<std::string> some{"--layers", "0,2", "--heads", "1"};
  for (const char* name : {"t.json", "t.csv", "t.h5"}) {
    INFO(name);
    std::vector<std::string> words{"stats", capture, "--sample", "4", "-o", folder / name};
    words.insert(words.end(), some.begin(), some.end());
    REQUIRE(run_attnscope(words).exit_code == 0);
    CHECK(chosen(capture, {"--from", folder / name}) == wanted);
  }
  std::vector<std::string> words{"diff",     capture, "--sample", "4",
                                 "--b-head", "2",     "-o",       folder / "d.json"};
  words.insert(words.end(), some.begin(), some.end());
  REQUIRE(run_attnscope(words).exit_code == 0);
  CHECK(chosen(capture, {"--from", folder / "d.json"}) == wanted);
  const std::string own = write_list(
      folder / "own.json", R"({"layer":0,"head":1},{"step":10,"layer":2,"branch":"cond","head":1,)"
                           R"("kind":"joint","batch":0,"block":null,"note":"a"})");
  CHECK(chosen(capture, {"--from", own}) == wanted);
  CHECK(chosen(capture, {"--from", own, "--pick", "2.1,2.2"}) == Places{{2, 0, 1}});
}

TEST_CASE("an output remembers which heads were listed") {
  const TemporaryFolder folder;
  const std::string list = write_list(folder / "list.json", R"({"layer":0,"head":1})");
  const auto run = [&] {
    return run_attnscope({"stats", sample("moving-shapes"), "--sample", "4", "--from", list, "-o",
                          folder / "t.json", "--resume"});
  };
  REQUIRE(run().exit_code == 0);
  const Json options = Json::parse(read_file(folder / "t.json")).at("options");
  CHECK(options.at("from").get<std::string>().starts_with("1 heads "));
  const auto again = run();
  CHECK(again.exit_code == 0);
  CHECK(has(again.err, "complete already"));
  write_list(list, R"({"layer":0,"head":2})");
  const auto other = run();
  CHECK(other.exit_code == 1);
  CHECK(has(other.err, folder / "t.json"));
}

TEST_CASE("what is chosen and is not there is told, and an error where nothing is left") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  std::string said;
  CHECK(chosen(capture, {"--pick", "0.1,7.1,2.9"}, &said) == Places{{0, 0, 1}});
  CHECK(has(said, "warning: --pick: 2 of 3 heads are not in this capture: 7.1, 2.9"));
  CHECK(chosen(capture, {"--layers", "1,99", "--heads", "0", "--branch", "cond,uncond"}, &said) ==
        Places{{1, 0, 0}});
  CHECK(has(said, "--layers 1,99: 99 does not exist (there are 0-3)"));
  CHECK(has(said, "--branch uncond: not in this capture"));
  const auto refusal = [&](std::vector<std::string> selection, int code) {
    selection.insert(selection.begin(), {"stats", capture});
    const auto result = run_attnscope(selection);
    INFO(result.err);
    CHECK(result.exit_code == code);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(has(refusal({"--pick", "9.1"}, 2), "--pick: 1 of 1 head is not in this capture: 9.1"));
  CHECK(has(refusal({"--pick", "0.1", "--layers", "1"}, 2), "the selection leaves no head"));
  CHECK(has(refusal({"--pick", "three"}, 2), "--pick three: expected LAYER.HEAD"));
  CHECK(has(refusal({"--from", folder / "none.json"}, 1), "none.json"));
  const std::string list = folder / "list.json";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "lists no head"},
      {R"({"layer":0})", "heads[0]: names no head"},
      {R"({"layer":0,"head":1},{"layer":"x","head":1})", "heads[1].layer: expected a whole number"},
      {R"({"head":1.5})", "heads[0].head: expected a whole number"},
      {R"({"head":1,"branch":3})", "heads[0].branch: expected a text"},
      {"7", "heads[0]: expected an object"}};
  for (const auto& [rows, text] : wrong) {
    INFO(rows);
    write_list(list, rows);
    CHECK(has(refusal({"--from", list}, 1), text));
  }
  write_bytes(list, R"({"format":"attnscope-heads/1"})");
  CHECK(has(refusal({"--from", list}, 1), "is no list of heads"));
  write_bytes(folder / "list.txt", "0.1");
  CHECK(has(refusal({"--from", folder / "list.txt"}, 1), "is no list of heads"));
}

TEST_CASE("batch items of a call may have other heads listed") {
  const TemporaryFolder folder;
  const std::string capture = write_two_items(folder);
  const std::string list = write_list(
      folder / "list.json", R"({"batch":0,"head":0},{"batch":0,"head":2},{"batch":1,"head":1})");
  const Places wanted{{2, 0, 0}, {2, 0, 2}, {2, 1, 1}};
  CHECK(chosen(capture, {"--from", list}) == wanted);
  const std::string table = folder / "t.h5";
  REQUIRE(run_attnscope({"stats", capture, "--from", list, "-o", table}).exit_code == 0);
  CHECK(chosen(capture, {"--from", table}) == wanted);
  const auto masks =
      run_attnscope({"mask", capture, "--from", list, "--mask", "window:2", "--json"});
  INFO(masks.err);
  CHECK(places_of(Json::parse(masks.out).at("heads")) == wanted);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"export", capture, "-o", folder / "o.h5"},
        {"convert", capture, "-o", folder / "o"}}) {
    auto all = words;
    all.insert(all.end(), {"--from", list});
    const auto refused = run_attnscope(all);
    CHECK(refused.exit_code == 2);
    CHECK(has(refused.err, "choose items with --batch"));
    all.insert(all.end(), {"--batch", "0"});
    CHECK(run_attnscope(all).exit_code == 0);
  }
}

TEST_CASE("no output replaces the list that its heads come from") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const std::string list = write_list(folder / "list.json", R"({"layer":0,"head":1})");
  const std::string bytes = read_file_text(list);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"stats", capture, "--sample", "4"},
        {"diff", capture, "--b-head", "0", "--sample", "4"}}) {
    std::vector<std::string> whole = words;
    whole.insert(whole.end(), {"--from", list, "-o", list, "--force"});
    const auto result = run_attnscope(whole);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(has(result.err, "is the list of heads that --from reads"));
    CHECK(read_file_text(list) == bytes);
  }
}
