#include <algorithm>
#include <sstream>

#include "io/capture/facts/model_preset.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct ModelRow {
  std::string name;
  int64_t layers, heads, head_dim, tokens;
};

TokenGrid token_grid(const ModelPreset& preset) {
  return TokenGrid::video(preset.tokens(), preset.grid, preset.text.count, preset.text.place);
}

}  // namespace

TEST_CASE("presets have the sizes of their models") {
  const std::vector<ModelRow> rows{
      {"cogvideox-2b", 30, 30, 64, 17776},     {"cogvideox-5b", 42, 48, 64, 17776},
      {"cogvideox-1.5-5b", 42, 48, 64, 45106}, {"hunyuanvideo", 60, 24, 128, 119056},
      {"wan2.1-1.3b", 30, 12, 128, 32760},     {"wan2.1-14b-480p", 40, 40, 128, 32760},
      {"wan2.1-14b-720p", 40, 40, 128, 75600}, {"wan2.2-a14b-720p", 40, 40, 128, 75600},
      {"wan2.2-ti2v-5b", 30, 24, 128, 27280},  {"ltx-video", 28, 32, 64, 7392},
      {"mochi", 48, 24, 128, 44776},           {"open-sora-2", 57, 24, 128, 76544},
      {"flux-dev", 57, 24, 128, 4608},         {"sd3-medium", 24, 24, 64, 4429}};
  CHECK(model_presets().size() == rows.size());
  for (const ModelRow& row : rows) {
    INFO(row.name);
    const ModelPreset& preset = find_preset(row.name);
    CHECK(preset.layers == row.layers);
    CHECK(preset.heads == row.heads);
    CHECK(preset.head_dim == row.head_dim);
    CHECK(preset.tokens() == row.tokens);
    CHECK(token_grid(preset).tokens() == row.tokens);
  }
}

TEST_CASE("a preset's grid decodes to the video that it is about") {
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.name);
    const auto& [t, y, x] = preset.grid;
    const int64_t frames = TokenGrid::video_frames(t - 1, preset.geometry).end;
    const std::string size = ", " + std::to_string(y * preset.geometry.pixels) + "x" +
                             std::to_string(x * preset.geometry.pixels);
    CHECK(preset.about ==
          (frames == 1 ? "one picture" : std::to_string(frames) + " frames") + size);
  }
}

TEST_CASE("presets are found by name, and a misspelt one gets a suggestion") {
  const std::string text = thrown_text(ErrorCode::usage, [] { find_preset("hunyuan-video"); });
  CHECK(text.find("did you mean hunyuanvideo?") != std::string::npos);
  for (const ModelPreset& preset : model_presets()) {
    CHECK(&find_preset(preset.name) == &preset);
    CHECK(text.find(preset.name) != std::string::npos);
  }
  CHECK(thrown_text(ErrorCode::usage, [] { find_preset(""); }).find("no such preset") !=
        std::string::npos);
}

TEST_CASE("the manual's table of presets is the program's") {
  std::istringstream manual(read_bytes(project_folder() + "/docs/capture-format.md"));
  std::vector<std::string> rows;
  for (std::string line; std::getline(manual, line);) {
    if (line.rfind("| ", 0) == 0) rows.push_back(line);
  }
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.name);
    const TokenGrid grid = token_grid(preset);
    const std::string text = preset.cross_text == 0
                                 ? grid.text_text()
                                 : "none; cross attention to " + std::to_string(preset.cross_text);
    const std::string facts =
        " | " + grid.grid_text() + " | " + text + " | " + std::to_string(preset.head_dim) + " |";
    const bool stated = std::any_of(rows.begin(), rows.end(), [&](std::string row) {
      const size_t at = row.find(facts);
      if (at == std::string::npos || at + facts.size() != row.size()) return false;
      return (row.substr(1, at - 1) + ",").find(" " + std::string(preset.name) + ",") !=
             std::string::npos;
    });
    CHECK(stated);
  }
}
