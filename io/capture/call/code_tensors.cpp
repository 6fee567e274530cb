#include "io/capture/call/code_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/tensor/fp4_tensor.h"
#include "core/tensor/scaled_tensor.h"
#include "io/capture/call/block_codes.h"
#include "io/capture/facts/fact_errors.h"
#include "io/capture/facts/tensor_reference.h"

namespace attnscope {
namespace {

bool is_codes(const TensorSource& tensor) {
  return tensor.dtype() == DType::i8 || is_float8(tensor.dtype()) || as_fp4(tensor) != nullptr;
}

/// A tensor whose elements are of another type of as many bytes.
class RetypedTensor : public TensorSource {
 public:
  RetypedTensor(std::shared_ptr<const TensorSource> source, DType dtype)
      : source_(std::move(source)), dtype_(dtype) {}

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return source_->shape(); }
  const std::string& name() const override { return source_->name(); }
  bool prefers_order() const override { return source_->prefers_order(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    source_->read(begin, count, destination);
  }

 private:
  const std::shared_ptr<const TensorSource> source_;
  const DType dtype_;
};

std::shared_ptr<const TensorSource> retyped(std::shared_ptr<const TensorSource> source,
                                            const std::string& type, const std::string& told) {
  const std::vector<std::string> names = code_dtypes();
  if (std::find(names.begin(), names.end(), type) == names.end())
    throw unknown_name(told, type, names);
  if (const auto fp4 = parse_fp4_format(type)) {
    if (source->dtype() == DType::u8) return std::make_shared<Fp4Bytes>(std::move(source), fp4);
    throw usage_error(fmt::format("{}: {} is {} (expected bytes, u8)", told, source->name(),
                                  dtype_name(source->dtype())));
  }
  const DType dtype = *parse_dtype(type);
  if (source->dtype() == dtype) return source;
  if (dtype_bytes(dtype) != dtype_bytes(source->dtype()) || source->dtype() == DType::boolean) {
    throw usage_error(fmt::format("{}: {} is {}, whose elements have {} bytes (expected {})", told,
                                  source->name(), dtype_name(source->dtype()),
                                  dtype_bytes(source->dtype()), dtype_bytes(dtype)));
  }
  return std::make_shared<RetypedTensor>(std::move(source), dtype);
}

/// "--q-scale", "--as v_scale".
std::string option_name(const CodeRole& role, const std::string& fact) {
  const std::string name(role.name);
  return role.name == "v" ? "--as v_" + fact : "--" + name + "-" + fact;
}

/// The text of this option; nothing where it is not given.
std::optional<std::string> option_of(const CodeRole& role, const std::string& fact,
                                     const FactOverrides& overrides) {
  const bool scale = fact == "scale";
  if (role.name == "q") return scale ? overrides.q_scale : overrides.q_dtype;
  if (role.name == "k") return scale ? overrides.k_scale : overrides.k_dtype;
  const auto told = overrides.told.find("v_" + fact);
  return told == overrides.told.end() ? std::nullopt : std::optional(told->second);
}

/// A scale for all codes that a fact or an option tells.
std::optional<double> told_scale(const CodeRole& role, const CallFacts& facts,
                                 const FactOverrides& overrides) {
  if (const auto option = option_of(role, "scale", overrides)) return parse_number(*option);
  return facts.number(std::string(role.name) + "_scale");
}

ThreadScales thread_scales(const CodeRole& role, const CallFacts& facts) {
  const auto scales = facts.text("scales");
  if (!scales || role.name == "v") return ThreadScales::none;
  if (*scales != "sage-thread") {
    throw bad_fact(facts, "scales", "expected sage-thread (got " + one_line(*scales) + ")");
  }
  return role.name == "q" ? ThreadScales::queries : ThreadScales::keys;
}

/// The option with its value: "--q-scale NUMBER|FILE[:KEY]", "--as v_dtype=TYPE".
std::string told_by(const CodeRole& role, const std::string& fact) {
  const std::string value = fact == "scale" ? "NUMBER" : "TYPE";
  if (role.name == "v") return option_name(role, fact) + "=" + value;
  return option_name(role, fact) + " " + value + (fact == "scale" ? "|FILE[:KEY]" : "");
}

/// Throws where what is no codes has scales, or is bytes of no told type.
void check_no_codes(const CodeRole& role, const CallTensors& tensors) {
  const TensorSource& tensor = *(tensors.*role.codes);
  const std::string name(role.name);
  if (tensor.dtype() == DType::u8) {
    throw usage_error(tensor.name() + ": has bytes of no told type: " + told_by(role, "dtype") +
                      " says what they are: e4m3, e5m2, e4m3fnuz, e5m2fnuz, i8, nvfp4 or mxfp4");
  }
  if (const auto& scales = tensors.*role.scales) {
    throw file_error(scales->name(), "",
                     "scales " + name + ", which is " + std::string(dtype_name(tensor.dtype())) +
                         " and takes no scales");
  }
}

/// Of what is no codes: what is told of its scales all the same. Empty: nothing.
std::string unused_words(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts,
                         const std::optional<double>& factor) {
  const std::string name(role.name);
  std::vector<std::string> told;
  if (factor) told.push_back(fmt::format("{}_scale {}", name, *factor));
  if (const auto block = facts.integer(name + "_block")) {
    told.push_back(fmt::format("{}_block {}", name, *block));
  }
  const bool none = std::none_of(code_roles().begin(), code_roles().end(), [&](const CodeRole& r) {
    const auto& tensor = tensors.*r.codes;
    return tensor && is_codes(*tensor);
  });
  if (none && role.name == "q") {
    for (const char* fact : {"scales", "nibbles"}) {
      if (const auto text = facts.text(fact))
        told.push_back(one_line(fmt::format("{} {}", fact, *text)));
    }
  }
  if (told.empty()) return "";
  return fmt::format("{}: {} {} not used: {} is {}", facts.name(), fmt::join(told, ", "),
                     told.size() == 1 ? "is" : "are", name,
                     dtype_name((tensors.*role.codes)->dtype()));
}

/// Throws where the scale of a whole tensor is there, which codes of 4 bits alone have beside
/// others.
void check_no_factor(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts) {
  const std::string fact = std::string(role.name) + "_scale_2";
  const auto& factor = tensors.*role.factor;
  if (!factor && !facts.has(fact)) return;
  throw file_error(factor ? factor->name() : facts.name(), factor ? "" : fact,
                   "is a second scale of " + std::string(role.name) +
                       ", which has a scale each block of channels in nvfp4 alone");
}

/// Throws where scales are told as a number beside a tensor of them.
void check_told_once(const CodeRole& role, const CallTensors& tensors,
                     const std::optional<double>& factor, const CallFacts& facts) {
  const auto& scales = tensors.*role.scales;
  if (!factor || !scales) return;
  throw file_error(facts.name(), std::string(role.name) + "_scale",
                   fmt::format("is {}, but {} is there too: {} says which it is", *factor,
                               scales->name(), told_by(role, "scale")));
}

/// Throws where scales cannot be such, or are missing.
void check_scales(const CodeRole& role, const CodeScales& scales,
                  const std::optional<double>& factor, const CallFacts& facts,
                  const TensorSource& codes) {
  const std::string name(role.name);
  if (scales.block && *scales.block < 1)
    throw bad_fact(facts, name + "_block", "expected a number above 0");
  if (scales.values) {
    const DType dtype = scales.values->dtype();
    if (is_floating(dtype) && !is_float8(dtype)) return;
    throw file_error(scales.values->name(), "",
                     "expected f32, f16, bf16 or f64 (got " + std::string(dtype_name(dtype)) + ")");
  }
  if (scales.block || scales.by_thread != ThreadScales::none) {
    throw file_error(facts.name(), name,
                     "is told how scales go, but there is no tensor " + name + "_scale");
  }
  if (codes.dtype() == DType::i8 && !factor) {
    throw usage_error(codes.name() + ": is i8 without scales: " + told_by(role, "scale") +
                      " says what its numbers are multiplied by");
  }
}

/// Throws where the shape of q's scales is also that of a scale a thread, 32 for each 128 tokens.
void check_no_threads(const TensorSource& scales, const TensorSource& codes, Layout layout,
                      const std::string& words) {
  const int64_t threads = 32 * ((head_extents(codes, layout)[kTokenAxis] + 127) / 128);
  const bool inner =
      words.starts_with("a scale each channel") || words.starts_with("a scale each token");
  const auto shape = scales.shape();
  if (!inner || shape.size() > 3 || shape.back() != threads) return;
  throw file_error(scales.name(), "",
                   words +
                       " or a scale a thread of SageAttention? --as scales=sage-thread tells "
                       "threads, --as q_block=1 tokens, a shape [batch, heads, 1, channels] "
                       "channels");
}

/// SageAttention's own scales have the softmax scale in them, which nothing in the numbers tells.
constexpr const char* kSageTrap =
    "; SageAttention's kernels with a scale a block put the softmax scale times log2(e) into "
    "q_scale: then give "
    "--scale 0.69314718";

}  // namespace

std::vector<std::string> code_dtypes() {
  return {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "i8", "nvfp4", "mxfp4", "bf16", "f16"};
}

CallTensors with_code_options(CallTensors tensors, const CallFacts& facts,
                              const FactOverrides& overrides, const ReadControl& control,
                              std::vector<std::string>& notes) {
  for (const CodeRole& role : code_roles()) {
    auto& codes = tensors.*role.codes;
    const std::string name(role.name);
    if (!codes) continue;
    if (const auto type = option_of(role, "dtype", overrides)) {
      codes = retyped(codes, *type, option_name(role, "dtype"));
    } else if (const auto fact = facts.text(name + "_dtype")) {
      codes = with_name(facts.name(), ErrorCode::file,
                        [&] { return retyped(codes, *fact, name + "_dtype"); });
    }
    const auto option = option_of(role, "scale", overrides);
    if (!option) continue;
    auto& scales = tensors.*role.scales;
    if (scales)
      notes.push_back(fmt::format("{} {} overrides the recorded {}", option_name(role, "scale"),
                                  *option, scales->name()));
    const std::vector<std::string> names(role.scale_names.begin(), role.scale_names.end());
    scales = parse_number(*option) ? nullptr : open_tensor_reference(*option, names, control);
    if (!is_codes(*codes)) {
      throw usage_error(fmt::format("{}: {} is {}, which takes no scales (expected {})",
                                    option_name(role, "scale"), codes->name(),
                                    dtype_name(codes->dtype()),
                                    "i8, e4m3, e5m2, e4m3fnuz, e5m2fnuz, nvfp4 or mxfp4"));
    }
  }
  return tensors;
}

CodeValues code_values(const CodeRole& role, const CallTensors& tensors, const CallFacts& facts,
                       const FactOverrides& overrides, Layout layout) {
  const auto& codes = tensors.*role.codes;
  const std::string name(role.name), type(dtype_name(codes->dtype()));
  CodeScales scales{.values = tensors.*role.scales, .block = facts.integer(name + "_block")};
  const auto factor = told_scale(role, facts, overrides);
  if (is_codes(*codes)) check_told_once(role, tensors, factor, facts);
  if (has_block_codes(role, tensors)) {
    BlockCodes values = block_codes(role, tensors, facts, layout);
    return {std::move(values.source), std::move(values.words), ""};
  }
  check_no_factor(role, tensors, facts);
  if (!is_codes(*codes)) {
    check_no_codes(role, tensors);
    return {codes, "", unused_words(role, tensors, facts, factor)};
  }
  scales.by_thread = thread_scales(role, facts);
  check_scales(role, scales, factor, facts, *codes);
  scales.factor = factor.value_or(1);
  const std::string words = scales.values ? scales_words(*codes, layout, scales)
                            : factor      ? fmt::format("the scale {}", *factor)
                                          : "no scale: its values are taken as they are";
  const bool sage = scales.values && codes->dtype() == DType::i8 && role.name == "q" &&
                    scales.by_thread == ThreadScales::none;
  if (sage && !scales.block) check_no_threads(*scales.values, *codes, layout, words);
  const auto values = with_name(facts.name(), ErrorCode::file,
                                [&] { return scaled_tensor(codes, layout, scales); });
  return {values, type + " with " + words, sage ? kSageTrap : ""};
}

bool is_code_fact(std::string_view name) {
  constexpr std::array<std::string_view, 14> kFacts{
      "q_scale", "q_scale_2", "q_dtype",   "q_block", "k_scale", "k_scale_2", "k_dtype",
      "k_block", "v_scale",   "v_scale_2", "v_dtype", "v_block", "scales",    "nibbles"};
  return std::find(kFacts.begin(), kFacts.end(), name) != kFacts.end();
}

std::shared_ptr<const TensorSource> unscaled(std::shared_ptr<const TensorSource> source,
                                             Layout layout) {
  if (as_fp4(*source) != nullptr) {
    return scaled_tensor(nibble_tensor(std::move(source), NibbleOrder::low_first), layout,
                         {.e2m1 = true});
  }
  return is_codes(*source) ? scaled_tensor(std::move(source), layout, {}) : source;
}

}  // namespace attnscope
