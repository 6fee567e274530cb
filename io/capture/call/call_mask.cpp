#include "io/capture/call/call_mask.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/base/checked_math.h"
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
    throw usage_error(
        option + " " + text +
        ": expected window:N or window:L,R, whole numbers of tokens (L or R -1: all)");
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
                const CallTokens& tokens, ErrorCode wrong) {
  return with_name(source ? source->name() : "", wrong,
                   [&] { return make_mask(fact, source, tokens.queries, tokens.keys); });
}

/// True of floating numbers whose first two rows, or what is first in them, are 0 and 1 alone.
bool looks_boolean(const TensorSource& source) {
  if (!is_floating(source.dtype()) || is_float8(source.dtype()) || source.shape().empty()) {
    return false;
  }
  const auto shape = source.shape();
  const std::vector<int64_t> begin(shape.size(), 0);
  std::vector<int64_t> count(shape.size(), 1);
  if (shape.size() > 1) count[shape.size() - 2] = std::min<int64_t>(shape[shape.size() - 2], 2);
  count.back() = std::min<int64_t>(shape.back(), 4096);
  const int64_t total = *checked_count(count);
  std::vector<std::byte> raw(static_cast<size_t>(total * dtype_bytes(source.dtype())));
  source.read(begin, count, raw.data());
  std::vector<float> numbers(static_cast<size_t>(total));
  to_floats(source.dtype(), raw.data(), total, numbers.data());
  const auto is = [&](float value) { return std::count(numbers.begin(), numbers.end(), value); };
  return is(0) > 0 && is(1) > 0 && is(0) + is(1) == total;
}

/// The form of a mask that a tensor tells: booleans [B, Nk] are the keys that each batch item has,
/// all else is entries of the map. A note tells the former, and numbers that look like booleans.
MaskForm form_of_tensor(const TensorSource& source, const HeadTensors& heads,
                        std::vector<std::string>& notes) {
  const auto shape = source.shape();
  const bool by_item = shape.size() == 2 && shape[0] == heads.q.batch() && shape[0] > 1 &&
                       shape[1] == heads.k.tokens() && shape[0] != heads.q.tokens();
  if (by_item && source.dtype() == DType::boolean) {
    notes.push_back(source.name() + " is taken as the keys of each batch item (key padding)");
    return MaskForm::valid;
  }
  if (looks_boolean(source)) {
    notes.push_back(source.name() +
                    " begins with numbers 0 and 1 alone, which are added to the logits: a mask of "
                    "what may be attended to is bool");
  }
  return MaskForm::tensor;
}

CallMask recorded_mask(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                       const CallTokens& tokens, const std::string& text,
                       std::vector<std::string>& notes) {
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
  if (fact->form == MaskForm::tensor) fact->form = form_of_tensor(*source, heads, notes);
  Mask mask = with_name(facts.name(), ErrorCode::file, [&] {
    Mask of_fact = named_mask(*fact, source, tokens, ErrorCode::file);
    if (fact->is_second_format()) {
      of_fact.check_shape(heads.q.batch(), heads.q.heads(), heads.q.tokens(), heads.k.tokens());
    }
    return of_fact;
  });
  return {std::move(mask), fact, std::move(source)};
}

/// What `make` returns. Where the call has a part of its sequence's tokens alone, what it throws
/// says that the mask is one of the whole.
template <typename Make>
CallMask of_whole(const CallFacts& facts, const Make& make) {
  const CallFacts::Fact* const part = facts.find("part");
  if (part == nullptr || !part->value.contains("queries")) return make();
  try {
    return make();
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string(error.what()) +
                    " (the call has a part of its sequence's tokens: the mask is one of the whole, "
                    "which attnscope convert --stitch makes)",
                error.place());
  }
}

CallMask option_mask(const std::string& text, const std::string& option, const HeadTensors& heads,
                     const CallTokens& tokens, const ReadControl& control,
                     std::vector<std::string>& notes) {
  if (auto mask = word_mask(text, option, tokens.queries, tokens.keys)) return std::move(*mask);
  check_mask_file(text, option);
  auto source = open_tensor_reference(text, usual_names("mask"), control);
  const MaskFact fact{form_of_tensor(*source, heads, notes)};
  Mask mask = named_mask(fact, source, tokens, ErrorCode::usage);
  return {std::move(mask), fact, std::move(source)};
}

}  // namespace

std::optional<CallMask> word_mask(const std::string& text, const std::string& option,
                                  const TokenGrid& queries, const TokenGrid& keys) {
  if (!is_mask_word(text)) return std::nullopt;
  const auto fact = parse_mask_fact(text);
  if (fact) return CallMask{make_mask(*fact, nullptr, queries, keys), fact, nullptr};
  if (text.starts_with("window:")) return CallMask{window_mask(text, option), {}, nullptr};
  if (text.starts_with("natten:")) {
    throw usage_error(option + " " + text +
                      ": expected natten:TxHxW, cells of the window along each axis, and perhaps "
                      ",stride=TxHxW ,dilation=TxHxW ,causal=t");
  }
  throw usage_error(option + " " + text +
                    ": expected block_causal:N, N a whole number of tokens, at least 1");
}

CallMask call_mask(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                   const CallTokens& tokens, const FactOverrides& overrides,
                   const ReadControl& control, std::vector<std::string>& notes) {
  const std::string text = facts.text("mask").value_or("none");
  CallMask mask = of_whole(facts, [&] {
    return overrides.mask ? option_mask(text, overrides.mask_option, heads, tokens, control, notes)
                          : recorded_mask(facts, tensors, heads, tokens, text, notes);
  });
  if (!tensors.cu_seqlens_q) return mask;
  const ErrorCode wrong = overrides.cu_seqlens ? ErrorCode::usage : ErrorCode::file;
  const Mask packed = with_name(facts.name(), wrong, [&] {
    const bool window = mask.fact && mask.fact->form == MaskForm::window;
    const auto is_there = [](const std::optional<std::string>& told, bool recorded) {
      return told ? *told != "none" : recorded;
    };
    const std::string bias = is_there(overrides.alibi, bool(tensors.alibi_slopes)) ? "alibi"
                             : is_there(overrides.relative_bias, bool(tensors.relative_bias))
                                 ? "relative_bias"
                                 : "";
    const bool first = text == "causal" || (!window && text.starts_with("window:"));
    return packed_mask(tensors, heads.q, heads.k, {first ? text : "", window ? text : bias}, wrong,
                       notes);
  });
  if (packed.is_none()) return mask;
  mask.mask = mask.mask & packed;
  mask.fact.reset();
  return mask;
}

}  // namespace attnscope
