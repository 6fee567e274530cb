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

}  // namespace

TEST_CASE("presets have the sizes of their models") {
  const std::vector<ModelRow> rows{{"cogvideox-2b", 30, 30, 64, 17776},
                                   {"cogvideox-5b", 42, 48, 64, 17776},
                                   {"cogvideox-1.5-5b", 42, 48, 64, 45106},
                                   {"hunyuanvideo", 60, 24, 128, 119056},
                                   {"wan2.1-1.3b", 30, 12, 128, 32760},
                                   {"wan2.1-14b-480p", 40, 40, 128, 32760},
                                   {"wan2.1-14b-720p", 40, 40, 128, 75600},
                                   {"wan2.2-a14b-720p", 40, 40, 128, 75600},
                                   {"wan2.2-ti2v-5b", 30, 24, 128, 27280},
                                   {"ltx-video", 28, 32, 64, 7392},
                                   {"hunyuanvideo-1.5-480p", 54, 16, 128, 51275},
                                   {"hunyuanvideo-1.5-720p", 54, 16, 128, 113585},
                                   {"skyreels-v2-1.3b", 30, 12, 128, 51000},
                                   {"skyreels-v2-14b", 40, 40, 128, 51000},
                                   {"cosmos-2.5-2b", 28, 16, 128, 84480},
                                   {"cosmos-2.5-14b", 36, 40, 128, 84480},
                                   {"kandinsky-5-lite", 32, 28, 64, 47616},
                                   {"kandinsky-5-pro", 60, 32, 128, 47616},
                                   {"kandinsky-6", 60, 32, 128, 47616},
                                   {"kandinsky-6-sr", 32, 28, 64, 47616},
                                   {"sana-wm", 20, 20, 112, 18480},
                                   {"qwen-image-2.1", 32, 32, 128, 4608},
                                   {"glm-image", 30, 64, 40, 6144},
                                   {"ernie-image", 24, 24, 128, 4608},
                                   {"flux3", 28, 24, 128, 4656},
                                   {"longcat-image", 57, 24, 128, 4608},
                                   {"ideogram4", 34, 18, 256, 18432},
                                   {"chronoedit", 40, 40, 128, 3120},
                                   {"anyflow", 40, 40, 128, 32760},
                                   {"minimax-h3", 50, 56, 128, 104050},
                                   {"motif-video", 60, 24, 128, 114592},
                                   {"helios", 40, 40, 128, 11040},
                                   {"sana-video", 20, 20, 112, 32760},
                                   {"ltx-2", 48, 32, 128, 6144},
                                   {"hunyuanimage-2.1", 60, 28, 128, 5224},
                                   {"qwen-image", 60, 24, 128, 4608},
                                   {"z-image", 30, 30, 128, 4608},
                                   {"krea-2", 28, 48, 128, 4608},
                                   {"flux2-dev", 56, 48, 128, 4608},
                                   {"mochi", 48, 24, 128, 44776},
                                   {"open-sora-2", 57, 24, 128, 76544},
                                   {"flux-dev", 57, 24, 128, 4608},
                                   {"sd3-medium", 24, 24, 64, 4429}};
  CHECK(model_presets().size() == rows.size());
  for (const ModelRow& row : rows) {
    INFO(row.name);
    const ModelPreset& preset = find_preset(row.name);
    CHECK(preset.layers == row.layers);
    CHECK(preset.heads == row.heads);
    CHECK(preset.head_dim == row.head_dim);
    CHECK(preset.tokens() == row.tokens);
    CHECK(preset.token_grid().tokens() == row.tokens);
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
  CHECK(thrown_text(ErrorCode::usage, [] { find_preset(""); }).find("no such name") !=
        std::string::npos);
}

TEST_CASE("a sequence's length tells one grid and text at most") {
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.name);
    for (const ModelPreset& other : model_presets()) {
      if (!other.told_by(preset.tokens(), preset.head_dim)) continue;
      if (!preset.told_by(preset.tokens(), preset.head_dim)) continue;
      CHECK(other.grid == preset.grid);
      CHECK(other.text.count == preset.text.count);
      CHECK(other.text.place == preset.text.place);
    }
  }
  CHECK(find_preset("hunyuanvideo").told_by(119056, 128));
  CHECK_FALSE(find_preset("hunyuanvideo").told_by(119056, 64));
  // A round number of words, and text of any length.
  CHECK_FALSE(find_preset("ltx-2").told_by(6144, 128));
  CHECK_FALSE(find_preset("qwen-image").told_by(4608, 128));
}

TEST_CASE("Helios' history stands before its video in cells of other sizes") {
  const TokenGrid map = find_preset("helios").token_grid();
  REQUIRE(map.segments().size() == 5);
  // Latent frames 1 to 19 of the stream, the first again, and a chunk of nine; 4, 2 and 1 a cell.
  const std::vector<std::array<int64_t, 3>> spans{
      {1, 17, 240}, {17, 19, 240}, {0, 1, 960}, {19, 20, 960}, {20, 29, 8640}};
  for (size_t i = 0; i < spans.size(); ++i) {
    const TokenSegment& part = map.segments()[i];
    INFO(part.name);
    CHECK(part.first_frame == spans[i][0]);
    CHECK(part.first_frame + part.grid[0] * part.cell[0] / 4 == spans[i][1]);
    CHECK(part.tokens.size() == spans[i][2]);
    CHECK(part.grid[1] * part.cell[1] == 384);
    CHECK(part.grid[2] * part.cell[2] == 640);
    CHECK((part.modality == Modality::history) == (i < 4));
  }
  CHECK(map.video_range() == IndexRange{2400, 11040});
}

TEST_CASE("MiniMax-H3's sound stands between the prompt and the video") {
  const ModelPreset& preset = find_preset("minimax-h3");
  const auto words = preset.text_of(102816 + 1150 + 200);
  REQUIRE(words);
  CHECK(words->count == 200);
  const TokenGrid map = preset.token_grid(*words);
  REQUIRE(map.segments().size() == 4);
  CHECK(map.text_range() == IndexRange{0, 200});
  CHECK(map.segments()[1].name == "audio_left");
  CHECK(map.segments()[2].tokens == IndexRange{775, 1350});
  CHECK(map.segments()[2].modality == Modality::audio);
  CHECK(map.video_range() == IndexRange{1350, 104166});
  CHECK(map.segments()[3].cell == std::array<int64_t, 3>{});
  CHECK(preset.text_of(102816 + 1150)->place == TextPlace::none);
  CHECK_FALSE(preset.text_of(102816 + 1149));
  CHECK_FALSE(preset.told_by(104050, 128));
}

TEST_CASE("cells of Kandinsky 6 SR stand in tiles") {
  const ModelPreset& preset = find_preset("kandinsky-6-sr");
  const TokenGrid map = preset.token_grid();
  REQUIRE(map.segments().size() == 1);
  CHECK_FALSE(map.has_grid());
  // The tile of rows 8 to 15 and columns 0 to 7 comes behind the six of rows 0 to 7.
  CHECK(map.any_coord(6 * 64)->y == 8);
  CHECK(map.any_coord(6 * 64)->x == 0);
  CHECK(map.any_coord(32 * 48 + 9)->t == 1);
  CHECK(map.any_coord(32 * 48 + 9)->y == 1);
  CHECK(map.segments()[0].cell == std::array<int64_t, 3>{4, 16, 16});
  // As many tokens as Kandinsky 5 Lite's rows and columns.
  CHECK_FALSE(preset.told_by(47616, 64));
  CHECK(find_preset("kandinsky-5-lite").told_by(47616, 64));
}

TEST_CASE("text that is as long as the prompt is what a sequence has beside the grid") {
  const ModelPreset& qwen = find_preset("qwen-image");
  REQUIRE(qwen.text_of(4096 + 37));
  CHECK(qwen.text_of(4096 + 37)->count == 37);
  CHECK(qwen.text_of(4096 + 37)->place == TextPlace::start);
  CHECK(qwen.text_of(4096)->place == TextPlace::none);
  CHECK_FALSE(qwen.text_of(4095));
  const ModelPreset& flux = find_preset("flux-dev");
  CHECK(flux.text_of(4608)->count == 512);
  CHECK_FALSE(flux.text_of(4607));
  const ModelPreset& kandinsky = find_preset("kandinsky-5-lite");
  CHECK(kandinsky.text_of(47616)->count == 0);
  CHECK_FALSE(kandinsky.text_of(47617));
  CHECK(kandinsky.is_cross(47616, 90));
  CHECK_FALSE(kandinsky.is_cross(47616, 47616));
  CHECK_FALSE(kandinsky.is_cross(90, 90));
  CHECK(find_preset("cosmos-2.5-2b").is_cross(84480, 512));
  CHECK_FALSE(find_preset("cosmos-2.5-2b").is_cross(84480, 511));
}

TEST_CASE("the manual's table of presets is the program's") {
  std::istringstream manual(read_bytes(project_folder() + "/docs/capture-format.md"));
  std::vector<std::string> rows;
  for (std::string line; std::getline(manual, line);) {
    if (line.rfind("| ", 0) == 0) rows.push_back(line);
  }
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.name);
    const TokenGrid grid = TokenGrid::video(preset.cells() + preset.text.count, preset.grid,
                                            preset.text.count, preset.text.place);
    const int64_t before = preset.part_tokens();
    const std::string what =
        preset.parts[0].modality == Modality::audio ? " tokens of sound" : " tokens of history";
    const std::string size = grid.grid_text() + (preset.has_tiles() ? " in tiles of 1x8x8" : "") +
                             (before > 0 ? " after " + std::to_string(before) + what : "");
    const std::string words =
        preset.text_varies
            ? "the prompt"
            : std::to_string(preset.cross_text == 0 ? preset.text.count : preset.cross_text);
    const std::string text = preset.cross_text > 0 ? "none; cross attention to " + words
                             : preset.text_varies
                                 ? words + grid.text_text().substr(grid.text_text().find('@'))
                                 : grid.text_text();
    const std::string facts =
        " | " + size + " | " + text + " | " + std::to_string(preset.head_dim) + " |";
    const bool stated = std::any_of(rows.begin(), rows.end(), [&](std::string row) {
      const size_t at = row.find(facts);
      if (at == std::string::npos || at + facts.size() != row.size()) return false;
      return (row.substr(1, at - 1) + ",").find(" " + std::string(preset.name) + ",") !=
             std::string::npos;
    });
    CHECK(stated);
  }
}
