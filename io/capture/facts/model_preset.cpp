#include "io/capture/facts/model_preset.h"

#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

constexpr TextSpan kNoText{};
/// A VAE that makes 8×8 pixels and, after the first, four frames one latent; patches of 2×2.
constexpr VideoGeometry kVae4x8{1, 4, 16};
constexpr VideoGeometry kCogVideoX15{1, 8, 16};  ///< patches of 2 frames as well
constexpr VideoGeometry kLtx{1, 8, 32};
constexpr VideoGeometry kMochi{1, 6, 16};
constexpr VideoGeometry kWan22{1, 4, 32};
constexpr VideoGeometry kOpenSora2{1, 4, 16};
constexpr VideoGeometry kImage{1, 1, 16};
constexpr VideoGeometry kHunyuan15{1, 4, 16};  ///< a VAE of 16×16 pixels, no patches
constexpr VideoGeometry kKVae{1, 4, 16};       ///< the same
constexpr VideoGeometry kHunyuanImage{1, 1, 32};
constexpr VideoGeometry kMiniMaxH3{1, 4, 32, 5};  ///< 17 frames are five latent frames

/// Sequences of words are multiples of this so often that a model's length tells nothing there.
constexpr int64_t kRoundLength = 1024;

// Layers, heads and head dimensions are those of the published configurations; the grid is the
// latent grid after patching at the resolution named. Those of 2025 and 2026 are what the classes
// and pipelines of diffusers 0.42 have by default, and the scripts there that convert checkpoints
// (HunyuanVideo-1.5, Cosmos 2.5, LTX-2, SkyReels-V2); Kandinsky 5's are its own configurations.
// FLUX.3 has modular blocks there alone.
constexpr ModelPreset kPresets[] = {
    {"cogvideox-2b",
     "49 frames, 480x720",
     30,
     30,
     64,
     {13, 30, 45},
     {226, TextPlace::start},
     0,
     kVae4x8},
    {"cogvideox-5b",
     "49 frames, 480x720",
     42,
     48,
     64,
     {13, 30, 45},
     {226, TextPlace::start},
     0,
     kVae4x8},
    {"cogvideox-1.5-5b",
     "81 frames, 768x1360",
     42,
     48,
     64,
     {11, 48, 85},
     {226, TextPlace::start},
     0,
     kCogVideoX15},
    {"hunyuanvideo",
     "129 frames, 720x1280",
     60,
     24,
     128,
     {33, 45, 80},
     {256, TextPlace::end},
     0,
     kVae4x8},
    // The pipeline's tokens of 1000 words, 256 of glyphs and 729 of a picture, valid ones first.
    {"hunyuanvideo-1.5-480p",
     "121 frames, 480x848",
     54,
     16,
     128,
     {31, 30, 53},
     {1985, TextPlace::end},
     0,
     kHunyuan15},
    {"hunyuanvideo-1.5-720p",
     "121 frames, 720x1280",
     54,
     16,
     128,
     {31, 45, 80},
     {1985, TextPlace::end},
     0,
     kHunyuan15},
    {"wan2.1-1.3b", "81 frames, 480x832", 30, 12, 128, {21, 30, 52}, kNoText, 512, kVae4x8},
    {"wan2.1-14b-480p", "81 frames, 480x832", 40, 40, 128, {21, 30, 52}, kNoText, 512, kVae4x8},
    {"wan2.1-14b-720p", "81 frames, 720x1280", 40, 40, 128, {21, 45, 80}, kNoText, 512, kVae4x8},
    {"wan2.2-a14b-720p", "81 frames, 720x1280", 40, 40, 128, {21, 45, 80}, kNoText, 512, kVae4x8},
    {"wan2.2-ti2v-5b", "121 frames, 704x1280", 30, 24, 128, {31, 22, 40}, kNoText, 512, kWan22},
    {"skyreels-v2-1.3b", "97 frames, 544x960", 30, 12, 128, {25, 34, 60}, kNoText, 512, kVae4x8},
    {"skyreels-v2-14b", "97 frames, 544x960", 40, 40, 128, {25, 34, 60}, kNoText, 512, kVae4x8},
    {"cosmos-2.5-2b", "93 frames, 704x1280", 28, 16, 128, {24, 44, 80}, kNoText, 512, kVae4x8},
    {"cosmos-2.5-14b", "93 frames, 704x1280", 36, 40, 128, {24, 44, 80}, kNoText, 512, kVae4x8},
    // The pipeline pads the prompt to the longest of the batch.
    {"kandinsky-5-lite",
     "121 frames, 512x768",
     32,
     28,
     64,
     {31, 32, 48},
     kNoText,
     512,
     kVae4x8,
     true},
    {"kandinsky-5-pro",
     "121 frames, 512x768",
     60,
     32,
     128,
     {31, 32, 48},
     kNoText,
     512,
     kVae4x8,
     true},
    {"kandinsky-6", "121 frames, 512x768", 60, 32, 128, {31, 32, 48}, kNoText, 512, kVae4x8, true},
    // A tile of the video, in whose frames attention's blocks of 8×8 cells stand together.
    {.name = "kandinsky-6-sr",
     .about = "121 frames, 512x768",
     .layers = 32,
     .heads = 28,
     .head_dim = 64,
     .grid = {31, 32, 48},
     .text = kNoText,
     .geometry = kKVae,
     .tile = {1, 8, 8}},
    {"chronoedit", "5 frames, 480x832", 40, 40, 128, {2, 30, 52}, kNoText, 512, kVae4x8},
    {"anyflow", "81 frames, 480x832", 40, 40, 128, {21, 30, 52}, kNoText, 512, kVae4x8},
    // The longest that its pipeline makes, with 40 latents of sound a second on either side; the
    // text is as long as the prompt.
    {"minimax-h3",
     "345 frames, 768x1344",
     50,
     56,
     128,
     {102, 24, 42},
     {84, TextPlace::start},
     0,
     kMiniMaxH3,
     true,
     {{{"audio_left", {575, 1, 1}, {}, 0, Modality::audio},
       {"audio_right", {575, 1, 1}, {}, 0, Modality::audio}}}},
    {"motif-video",
     "121 frames, 736x1280",
     60,
     24,
     128,
     {31, 46, 80},
     {512, TextPlace::end},
     0,
     kVae4x8},
    // A chunk of 9 latent frames after the history that its pipeline keeps, of 4×8×8, 2×4×4 and
    // 1×2×2 latents a cell; the last are the first frame of the stream and the one before the
    // chunk.
    {"helios",
     "33 frames, 384x640",
     40,
     40,
     128,
     {9, 24, 40},
     kNoText,
     512,
     kVae4x8,
     false,
     {{{"history_long", {4, 6, 10}, {16, 64, 64}, 1},
       {"history_mid", {1, 12, 20}, {8, 32, 32}, 17},
       {"history_short_0", {1, 24, 40}, {4, 16, 16}, 0},
       {"history_short_1", {1, 24, 40}, {4, 16, 16}, 19}}},
     20},
    {"sana-video", "81 frames, 480x832", 20, 20, 112, {21, 30, 52}, kNoText, 300, kVae4x8},
    // Softmax attention of each fourth block; the others have no map of q and k alone.
    {"sana-wm", "161 frames, 704x1280", 20, 20, 112, {21, 22, 40}, kNoText, 300, kLtx},
    // The video's attentions; those of the sound have 64 channels and a line of their own.
    {"ltx-2", "121 frames, 512x768", 48, 32, 128, {16, 16, 24}, kNoText, 1024, kLtx},
    {"ltx-video", "161 frames, 512x704", 28, 32, 64, {21, 16, 22}, kNoText, 128, kLtx},
    {"mochi", "163 frames, 480x848", 48, 24, 128, {28, 30, 53}, {256, TextPlace::end}, 0, kMochi},
    {"open-sora-2",
     "129 frames, 576x1024",
     57,
     24,
     128,
     {33, 36, 64},
     {512, TextPlace::start},
     0,
     kOpenSora2},
    {"hunyuanimage-2.1",
     "one picture, 2048x2048",
     60,
     28,
     128,
     {1, 64, 64},
     {1128, TextPlace::end},
     0,
     kHunyuanImage},
    // The pipelines do not pad the prompt, or only to the next multiple of 32.
    {"qwen-image",
     "one picture, 1024x1024",
     60,
     24,
     128,
     {1, 64, 64},
     {512, TextPlace::start},
     0,
     kImage,
     true},
    {"z-image",
     "one picture, 1024x1024",
     30,
     30,
     128,
     {1, 64, 64},
     {512, TextPlace::end},
     0,
     kImage,
     true},
    // As long as the prompt, without a limit but GLM's; what stands here is a usual length.
    {"qwen-image-2.1",
     "one picture, 1024x1024",
     32,
     32,
     128,
     {1, 64, 64},
     {512, TextPlace::start},
     0,
     kImage,
     true},
    {"glm-image",
     "one picture, 1024x1024",
     30,
     64,
     40,
     {1, 64, 64},
     {2048, TextPlace::start},
     0,
     kImage,
     true},
    {"ernie-image",
     "one picture, 1024x1024",
     24,
     24,
     128,
     {1, 64, 64},
     {512, TextPlace::end},
     0,
     kImage,
     true},
    // Its single blocks; the five before them attend within the text and within the picture. The
    // pipeline pads the prompt to the next multiple of 80.
    {"flux3",
     "one picture, 1024x1024",
     28,
     24,
     128,
     {1, 64, 64},
     {560, TextPlace::start},
     0,
     kImage,
     true},
    {"longcat-image",
     "one picture, 1024x1024",
     57,
     24,
     128,
     {1, 64, 64},
     {512, TextPlace::start},
     0,
     kImage},
    // The prompt is padded on the left.
    {"ideogram4",
     "one picture, 2048x2048",
     34,
     18,
     256,
     {1, 128, 128},
     {2048, TextPlace::start},
     0,
     kImage},
    {"krea-2",
     "one picture, 1024x1024",
     28,
     48,
     128,
     {1, 64, 64},
     {512, TextPlace::start},
     0,
     kImage},
    {"flux2-dev",
     "one picture, 1024x1024",
     56,
     48,
     128,
     {1, 64, 64},
     {512, TextPlace::start},
     0,
     kImage},
    {"flux-dev",
     "one picture, 1024x1024",
     57,
     24,
     128,
     {1, 64, 64},
     {512, TextPlace::start},
     0,
     kImage},
    {"sd3-medium",
     "one picture, 1024x1024",
     24,
     24,
     64,
     {1, 64, 64},
     {333, TextPlace::end},
     0,
     kImage},
};

}  // namespace

int64_t ModelPreset::part_tokens() const {
  int64_t tokens = 0;
  for (const PresetPart& part : parts) tokens += part.cells();
  return tokens;
}

TokenGrid ModelPreset::token_grid(const TextSpan& words) const {
  if (!is_map()) {
    return TokenGrid::video(cells() + words.count, grid, words.count, words.place);
  }
  std::vector<TokenSegment> segments;
  int64_t start = 0;
  const auto add = [&](std::string_view segment, Modality modality,
                       const std::array<int64_t, 3>& size, const std::array<int64_t, 3>& cell,
                       int64_t frame) {
    const int64_t end = start + size[0] * size[1] * size[2];
    if (end == start) return;
    TokenSegment& part = segments.emplace_back();
    part.name = segment;
    part.modality = modality;
    part.tokens = {start, end};
    part.grid = size;
    part.cell = cell;
    part.first_frame = frame;
    start = end;
  };
  if (words.count > 0) {
    TokenSegment& part = segments.emplace_back();
    part.name = "text";
    part.modality = Modality::text;
    part.tokens = {0, words.count};
    start = words.count;
  }
  for (const PresetPart& part : parts) {
    add(part.name, part.modality, part.grid, part.cell, part.first_frame);
  }
  // No cell tells of frames that are not all alike.
  const std::array<int64_t, 3> cell{geometry.frames, geometry.pixels, geometry.pixels};
  add("video", Modality::video, grid, geometry.chunks > 0 ? std::array<int64_t, 3>{} : cell,
      first_frame);
  if (has_tiles()) {
    segments.back().order = CellOrder::tiles;
    segments.back().tile = tile;
  }
  return TokenGrid::of_segments(std::move(segments));
}

bool ModelPreset::told_by(int64_t count, int64_t channels) const {
  const bool open = text_varies && text.count > 0;
  return !open && !has_tiles() && count == tokens() && channels == head_dim &&
         count % kRoundLength != 0;
}

bool ModelPreset::is_cross(int64_t queries, int64_t keys) const {
  if (cross_text == 0 || queries != cells() || keys == queries) return false;
  return text_varies || keys == cross_text;
}

std::optional<TextSpan> ModelPreset::text_of(int64_t count) const {
  if (count == tokens()) return text;
  const int64_t words = count - cells() - part_tokens();
  if (!text_varies || text.count == 0 || words < 0) return std::nullopt;
  return TextSpan{words, words > 0 ? text.place : TextPlace::none};
}

std::span<const ModelPreset> model_presets() { return kPresets; }

const ModelPreset& find_preset(std::string_view name) {
  for (const ModelPreset& preset : kPresets) {
    if (preset.name == name) return preset;
  }
  throw unknown_name("--preset", std::string(name), preset_names());
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace attnscope
