#include "io/capture/call/block_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/tensor/scaled_tensor.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/facts/fact_errors.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

/// Of the first token that are looked at.
constexpr int64_t kMostCodes = 4096;

/// How many scales a token of so many channels has.
int64_t block_scales(int64_t channels, int64_t block) {
  return channels / block + (channels % block == 0 ? 0 : 1);
}

/// How a format's scales stand and are stored.
struct BlockFormat {
  std::string name;
  int64_t channels = 0;  ///< that share a scale
  ScaleCodes type = ScaleCodes::of_type;
};

/// Scales of nvfp4 are e4m3, or such numbers as of another type; those of mxfp4 are exponents.
std::optional<BlockFormat> format_of(Fp4Format format, const TensorSource& scales) {
  const bool bytes = scales.dtype() == DType::u8;
  if (format == Fp4Format::mxfp4) {
    if (!bytes) return std::nullopt;
    return BlockFormat{"mxfp4", 32, ScaleCodes::e8m0};
  }
  if (!bytes && !is_floating(scales.dtype())) return std::nullopt;
  return BlockFormat{"nvfp4", 16, bytes ? ScaleCodes::e4m3 : ScaleCodes::of_type};
}

BlockFormat format_of(const CodeRole& role, const TensorSource& codes, const TensorSource& scales) {
  const Fp4Bytes* const fp4 = as_fp4(codes);
  if (fp4 == nullptr) {
    return {"mxfp8 " + std::string(dtype_name(codes.dtype())), 32, ScaleCodes::e8m0};
  }
  // Bytes beside codes that nobody named are exponents, and all else is no exponent.
  const Fp4Format told =
      fp4->format().value_or(scales.dtype() == DType::u8 ? Fp4Format::mxfp4 : Fp4Format::nvfp4);
  if (const auto format = format_of(told, scales)) return *format;
  throw file_error(scales.name(), "",
                   fmt::format("expected {} for {}, which is {} (got {})",
                               told == Fp4Format::mxfp4 ? "bytes that are exponents (e8m0, u8)"
                                                        : "e4m3, u8, f32, f16, bf16 or f64",
                               role.name, told == Fp4Format::mxfp4 ? "mxfp4" : "nvfp4",
                               dtype_name(scales.dtype())));
}

/// Throws where the first token has two codes in a byte, though its scales are those of one.
void check_single(const TensorSource& codes, const TensorSource& scales,
                  const BlockFormat& format) {
  const auto shape = codes.shape();
  std::vector<int64_t> extent(shape.begin(), shape.end());
  for (int64_t& each : extent) each = std::min<int64_t>(each, 1);
  extent.back() = std::min(shape.back(), kMostCodes);
  std::vector<std::byte> row(static_cast<size_t>(*checked_count(extent)));
  codes.read(std::vector<int64_t>(shape.size(), 0), extent, row.data());
  const bool single =
      std::all_of(row.begin(), row.end(), [](std::byte b) { return b < std::byte{16}; });
  if (single) return;
  throw file_error(scales.name(), "",
                   fmt::format("has {} scales a token, which are those of one code a byte, but {} "
                               "has two in a byte (expected {})",
                               scales.shape().back(), codes.name(),
                               block_scales(2 * shape.back(), format.channels)));
}

/// The codes of 4 bits one a byte: two stand in each, but in bytes whose format was told and that
/// have scales for as many channels, as ml_dtypes stores them.
std::shared_ptr<const TensorSource> single_codes(const std::shared_ptr<const TensorSource>& codes,
                                                 const TensorSource& scales,
                                                 const BlockFormat& format, NibbleOrder order) {
  const Fp4Bytes* const fp4 = as_fp4(*codes);
  if (fp4 == nullptr) return codes;
  auto pairs = nibble_tensor(codes, order);
  if (!fp4->format() || codes->shape().empty() || scales.shape().empty()) return pairs;
  const int64_t found = scales.shape().back();
  const bool one = found == block_scales(codes->shape().back(), format.channels) &&
                   found != block_scales(pairs->shape().back(), format.channels);
  if (!one) return pairs;
  check_single(*codes, scales, format);
  return codes;
}

NibbleOrder nibble_order(const CallFacts& facts) {
  const std::string order = facts.text("nibbles").value_or("low-first");
  if (order == "low-first") return NibbleOrder::low_first;
  if (order == "high-first") return NibbleOrder::high_first;
  throw bad_fact(facts, "nibbles",
                 "expected low-first or high-first (got " + one_line(order) + ")");
}

/// The scale of the whole tensor, and how it was told; nothing where there is none.
struct WholeScale {
  double factor = 1;
  std::string words;
};
WholeScale whole_scale(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts) {
  const std::string fact = std::string(role.name) + "_scale_2";
  const auto& tensor = tensors.*role.factor;
  const auto number = facts.number(fact);
  if (tensor && number) {
    throw file_error(facts.name(), fact,
                     fmt::format("is {}, but {} is there too", *number, tensor->name()));
  }
  if (number) return {*number, fmt::format(", all times {}", *number)};
  if (!tensor) return {};
  if (checked_count(tensor->shape()) != 1) {
    throw file_error(tensor->name(), "",
                     "expected one number, the scale of all of " + std::string(role.name) +
                         " (got " + shape_text(tensor->shape()) + ")");
  }
  const float value = all_floats(*tensor).front();
  // compressed-tensors' divides.
  const bool divides = tensor->name().ends_with("_global_scale");
  if (!std::isfinite(value) || (divides && value == 0)) {
    throw file_error(tensor->name(), "",
                     fmt::format("expected a finite number{} (got {})",
                                 divides ? " other than 0, for it divides" : "", value));
  }
  const double factor = divides ? 1.0 / static_cast<double>(value) : value;
  return {factor, fmt::format(", all {} {}", divides ? "divided by" : "times", value)};
}

}  // namespace

std::optional<Fp4Format> parse_fp4_format(const std::string& name) {
  if (name == "nvfp4") return Fp4Format::nvfp4;
  if (name == "mxfp4") return Fp4Format::mxfp4;
  return std::nullopt;
}

bool has_block_codes(const CodeRole& role, const CallTensors& tensors) {
  const TensorSource& codes = *(tensors.*role.codes);
  if (as_fp4(codes) != nullptr) return true;
  const auto& scales = tensors.*role.scales;
  return is_float8(codes.dtype()) && scales && scales->dtype() == DType::u8;
}

BlockCodes block_codes(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts,
                       Layout layout) {
  const auto& codes = tensors.*role.codes;
  const auto& scales = tensors.*role.scales;
  const std::string name(role.name);
  if (!scales) {
    throw usage_error(codes->name() + ": is codes of 4 bits without scales: " +
                      (name == "v" ? "the tensor v_scale" : "--" + name + "-scale FILE[:KEY]") +
                      " has one each 16 (nvfp4) or 32 (mxfp4) channels");
  }
  const BlockFormat format = format_of(role, *codes, *scales);
  for (const std::string& fact : {name + "_block", std::string("scales")}) {
    if (!facts.has(fact)) continue;
    throw bad_fact(facts, fact,
                   fmt::format("is of scales that tokens share, but {} is {}, with a scale each {} "
                               "channels",
                               name, format.name, format.channels));
  }
  const WholeScale whole = whole_scale(role, tensors, facts);
  CodeScales how{.values = scales, .factor = whole.factor};
  how.channels = format.channels;
  how.type = format.type;
  how.e2m1 = as_fp4(*codes) != nullptr;
  return with_name(facts.name(), ErrorCode::file, [&] {
    const auto single = single_codes(codes, *scales, format, nibble_order(facts));
    return BlockCodes{scaled_tensor(single, layout, how),
                      format.name + " with " + scales_words(*single, layout, how) + whole.words};
  });
}

}  // namespace attnscope
