#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor/layout.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// Scales that do not go by blocks of tokens: those of SageAttention 2's kernels, one a thread,
/// which go by the token's number modulo 8 (its quant.py and attn_utils.cuh).
enum class ThreadScales : uint8_t { none, queries, keys };

/// How scales of one byte (u8, or a floating type of it) are read: as their type says, as e4m3, or
/// as exponents of 2 (e8m0).
enum class ScaleCodes : uint8_t { of_type, e4m3, e8m0 };

/// The scales of a tensor of codes.
struct CodeScales {
  std::shared_ptr<const TensorSource> values = {};  ///< f32, f16, bf16 or f64; null: `factor` alone
  double factor = 1;                                ///< of all codes, beside the values
  std::optional<int64_t> block = {};  ///< tokens that share a scale; nothing: as the shape tells
  ThreadScales by_thread = ThreadScales::none;
  /// Channels that share a scale, where those of a token have several: then `values` has the codes'
  /// axes, the last a scale each so many channels, and may be e4m3 or u8 as well.
  std::optional<int64_t> channels = {};
  ScaleCodes type = ScaleCodes::of_type;
  bool e2m1 = false;  ///< the codes are e2m1, one a byte (nibble_tensor()); bytes above 15 are NaN
};

/// A tensor with the values of another one's codes (i8, is_float8() or u8 of e2m1): each code's
/// value times its scale, times `factor`, in f32; of e2m1 and 8-bit floats with scales of one byte
/// the first product is exact. Axes stand as in `codes`. Boxes are read where they stand; beyond
/// the box a read takes as much memory as its scales. Shares both; thread-safe like them.
///
/// Scales are one, or of shape [H], [B, H], or [B, H, X] where X is a scale for each block of
/// tokens, each token or each channel, with further axes of 1 or as [B, H, X, 1]; batch and head
/// may be 1 for all, and B may be missing where it is 1. Blocks of a size that nothing tells are of
/// 16, 32, 64 or 128 tokens. Throws Error(file) where the shape fits none of these, or several.
std::shared_ptr<const TensorSource> scaled_tensor(std::shared_ptr<const TensorSource> codes,
                                                  Layout layout, const CodeScales& scales);

/// "one scale", "a scale every 128 tokens of a head", "a scale a head and channel" …: how
/// scaled_tensor() takes them. The same errors.
std::string scales_words(const TensorSource& codes, Layout layout, const CodeScales& scales);

}  // namespace attnscope
