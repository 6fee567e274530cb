#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace attnscope {

/// How a model family turns pairs of channels by their token's position (rotary embedding, Su et
/// al. 2021, arXiv:2104.09864). Bands and bases are those of the families' public code (diffusers).
enum class RopeFamily : uint8_t {
  cogvideox,      ///< t, y, x bands of d/4, 3d/8, 3d/8 channels, base 10000
  hunyuan,        ///< bands of d/8, 7d/16, 7d/16, base 256; HunyuanVideo-1.5 as well
  flux,           ///< the same bands, base 10000; Open-Sora 2 as well
  wan,            ///< y and x bands of 2⌊d/6⌋, t the rest, base 10000; SkyReels-V2 as well
  ltx,            ///< t, y, x in turn over the channels of all heads, fractional positions
  mochi,          ///< every pair by t, y and x together, by learnt frequencies; y and x centred
  gptj,           ///< one axis, the place in the sequence; neighbouring channels, base 10000
  llama,          ///< the same, channel i with channel i + d/2
  ltx2,           ///< as ltx, at the middle of cells, channel i with channel i + d/2
  cosmos,         ///< wan's bands, channel i with channel i + d/2, bases and seconds by options
  kandinsky5,     ///< cogvideox's bands, y and x divided by a scale
  hunyuan_image,  ///< y, x bands of d/2, base 256
  krea2,          ///< cogvideox's bands, base 1000
  z_image,        ///< cogvideox's bands, base 256; t of the text from 1 on, t of the cells after it
  qwen_image,     ///< flux's bands, y and x centred; t, y, x of the text are the places after them
  flux2,          ///< t, y, x, place in the text: bands of d/4, base 2000
  minimax_h3,     ///< t, y, x bands of d/4, channel i with channel i + 3d/8, the last quarter still
  ltx2_audio,  ///< ltx2's, of seconds alone: audio by its latents, a video's cells by their frames
};

/// Which channels are turned together.
enum class RopePairs : uint8_t { neighbours, halves };

/// Which positions tokens have along the axes.
enum class RopePlaces : uint8_t {
  cells,       ///< cells their t, y, x; text is not turned
  told,        ///< as well, but the model's caller places all tokens, text and others too
  text_axis,   ///< as well, and text token i is at i of a fourth axis, cells at its 0
  text_first,  ///< text token i of n at t = 1 + i, cells at t + n + 1
  centred,  ///< y and x from −⌈extent/2⌉ on; text token i at max(⌊h/2⌋, ⌊w/2⌋) + i of every axis
};

/// A family whose bands of channels belong to one axis each.
struct BandLayout {
  RopeFamily family;
  double base;
  /// Channels of the t, y, x and text bands, in sixteenths of the head dimension; zeros: wan's.
  std::array<int64_t, 4> sixteenths;
  RopePairs pairs = RopePairs::neighbours;
  RopePlaces places = RopePlaces::cells;
};

/// Nothing for families that are no bands: ltx, ltx2, ltx2_audio, mochi, gptj, llama.
const BandLayout* band_layout(RopeFamily family);
/// True where the model's caller tells where each token is (TokenPositions).
bool takes_positions(RopeFamily family);
/// Channels of the t, y, x and text bands; nothing where the head dimension cannot be cut so.
std::optional<std::array<int64_t, 4>> band_widths(const BandLayout& layout, int64_t head_dim);

std::string_view rope_name(RopeFamily family);
std::optional<RopeFamily> parse_rope(std::string_view name);
/// All families, in the order above.
std::span<const RopeFamily> rope_families();

/// The numbers that a checkpoint or a run sets for a family; zeros: the family's own.
struct RopeNumbers {
  double base = 0;
  double fps = 0;                 ///< frames of the video a second (cosmos, ltx2, ltx2_audio)
  std::array<double, 3> scale{};  ///< of t, y, x (cosmos, kandinsky5)
};

/// A family with the numbers of models that were published, as `--rope` takes it.
struct RopeVariant {
  std::string_view text;
  RopeFamily family;
  RopeNumbers numbers;
};
/// Those that need no learnt frequencies, at least one of every other family.
std::span<const RopeVariant> rope_variants();

}  // namespace attnscope
