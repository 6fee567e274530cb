#include <algorithm>
#include <filesystem>

#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope::test;

namespace {

using Arguments = std::vector<std::string>;

const std::string kNote =
    "attnscope: note: 1 of 1 calls do not record what was applied to q and k (q_state): taken "
    "before RoPE or QK norm, their maps are not the model's; --rope NAME applies RoPE, "
    "--as q_state=final says that they are final\n";

/// A joint call of 2 layers whose q_state nobody recorded.
std::string write_capture(const TemporaryFolder& folder) {
  std::filesystem::create_directory(folder.path() / "dump");
  for (const std::string layer : {"0", "1"}) {
    ReferenceCall call({1, 2, 2, 28, 28, 8}, 7);
    call.fact("grid", "2x3x4").fact("text", "4@start").fact("layer", layer);
    call.write(folder / ("dump/" + layer + ".safetensors"));
  }
  return folder / "dump";
}

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

int count_notes(const std::string& text) {
  int count = 0;
  for (size_t at = text.find("(q_state)"); at != std::string::npos;
       at = text.find("(q_state)", at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("every command that computes tells once that nobody recorded what q and k are") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  const std::vector<Arguments> commands{
      {"info", dump},
      {"export", dump, "-o", folder / "maps.h5"},
      {"export", dump, "-o", folder / "blocks.h5", "--product", "pooled", "--block", "8"},
      {"stats", dump},
      {"mask", dump, "--mask", "spatial:frames=0"},
      {"query", dump, "--query", "1,2,3"},
      {"query", dump, "--query", "1,2,3", "--reverse", "--cache", "none"},
      {"render", dump, "--picture", "mosaic", "-o", folder / "mosaic.png"},
      {"render", dump, "--picture", "filmstrip", "--query", "1,2,3", "-o", folder / "film.png"},
      {"diff", dump, "--heads", "0", "--layers", "0", "--b-head", "1"}};
  for (const Arguments& command : commands) {
    const Arguments one = command.front() == "diff" ? command : with(command, {"--layers", "1"});
    INFO(command.front() << " " << command.back());
    const ProgramResult told = run_attnscope(with(one, {"--as", "q_state=final"}));
    REQUIRE(told.exit_code == 0);
    CHECK(count_notes(told.err) == 0);
    const bool writes = std::find(one.begin(), one.end(), "-o") != one.end();
    const Arguments again = writes ? with(one, {"--force"}) : one;
    const ProgramResult untold = run_attnscope(again);
    REQUIRE(untold.exit_code == 0);
    CHECK(count_notes(untold.err) == 1);
    if (command.front() != "diff") CHECK(contains(untold.err, kNote));
    CHECK(count_notes(run_attnscope(with(again, {"--quiet"})).err) == 0);
  }
  CHECK(contains(run_attnscope({"stats", dump}).err, "note: 2 of 2 calls"));
  const ProgramResult rollout = run_attnscope({"rollout", dump, "--query", "1,2,3"});
  CHECK(count_notes(rollout.err) == 1);
}

TEST_CASE("the note names the rotary embedding of the model that fits") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  // LTX-Video's 21x16x22 tokens.
  CallFile().pair({1, 1, 7392, 64}, {1, 1, 7392, 64}, "BF16").write(path);
  CHECK(contains(run_attnscope({"stats", path, "--dry-run"}).err, "; --rope ltx applies RoPE"));
  const ProgramResult turned = run_attnscope({"stats", path, "--dry-run", "--rope", "ltx"});
  CHECK(count_notes(turned.err) == 0);
}

TEST_CASE("pictures tell that nobody recorded what q and k are") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  const std::vector<Arguments> pictures{
      {"render", dump, "--layers", "0", "--heads", "0", "--picture", "matrix"},
      {"render", dump, "--picture", "mosaic"},
      {"render", dump, "--picture", "frames"},
      {"render", dump, "--picture", "heatmap", "--metric", "entropy"},
      {"render", dump, "--picture", "filmstrip", "--query", "1,2,3"},
      {"render", dump, "--picture", "text"},
      {"render", dump, "--picture", "offsets"},
      {"query", dump, "--query", "1,2,3"}};
  const auto draw = [&](const Arguments& picture, const Arguments& more) {
    const std::string out = folder / "picture.png";
    REQUIRE(run_attnscope(with(with(picture, more), {"--quiet", "--force", "-o", out})).exit_code ==
            0);
    return read_file(out);
  };
  for (const Arguments& picture : pictures) {
    INFO(picture[0] << " " << picture[3]);
    const std::string final = draw(picture, {"--as", "q_state=final"});
    CHECK(draw(picture, {"--as", "q_state=rope"}) == final);
    CHECK(draw(picture, {}) != final);
  }
  // An export keeps what was recorded.
  std::vector<std::string> drawn;
  for (const Arguments& state : {Arguments{}, Arguments{"--as", "q_state=final"}}) {
    REQUIRE(
        run_attnscope(with({"export", dump, "-o", folder / "maps.h5", "--force", "--quiet"}, state))
            .exit_code == 0);
    drawn.push_back(draw({"render", folder / "maps.h5", "--picture", "mosaic"}, {}));
  }
  CHECK(drawn[0] != drawn[1]);
}
