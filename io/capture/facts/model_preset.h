#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/token_grid.h"

namespace attnscope {

/// The tokens before the video in its sequence: frames of history in cells of their own size, or
/// sound.
struct PresetPart {
  std::string_view name;
  std::array<int64_t, 3> grid{};  ///< zeros: there is none
  std::array<int64_t, 3> cell{};  ///< video frames and pixels that a cell covers; zeros: none
  int64_t first_frame = 0;        ///< of the stream, as latent frames are counted there
  Modality modality = Modality::history;

  int64_t cells() const { return grid[0] * grid[1] * grid[2]; }
};

/// The shapes of a published model at its usual resolution.
struct ModelPreset {
  std::string_view name;   ///< "cogvideox-5b"
  std::string_view about;  ///< "49 frames, 480×720"
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  std::array<int64_t, 3> grid{};
  /// Text of the self- or joint attention's own sequence (count 0: video only).
  TextSpan text;
  /// Text keys of a separate cross-attention; 0 where there is none.
  int64_t cross_text = 0;
  VideoGeometry geometry;
  /// True where text is as long as the prompt; the counts above are the most by default.
  bool text_varies = false;
  std::array<PresetPart, 4> parts{};  ///< before the video, after text at the start
  int64_t first_frame = 0;            ///< of the video after its history, as `PresetPart` has it
  std::array<int64_t, 3> tile{};      ///< cells of a tile, where the video's stand in such; else 0

  bool has_tiles() const { return tile[0] > 0; }
  /// True where a grid and a text cannot say what its tokens are: a token map does.
  bool is_map() const { return has_tiles() || part_tokens() > 0; }
  int64_t cells() const { return grid[0] * grid[1] * grid[2]; }
  int64_t part_tokens() const;
  int64_t tokens() const { return part_tokens() + cells() + text.count; }
  /// The whole sequence: a token map where it is_map(), else a grid and its text.
  TokenGrid token_grid() const { return token_grid(text); }
  /// The same with text of another length.
  TokenGrid token_grid(const TextSpan& words) const;
  /// True where so many tokens and channels may be nothing but its own sequence: not where the text
  /// varies or its cells stand in tiles, as another model's do not, nor at a round number, as any
  /// sequence of words has.
  bool told_by(int64_t tokens, int64_t head_dim) const;
  /// True where queries of the grid attend to keys of its text alone.
  bool is_cross(int64_t queries, int64_t keys) const;
  /// The text of a sequence that attends to itself; nothing where it is not of the model.
  std::optional<TextSpan> text_of(int64_t tokens) const;
};

std::span<const ModelPreset> model_presets();
/// Throws Error(usage) suggesting the nearest name and listing all.
const ModelPreset& find_preset(std::string_view name);
std::vector<std::string> preset_names();

}  // namespace attnscope
