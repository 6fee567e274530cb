#include "io/capture/call/block_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/scaled_tensor.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/facts/fact_errors.h"

namespace attnscope {
namespace {

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

/// The codes of 4 bits one a byte: two stand in each, but in bytes whose format was told and that
/// have scales for as many channels, as ml_dtypes stores them.
std::shared_ptr<const TensorSource> single_codes(const std::shared_ptr<const TensorSource>& codes,
                                                 const TensorSource& scales,
                                                 const BlockFormat& format, NibbleOrder order) {
  const Fp4Bytes* const fp4 = as_fp4(*codes);
  if (fp4 == nullptr) return codes;
  const int64_t bytes = codes->shape().empty() ? 0 : codes->shape().back();
  const int64_t found = scales.shape().empty() ? 0 : scales.shape().back();
  const auto blocks = [&](int64_t channels) {
    return (channels + format.channels - 1) / format.channels;
  };
  const bool one = fp4->format() && found == blocks(bytes) && found != blocks(2 * bytes);
  if (one) return codes;
  return nibble_tensor(codes, order);
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
  const std::vector<float> values = all_floats(*tensor);
  if (values.size() != 1) {
    throw file_error(tensor->name(), "",
                     "expected one number, the scale of all of " + std::string(role.name) +
                         " (got " + std::to_string(values.size()) + ")");
  }
  // compressed-tensors' divides.
  const bool divides = tensor->name().ends_with("_global_scale");
  const double factor = divides ? 1.0 / static_cast<double>(values[0]) : values[0];
  return {factor, fmt::format(", all {} {}", divides ? "divided by" : "times", values[0])};
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
