// Pictures name the softmax domain of their numbers: read from the pixels of their headers, beside
// headers that are drawn here.
#include "io/pictures/joined_parts.h"
#include "io/pictures/picture_page.h"
#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const PictureStyle kDark;

const std::string kMasked = "softmax domain all, of the keys that the mask leaves (causal)";

/// One head of 2 frames of 3×4 tokens behind 4 text tokens.
std::string write_call(const TemporaryFolder& folder) {
  ReferenceCall call({1, 1, 1, 28, 28, 8}, 7);
  call.fact("grid", "2x3x4").fact("text", "4@start").fact("q_state", "final");
  const std::string path = folder / "call.safetensors";
  call.write(path);
  return path;
}

void run(const std::vector<std::string>& arguments) {
  const auto result = run_attnscope(arguments);
  INFO(arguments[0] << ": " << result.err);
  REQUIRE(result.exit_code == 0);
}

/// True where the picture begins with these lines; what stands below them may reach up to them.
bool has_header(const Picture& picture, const PictureText& text) {
  Canvas expected(static_cast<int>(picture.width), header_height(text, kDark), kDark.background);
  draw_header(expected, text, kDark);
  for (int y = 0; y < expected.height() - 16; ++y) {
    for (int x = 0; x < expected.width(); ++x) {
      if (expected.at(x, y) != picture.at(x, y)) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("pictures of a capture say which keys a mask left to the softmax") {
  const TemporaryFolder folder;
  const std::string call = write_call(folder), out = folder / "picture.png";
  const std::string title = "call.safetensors", head = "joint batch 0 head 0";
  for (const bool masked : {false, true}) {
    const std::string domain = masked ? kMasked : "softmax domain all";
    const auto draw = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin() + 1, {call, "-o", out, "--force", "--quiet"});
      if (masked) arguments.insert(arguments.end(), {"--mask", "causal"});
      run(arguments);
      return read_png(out);
    };
    INFO(domain);
    CHECK(has_header(
        draw({"render", "--picture", "matrix"}),
        {title, {head, joined_parts({"single weights", "exact", domain, "log colours"})}}));
    CHECK(has_header(draw({"query", "--query", "1,2,3"}),
                     {title, {joined_parts({"query 1,2,3", domain, "exact"})}}));
    const std::string words = "attention of the video's tokens to the text";
    CHECK(has_header(draw({"render", "--picture", "text"}),
                     {title, {joined_parts({head, words, "exact", domain})}}));
  }
}

TEST_CASE("pictures of an export say what its attribute tells of the mask") {
  const TemporaryFolder folder;
  const std::string call = write_call(folder), out = folder / "picture.png";
  const std::string maps = folder / "maps.h5", blocks = folder / "blocks.h5";
  run({"export", call, "--mask", "causal", "--dtype", "f32", "-o", maps, "--quiet"});
  run({"export", call, "--mask", "causal", "--product", "pooled", "--block", "4", "-o", blocks,
       "--quiet"});
  const std::string head = "joint batch 0 head 0";
  run({"render", maps, "--picture", "matrix", "-o", out, "--quiet"});
  CHECK(has_header(read_png(out),
                   {"call.safetensors",
                    {joined_parts({head, "export maps.h5 (f32)"}),
                     joined_parts({"single weights", "exact", kMasked, "log colours"})}}));
  run({"render", blocks, "--picture", "mosaic", "-o", out, "--force", "--quiet"});
  CHECK(has_header(read_png(out), {"call.safetensors",
                                   {joined_parts({"attention maps, queries down, keys to the right",
                                                  "export blocks.h5 (blocks of 4)"}),
                                    joined_parts({"max of 4×4 blocks", "exact", kMasked,
                                                  "log colours", "each map in its own range"})}}));
  run({"query", maps, "--query", "1,2,3", "-o", out, "--force", "--quiet"});
  CHECK(has_header(read_png(out),
                   {"call.safetensors", {joined_parts({"query 1,2,3", kMasked, "exact"})}}));
}
