#include "core/problem/rope_family.h"

#include <algorithm>

namespace attnscope {
namespace {

/// In the order of RopeFamily.
constexpr std::array<std::string_view, 18> kRopeNames{
    "cogvideox", "hunyuan", "flux",       "wan",    "ltx",        "mochi",
    "gptj",      "llama",   "ltx2",       "cosmos", "kandinsky5", "hunyuan-image",
    "krea2",     "z-image", "qwen-image", "flux2",  "minimax-h3", "ltx2-audio"};

constexpr auto kRopeFamilies = [] {
  std::array<RopeFamily, kRopeNames.size()> families{};
  for (size_t i = 0; i < families.size(); ++i) families[i] = static_cast<RopeFamily>(i);
  return families;
}();

constexpr std::array<int64_t, 4> kQuarterBands{4, 6, 6, 0};
constexpr std::array<int64_t, 4> kEighthBands{2, 7, 7, 0};
constexpr std::array<int64_t, 4> kWanBands{};

constexpr BandLayout kRopeBands[] = {
    {RopeFamily::cogvideox, 10000, kQuarterBands},
    {RopeFamily::hunyuan, 256, kEighthBands},
    {RopeFamily::flux, 10000, kEighthBands},
    {RopeFamily::wan, 10000, kWanBands},
    {RopeFamily::cosmos, 10000, kWanBands, RopePairs::halves},
    {RopeFamily::kandinsky5, 10000, kQuarterBands},
    {RopeFamily::hunyuan_image, 256, {0, 8, 8, 0}},
    {RopeFamily::krea2, 1000, kQuarterBands},
    {RopeFamily::z_image, 256, kQuarterBands, RopePairs::neighbours, RopePlaces::text_first},
    {RopeFamily::qwen_image, 10000, kEighthBands, RopePairs::neighbours, RopePlaces::centred},
    {RopeFamily::flux2, 2000, {4, 4, 4, 4}, RopePairs::neighbours, RopePlaces::text_axis},
    {RopeFamily::minimax_h3, 10000, {4, 4, 4, 0}, RopePairs::halves, RopePlaces::told},
};

// Cosmos: scales of 2.5's checkpoints, whose pipeline gives the model no frame rate; of Predict2's
// 2B Video2World at 16 frames a second and of its Text2Image; of 1.0's 7B and 14B at 30. Bases of
// lines: those of Llama 3 and of Qwen 2.
constexpr RopeVariant kRopeVariants[] = {
    {"cogvideox", RopeFamily::cogvideox, {}},
    {"hunyuan", RopeFamily::hunyuan, {}},
    {"flux", RopeFamily::flux, {}},
    {"wan", RopeFamily::wan, {}},
    {"ltx", RopeFamily::ltx, {}},
    {"gptj", RopeFamily::gptj, {}},
    {"gptj:base=500000", RopeFamily::gptj, {.base = 5e5}},
    {"gptj:base=1000000", RopeFamily::gptj, {.base = 1e6}},
    {"llama", RopeFamily::llama, {}},
    {"llama:base=500000", RopeFamily::llama, {.base = 5e5}},
    {"llama:base=1000000", RopeFamily::llama, {.base = 1e6}},
    {"ltx2", RopeFamily::ltx2, {}},
    {"cosmos:scale=1x3x3", RopeFamily::cosmos, {.scale = {1, 3, 3}}},
    {"cosmos:scale=1x3x3,fps=16", RopeFamily::cosmos, {.fps = 16, .scale = {1, 3, 3}}},
    {"cosmos:scale=1x4x4", RopeFamily::cosmos, {.scale = {1, 4, 4}}},
    {"cosmos:scale=2x1x1,fps=30", RopeFamily::cosmos, {.fps = 30, .scale = {2, 1, 1}}},
    {"cosmos:scale=2x2x2,fps=30", RopeFamily::cosmos, {.fps = 30, .scale = {2, 2, 2}}},
    {"kandinsky5", RopeFamily::kandinsky5, {}},
    {"hunyuan-image", RopeFamily::hunyuan_image, {}},
    {"krea2", RopeFamily::krea2, {}},
    {"z-image", RopeFamily::z_image, {}},
    {"qwen-image", RopeFamily::qwen_image, {}},
    {"flux2", RopeFamily::flux2, {}},
    {"minimax-h3", RopeFamily::minimax_h3, {}},
    {"ltx2-audio", RopeFamily::ltx2_audio, {}},
};

}  // namespace

const BandLayout* band_layout(RopeFamily family) {
  const auto* found = std::ranges::find(kRopeBands, family, &BandLayout::family);
  return found == std::end(kRopeBands) ? nullptr : found;
}

bool takes_positions(RopeFamily family) {
  const BandLayout* layout = band_layout(family);
  return layout != nullptr && layout->places == RopePlaces::told;
}

std::optional<std::array<int64_t, 4>> band_widths(const BandLayout& layout, int64_t head_dim) {
  if (layout.sixteenths == kWanBands) {
    const int64_t side = 2 * (head_dim / 6);
    const int64_t time = head_dim - 2 * side;
    if (side < 2 || time < 2 || time % 2 != 0) return std::nullopt;
    return std::array<int64_t, 4>{time, side, side, 0};
  }
  std::array<int64_t, 4> widths{};
  for (size_t axis = 0; axis < widths.size(); ++axis) {
    const int64_t channels = head_dim * layout.sixteenths[axis];
    if (channels % 32 != 0) return std::nullopt;
    widths[axis] = channels / 16;
  }
  return widths;
}

std::string_view rope_name(RopeFamily family) { return kRopeNames[static_cast<size_t>(family)]; }

std::optional<RopeFamily> parse_rope(std::string_view name) {
  const auto* found = std::ranges::find(kRopeNames, name);
  if (found == kRopeNames.end()) return std::nullopt;
  return kRopeFamilies[static_cast<size_t>(found - kRopeNames.begin())];
}

std::span<const RopeFamily> rope_families() { return kRopeFamilies; }

std::span<const RopeVariant> rope_variants() { return kRopeVariants; }

}  // namespace attnscope
