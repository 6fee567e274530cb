#include "io/capture/call/call_mask.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include "core/base/nearest_word.h"
#include "io/capture/call/packed_sequences.h"
#include "io/capture/facts/fact_errors.h"
#include "io/capture/facts/mask_words.h"
#include "io/capture/facts/tensor_reference.h"

namespace attnscope {
namespace {

/// A word that names no file is a slip of the pen, not a missing file.
void check_mask_file(const std::string& text, const std::string& option) {
  std::error_code error;
  if (std::filesystem::exists(reference_file(text), error)) return;
  const std::vector<std::string> words = mask_words();
  const std::string nearest = nearest_word(text, words);
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  throw usage_error(option + " " + text + ": neither " + list + " nor a file" +
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

/// The blocks of the fact mask `blocks`, whose size stands in a fact of its own.
std::array<int64_t, 2> mask_block(const CallFacts& facts) {
  const auto text = facts.text("mask_block");
  if (!text) throw file_error(facts.name(), "mask_block", "is missing, which mask blocks needs");
  const auto block = parse_mask_block(*text);
  if (block) return *block;
  throw file_error(facts.name(), "mask_block",
                   "expected queries x keys of a block, such as 128x64 (got " + *text + ")");
}

/// The tensor that the mask needs, null where it needs none. Throws where it is missing, or where
/// there is another one.
std::shared_ptr<const TensorSource> mask_tensor(const CallFacts& facts, const MaskFact& fact,
                                                const CallTensors& tensors) {
  std::shared_ptr<const TensorSource> needed;
  for (const MaskTensor& one : mask_tensors()) {
    const auto& tensor = tensors.*one.place;
    if ((tensor != nullptr) != (one.name == fact.tensor())) {
      throw file_error(facts.name(), "mask",
                       "is " + fact.text() + ", but the file has " + (tensor ? "a" : "no") +
                           " tensor " + std::string(one.name));
    }
    if (tensor) needed = tensor;
  }
  return needed;
}

/// make_mask, whose errors name the tensor.
Mask named_mask(const MaskFact& fact, const std::shared_ptr<const TensorSource>& source,
                ErrorCode wrong) {
  return with_name(source ? source->name() : "", wrong, [&] { return make_mask(fact, source); });
}

CallMask recorded_mask(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                       const std::string& text) {
  auto fact = parse_mask_fact(text);
  if (!fact) {
    throw file_error(facts.name(), "mask", "expected " + mask_fact_words() + " (got " + text + ")");
  }
  auto source = mask_tensor(facts, *fact, tensors);
  if (fact->form == MaskForm::blocks) {
    fact->block = mask_block(facts);
  } else if (facts.has("mask_block")) {
    throw file_error(facts.name(), "mask_block",
                     "is a fact of the mask blocks (the mask is " + text + ")");
  }
  Mask mask = named_mask(*fact, source, ErrorCode::file);
  if (fact->is_second_format()) {
    with_name(facts.name(), ErrorCode::file, [&] {
      mask.check_shape(heads.q.batch(), heads.q.heads(), heads.q.tokens(), heads.k.tokens());
    });
  }
  return {std::move(mask), fact, std::move(source)};
}

CallMask option_mask(const std::string& text, const std::string& option,
                     const ReadControl& control) {
  if (auto mask = word_mask(text, option)) return std::move(*mask);
  check_mask_file(text, option);
  auto source = open_tensor_reference(text, usual_names("mask"), control);
  const MaskFact fact{MaskForm::tensor};
  Mask mask = named_mask(fact, source, ErrorCode::usage);
  return {std::move(mask), fact, std::move(source)};
}

}  // namespace

std::optional<CallMask> word_mask(const std::string& text, const std::string& option) {
  if (text.starts_with("window:")) return CallMask{window_mask(text, option), {}, nullptr};
  if (!is_mask_word(text)) return std::nullopt;
  const auto fact = parse_mask_fact(text);
  if (fact) return CallMask{make_mask(*fact, nullptr), fact, nullptr};
  throw usage_error(option + " " + text +
                    ": expected block_causal:N, N a whole number of tokens, at least 1");
}

CallMask call_mask(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                   const FactOverrides& overrides, const ReadControl& control,
                   std::vector<std::string>& notes) {
  const std::string text = facts.text("mask").value_or("none");
  CallMask mask = overrides.mask ? option_mask(text, overrides.mask_option, control)
                                 : recorded_mask(facts, tensors, heads, text);
  if (!tensors.cu_seqlens_q) return mask;
  const ErrorCode wrong = overrides.cu_seqlens ? ErrorCode::usage : ErrorCode::file;
  const Mask packed = with_name(facts.name(), wrong, [&] {
    return packed_mask(tensors, heads.q, heads.k, text == "causal", wrong, notes);
  });
  if (packed.is_none()) return mask;
  mask.mask = mask.mask & packed;
  mask.fact.reset();
  return mask;
}

}  // namespace attnscope
