#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/tensor/fp4_tensor.h"
#include "core/tensor/layout.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {

/// "nvfp4", "mxfp4": the format that --q-dtype and the fact q_dtype tell so.
std::optional<Fp4Format> parse_fp4_format(const std::string& name);

/// True where the role's tensor is codes with a scale each block of channels: of 4 bits, or of 8
/// with exponents of 2 as scales (MXFP8).
bool has_block_codes(const CodeRole& role, const CallTensors& tensors);

/// Codes of a block format as numbers.
struct BlockCodes {
  std::shared_ptr<const TensorSource> source;  ///< f32
  std::string words;                           ///< "nvfp4 with a scale each 16 channels of a token"
};
/// The values of NVFP4 (e2m1 codes, a scale of e4m3 each 16 channels and perhaps one for all), of
/// MXFP4 and MXFP8 (e2m1 or 8-bit floating codes, an exponent of 2 each 32 channels, OCP
/// Microscaling Formats 1.0). Two codes of 4 bits stand in a byte, or one where the scales say so.
/// Throws Error(usage), Error(file) where scales are missing, of another type or shape, or told in
/// two ways.
BlockCodes block_codes(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts,
                       Layout layout);

}  // namespace attnscope
