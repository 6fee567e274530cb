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

// Layers, heads and head dimensions are those of the published configurations; the grid is the
// latent grid after patching at the resolution named.
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
    {"wan2.1-1.3b", "81 frames, 480x832", 30, 12, 128, {21, 30, 52}, kNoText, 512, kVae4x8},
    {"wan2.1-14b-480p", "81 frames, 480x832", 40, 40, 128, {21, 30, 52}, kNoText, 512, kVae4x8},
    {"wan2.1-14b-720p", "81 frames, 720x1280", 40, 40, 128, {21, 45, 80}, kNoText, 512, kVae4x8},
    {"wan2.2-a14b-720p", "81 frames, 720x1280", 40, 40, 128, {21, 45, 80}, kNoText, 512, kVae4x8},
    {"wan2.2-ti2v-5b", "121 frames, 704x1280", 30, 24, 128, {31, 22, 40}, kNoText, 512, kWan22},
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

std::span<const ModelPreset> model_presets() { return kPresets; }

const ModelPreset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const ModelPreset& preset : kPresets) {
    if (preset.name == name) return preset;
    names.emplace_back(preset.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string nearest = nearest_word(name, names);
  throw usage_error("--preset " + std::string(name) + ": no such preset" +
                    (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" + list + ")");
}

}  // namespace attnscope
