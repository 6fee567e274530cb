// The token of a pixel of the decoded video: --at.
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/cli/query/query_reference.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A call of 4 text tokens and 3 x 4 x 5 tokens of video, of this model.
std::string write_call(const TemporaryFolder& folder, const std::string& model) {
  const std::string path = folder / "call.safetensors";
  joint_call("start", 5).fact("model", model).write(path);
  return path;
}

ProgramResult query_at(const std::string& path, const std::string& pixel,
                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"query", path, "--at", pixel, "--heads", "0"};
  words.insert(words.end(), more.begin(), more.end());
  return run_attnscope(words);
}

/// The tokens that were asked for.
Json tokens_at(const std::string& path, const std::string& pixel) {
  const auto result = query_at(path, pixel, {"--json", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out)["tokens"];
}

int64_t index_of(int64_t t, int64_t y, int64_t x) { return 4 + (t * 4 + y) * 5 + x; }

}  // namespace

TEST_CASE("a pixel is the token whose frames and rows and columns of pixels have it") {
  const TemporaryFolder folder;
  struct Case {
    std::string model, pixel;
    int64_t t, y, x;
  };
  // CogVideoX: frames 0, 1-4, 5-8 and 16 pixels; LTX: frames 0, 1-8, 9-16 and 32 pixels.
  const std::vector<Case> cases{{"cogvideox-5b", "frame=0,x=0,y=0", 0, 0, 0},
                                {"cogvideox-5b", "frame=1,x=15,y=16", 1, 1, 0},
                                {"cogvideox-5b", "frame=4,x=16,y=15", 1, 0, 1},
                                {"cogvideox-5b", "y=63,x=79,frame=8", 2, 3, 4},
                                {"THUDM/CogVideoX-5b", "frame=5,x=40,y=40", 2, 2, 2},
                                {"ltx-video", "frame=0,x=31,y=32", 0, 1, 0},
                                {"ltx-video", "frame=8,x=32,y=31", 1, 0, 1},
                                {"ltx-video", "frame=9,x=159,y=127", 2, 3, 4},
                                {"ltx-video", "frame=16,x=64,y=95", 2, 2, 2},
                                {"nobody's", "frame=3,x=7,y=9,cell=2x4x8,first=2", 1, 2, 0},
                                {"nobody's", "frame=3,x=8,y=9,cell=3x4x8", 1, 2, 1}};
  for (const Case& c : cases) {
    INFO(c.model << ": " << c.pixel);
    CHECK(tokens_at(write_call(folder, c.model), c.pixel) == Json{index_of(c.t, c.y, c.x)});
  }
  const std::string path = write_call(folder, "cogvideox-5b");
  const auto told = query_at(path, "frame=5,x=40,y=33");
  CHECK(contains(told.err,
                 "frame 5, x 40, y 33 is token 2,2,2 (cell 4x16x16, first 1: model cogvideox-5b)"));
  CHECK(contains(told.out, "query 2,2,2 (frame 5, x 40, y 33), domain all"));
  // As any other token: beside one, as a key, and of an export.
  const auto both = query_at(path, "frame=5,x=40,y=33", {"--index", "1", "--reverse", "--json"});
  CHECK(Json::parse(both.out)["tokens"] == Json{1, index_of(2, 2, 2)});
  REQUIRE(run_attnscope({"export", path, "--at", "frame=5,x=40,y=33", "--at", "frame=0,x=0,y=0",
                         "-o", folder / "rows.h5"})
              .exit_code == 0);
  CHECK(tokens_at(folder / "rows.h5", "frame=5,x=40,y=33") == Json{index_of(2, 2, 2)});
  CHECK(contains(query_at(folder / "rows.h5", "frame=4,x=40,y=33").err, "has no row of query 36"));
  const auto rollout =
      run_attnscope({"rollout", path, "--at", "frame=5,x=40,y=33", "--json", "--quiet"});
  CHECK(Json::parse(rollout.out)["tokens"] == Json{index_of(2, 2, 2)});
}

TEST_CASE("the preset that is named tells the cells of a published size") {
  const TemporaryFolder folder;
  const std::string capture = folder / "big";
  REQUIRE(run_attnscope({"synth", "--preset", "cogvideox-5b", "--layers", "1", "--heads", "1", "-o",
                         capture, "--quiet"})
              .exit_code == 0);
  const Json token{226 + (10 * 30 + 15) * 45 + 22};
  CHECK(tokens_at(capture, "frame=40,x=352,y=240") == token);
  const std::vector<std::string> other{"--as", "model=nobody's", "--json"};
  const auto unknown = query_at(capture, "frame=40,x=352,y=240", other);
  CHECK(unknown.exit_code == 2);
  auto named = other;
  named.insert(named.end(), {"--preset", "cogvideox-5b"});
  const auto known = query_at(capture, "frame=40,x=352,y=240", named);
  INFO(known.err);
  CHECK(Json::parse(known.out)["tokens"] == token);
  CHECK(contains(known.err, "preset cogvideox-5b"));
}

TEST_CASE("a pixel outside, an unreadable one and unknown cells are refused with what is valid") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path, const std::string& pixel,
                           const std::string& words) {
    const auto result = query_at(path, pixel, {"--quiet"});
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(contains(result.err, words));
  };
  const std::string path = write_call(folder, "cogvideox-5b");
  refused(path, "frame=9,x=0,y=0", "frame 9 is outside the decoded video");
  refused(path, "frame=9,x=0,y=0", "(valid 0 to 8)");
  refused(path, "frame=0,x=80,y=0", "x 80 is outside the decoded video");
  refused(path, "frame=0,x=0,y=64", "(valid 0 to 63)");
  for (const std::string wrong :
       {"1,2,3", "frame=1,x=2", "frame=1,x=2,y=-3", "frame=1,x=2,y=3,z=4", "frame=1,x=2,y=3,",
        "frame=1,x=2,y=3,y=4", "x=0,x=6,frame=1,y=2", "frame=0,frame=5,x=1,y=2",
        "frame=1,x=2,y=3,first=1,first=1", "frame=1,x=2,y=3,cell=1x1x1,cell=1x1x1",
        "frame=1,x=2,y=3,cell=4x16", "frame=1,x=2,y=3,cell=0x1x1", "frame=1,x=2,y=3,first=0",
        "frame=1.5,x=2,y=3", "frame=99999999999999999999,x=0,y=0",
        "frame=1,x=2,y=3,cell=4x16x9000000000"}) {
    refused(path, wrong, "expected frame=F,x=X,y=Y");
  }
  // CogVideoX of 1.0 and 1.5 differ.
  for (const std::string model : {"cogvideox", "nobody's", ""}) {
    refused(write_call(folder, model), "frame=1,x=2,y=3", "is not known; give --preset NAME");
  }
  const std::string bare = folder / "bare.safetensors";
  ReferenceCall({1, 1, 1, 20, 20, 8}, 3).write(bare);
  refused(bare, "frame=0,x=0,y=0,cell=4x16x16", "has no token grid; give --grid TxHxW");
  const auto cross = query_at(path, "frame=0,x=0,y=0", {"--grid", "none"});
  CHECK(cross.exit_code == 2);
}

TEST_CASE("a token map tells its cells, their order and where in the stream the video begins") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  ReferenceCall call({1, 1, 1, 64, 64, 8}, 7);
  const Json map = Json::array({{{"name", "text"}, {"modality", "text"}, {"count", 4}},
                                {{"name", "clip"},
                                 {"modality", "video"},
                                 {"count", 60},
                                 {"grid", {3, 4, 5}},
                                 {"cell", {4, 16, 16}},
                                 {"first_frame", 2},
                                 {"order", {{"tiles", {1, 2, 2}}}}}});
  call.version(2).fact("queries", map.dump());
  call.write(path);
  // Latent frames 2, 3, 4 of the stream: frames 5-8, 9-12, 13-16. In a frame of 2 x 2 tiles, row 2
  // and column 2 begin the second tile of the second row, behind 10 + 4 tokens.
  CHECK(tokens_at(path, "frame=9,x=40,y=33") == Json{4 + 20 + 14});
  CHECK(contains(query_at(path, "frame=9,x=40,y=33").err, "is token clip:1,2,2"));
  const auto outside = query_at(path, "frame=4,x=0,y=0");
  CHECK(outside.exit_code == 2);
  CHECK(contains(outside.err, "(valid 5 to 16)"));
}

TEST_CASE("a token that is chosen already is not named twice") {
  const TemporaryFolder folder;
  const std::string path = write_call(folder, "cogvideox-5b");
  const std::string first = "frame=5,x=40,y=33", second = "frame=6,x=47,y=47";
  CHECK(contains(query_at(path, first, {"--query", "2,2,2"}).out, "query 2,2,2, domain all"));
  const auto same = query_at(path, first, {"--at", second});
  CHECK(contains(same.out, "query 2,2,2 (frame 5, x 40, y 33), domain all"));
  const auto others =
      query_at(path, first, {"--query", "2,2,2", "--at", "frame=0,x=0,y=0", "--at", second});
  CHECK(contains(others.out, "mean of 2 queries (2,2,2; 0,0,0 (frame 0, x 0, y 0))"));
}

TEST_CASE("no command leaves a pixel out that it was given") {
  const TemporaryFolder folder;
  const std::string path = write_call(folder, "cogvideox-5b"), table = folder / "stats.json";
  REQUIRE(run_attnscope({"export", path, "-o", folder / "maps.h5", "--quiet"}).exit_code == 0);
  REQUIRE(run_attnscope({"stats", path, "-o", table, "--quiet"}).exit_code == 0);
  const std::vector<std::string> figure{"figure", path, "--heads", "0", "-o", folder / "f.html"};
  auto words = figure;
  words.insert(words.end(), {"--at", "frame=5,x=40,y=33"});
  // A program that was built without the page's engine finds the token before it says so.
  CHECK(contains(run_attnscope(words).err, "is token 2,2,2"));
  words.insert(words.end(), {"--at", "frame=0,x=0,y=0"});
  CHECK(contains(run_attnscope(words).err, "a figure begins with one query, and 2 are chosen"));
  words = figure;
  words.insert(words.end(), {"--at", "garbage", "--query", "2,2,2"});
  CHECK(contains(run_attnscope(words).err, "--at garbage: expected frame=F,x=X,y=Y"));
  for (const auto& [input, picture] :
       std::vector<std::pair<std::string, std::string>>{{path, "matrix"},
                                                        {path, "frames"},
                                                        {path, "mosaic"},
                                                        {path, "heatmap"},
                                                        {path, "offsets"},
                                                        {path, "text"},
                                                        {folder / "maps.h5", "matrix"},
                                                        {table, "heatmap"}}) {
    INFO(input << " " << picture);
    const auto result = run_attnscope({"render", input, "--picture", picture, "--at",
                                       "frame=5,x=40,y=33", "-o", folder / "picture.png"});
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "--at: --picture " + picture + " has no use for it"));
  }
}

TEST_CASE("the videos of both sides of a difference have one token at a pixel") {
  const TemporaryFolder folder;
  const std::string a = folder / "a.safetensors", b = folder / "b.safetensors";
  joint_call("start", 5).fact("model", "cogvideox-5b").write(a);
  joint_call("start", 6).fact("model", "ltx-video").write(b);
  const auto diff = [&](const std::string& first, const std::string& second,
                        const std::string& pixel) {
    return run_attnscope({"diff", first, second, "--product", "volume", "--heads", "0", "--at",
                          pixel, "-o", folder / "volume.npy", "--force"});
  };
  const auto clash = diff(a, b, "frame=5,x=40,y=33");
  CHECK(clash.exit_code == 2);
  CHECK(contains(clash.err, "is token 2,2,2 of"));
  CHECK(contains(clash.err, "and token 1,1,1 of"));
  CHECK(contains(clash.err,
                 "their cells differ (cell 4x16x16, first 1: model cogvideox-5b; cell 8x32x32, "
                 "first 1: model ltx-video)"));
  CHECK(diff(a, b, "frame=5,x=40,y=33,cell=4x16x16").exit_code == 0);
  // Exports take no option that tells it.
  joint_call("start", 5).fact("model", "nobody's").write(a);
  const std::string rows = folder / "rows.h5";
  REQUIRE(run_attnscope({"export", a, "-o", rows, "--quiet"}).exit_code == 0);
  for (const auto& result :
       {query_at(rows, "frame=5,x=40,y=33"), diff(rows, rows, "frame=5,x=40,y=33")}) {
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "is not known; tell it: --at frame=5,x=40,y=33,cell=4x16x16"));
    CHECK_FALSE(contains(result.err, "--preset"));
  }
}

TEST_CASE("a difference knows the cells of the preset that its grid was guessed of") {
  const TemporaryFolder folder;
  // Files without a format, whose facts are guessed.
  const std::string zeros =
      npy_bytes("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2, 7392, 64), }\n",
                std::string(size_t{4 * 7392 * 64}, '\0'));
  const std::string q = folder / "q.npy", k = folder / "k.npy";
  write_bytes(q, zeros);
  write_bytes(k, zeros);
  const auto result = run_attnscope({"diff", "--q", q, "--k", k, "--heads", "0", "--b-head", "1",
                                     "--product", "volume", "--at", "frame=9,x=40,y=33", "-o",
                                     folder / "volume.npy", "--dry-run"});
  INFO(result.err);
  CHECK(contains(result.err, "is token 2,1,1 (cell 8x32x32, first 1: preset ltx-video)"));
}
