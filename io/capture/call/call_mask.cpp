#include "io/capture/call/call_mask.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include "core/base/nearest_word.h"
#include "io/capture/call/packed_sequences.h"
#include "io/capture/facts/fact_errors.h"
#include "io/capture/facts/tensor_reference.h"

namespace attnscope {
namespace {

/// A word that names no file is a slip of the pen, not a missing file.
void check_mask_file(const std::string& text, const std::string& option) {
  std::error_code error;
  if (std::filesystem::exists(reference_file(text), error)) return;
  const std::vector<std::string> words{"none", "causal", "window:N"};
  const std::string nearest = nearest_word(text, words);
  throw usage_error(option + " " + text + ": neither none, causal, window:N nor a file" +
                    (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

/// "window:N".
Mask window_mask(const std::string& text, const std::string& option) {
  const auto reach = parse_number(text.substr(7));
  if (!reach || *reach < 0 || *reach != std::floor(*reach) || *reach > 1e15) {
    throw usage_error(option + " " + text + ": expected window:N, N a whole number of tokens");
  }
  return Mask::window(static_cast<int64_t>(*reach));
}

CallMask tensor_mask(std::shared_ptr<const TensorSource> source, ErrorCode wrong) {
  Mask mask = with_name(source->name(), wrong, [&] { return Mask::tensor(source); });
  return {std::move(mask), std::move(source)};
}

CallMask recorded_mask(const CallFacts& facts, const CallTensors& tensors, const std::string& text,
                       const std::string& option) {
  const auto wrong = [&](const std::string& what) { return bad_fact(facts, "mask", what, option); };
  CallMask mask;
  if (text == "tensor") {
    if (!tensors.mask) throw wrong("is tensor, but the file has no tensor mask");
    return tensor_mask(tensors.mask, ErrorCode::file);
  }
  if (text == "causal") {
    mask.mask = Mask::causal();
  } else if (text != "none") {
    throw wrong("expected none, causal or tensor (got " + text + ")");
  }
  if (tensors.mask) throw wrong("is " + text + ", but the file has a tensor mask");
  return mask;
}

CallMask option_mask(const std::string& text, const std::string& option,
                     const ReadControl& control) {
  if (text == "none") return {};
  if (text == "causal") return {Mask::causal(), nullptr};
  if (text.rfind("window:", 0) == 0) return {window_mask(text, option), nullptr};
  check_mask_file(text, option);
  return tensor_mask(open_tensor_reference(text, {"mask", "attn_mask", "attention_mask"}, control),
                     ErrorCode::usage);
}

}  // namespace

CallMask call_mask(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                   const FactOverrides& overrides, const ReadControl& control,
                   std::vector<std::string>& notes) {
  const std::string text = facts.text("mask").value_or("none");
  CallMask mask = overrides.mask ? option_mask(text, overrides.mask_option, control)
                                 : recorded_mask(facts, tensors, text, overrides.mask_option);
  if (!tensors.cu_seqlens_q) return mask;
  const ErrorCode wrong = overrides.cu_seqlens ? ErrorCode::usage : ErrorCode::file;
  mask.mask = with_name(facts.name(), wrong, [&] {
    return mask.mask & packed_mask(tensors, heads.q, heads.k, text == "causal", wrong, notes);
  });
  return mask;
}

}  // namespace attnscope
