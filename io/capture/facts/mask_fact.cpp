#include "io/capture/facts/mask_fact.h"

#include <charconv>

#include "core/base/error.h"
#include "core/mask/block_causal.h"
#include "core/mask/mask_valid.h"
#include "core/mask/query_spans.h"
#include "core/mask/recorded_blocks.h"
#include "core/mask/same_segment.h"
#include "io/capture/facts/mask_words.h"

namespace attnscope {
namespace {

struct FormWords {
  std::string_view word, tensor;
  bool second_format;
};

/// In the order of MaskForm.
constexpr std::array<FormWords, 11> kForms{{{"none", "", false},
                                            {"causal", "", false},
                                            {"tensor", "mask", false},
                                            {"valid", "mask_valid", true},
                                            {"valid_pairs", "mask_valid", true},
                                            {"segments", "mask_segments", true},
                                            {"block_causal", "", true},
                                            {"blocks", "mask_blocks", true},
                                            {"spans", "mask_spans", true},
                                            {"window", "", true},
                                            {"natten", "", true}}};

const FormWords& words_of(MaskForm form) { return kForms[static_cast<size_t>(form)]; }

/// A number of tokens, from `least` on and within what sums of two can hold.
std::optional<int64_t> parse_tokens(std::string_view text, int64_t least = 1) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= least && value <= kMost ? std::optional(value) : std::nullopt;
}

/// The sizes that a form has behind its colon, as messages and help name them.
std::string_view sizes_of(MaskForm form) {
  return form == MaskForm::block_causal ? ":N"
         : form == MaskForm::window     ? ":L,R"
         : form == MaskForm::natten     ? ":TxHxW"
                                        : "";
}

/// The fact with its window of "L,R".
std::optional<MaskFact> parse_window(std::string_view size, MaskFact fact) {
  const size_t comma = size.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto left = parse_tokens(size.substr(0, comma), -1);
  const auto right = parse_tokens(size.substr(comma + 1), -1);
  if (!left || !right) return std::nullopt;
  fact.window = {*left, *right};
  return fact;
}

/// Why the video of a token map has no rows and columns, though its cells have places: the order in
/// which they stand. Empty where that is not why.
std::string cell_order_words(const TokenGrid& tokens) {
  for (const TokenSegment& segment : tokens.segments()) {
    if (segment.tokens != tokens.video_range() || !segment.has_grid() || segment.is_raster()) {
      continue;
    }
    const auto& tile = segment.tile;
    return "the cells of " + segment.name + " stand in " +
           (segment.order == CellOrder::tiles
                ? "tiles of " + std::to_string(tile[0]) + "x" + std::to_string(tile[1]) + "x" +
                      std::to_string(tile[2])
                : "an order of their own") +
           ", and neighbourhoods are known of cells that stand row by row alone";
  }
  return "";
}

Mask natten_mask(const Neighbourhood& neighbourhood, const TokenGrid& queries,
                 const TokenGrid& keys) {
  const auto refuse = [&](const std::string& what) {
    return usage_error("mask natten:" + neighbourhood.text() + ": " + what);
  };
  // Words are no cells: cross attention to them has no neighbourhoods.
  if (keys.video_range().empty()) return {};
  for (const TokenGrid* tokens : {&queries, &keys}) {
    const std::string order = cell_order_words(*tokens);
    if (!order.empty()) throw refuse(order);
  }
  if (!queries.has_grid()) throw refuse("there is no token grid; give --grid TxHxW");
  if (!queries.same_places(keys)) throw refuse("keys are other tokens than queries");
  return neighbourhood_mask(neighbourhood, {keys.frames(), keys.height(), keys.width()},
                            keys.video_range().begin);
}

}  // namespace

std::string MaskFact::text() const {
  const std::string word(words_of(form).word);
  if (form == MaskForm::block_causal) return word + ":" + std::to_string(causal_block);
  if (form == MaskForm::natten) return word + ":" + neighbourhood.text();
  if (form != MaskForm::window) return word;
  return word + ":" + std::to_string(window[0]) + "," + std::to_string(window[1]);
}

std::string_view MaskFact::tensor() const { return words_of(form).tensor; }

bool MaskFact::is_second_format() const { return words_of(form).second_format; }

std::optional<MaskFact> parse_mask_fact(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  for (size_t i = 0; i < kForms.size(); ++i) {
    if (kForms[i].word != word) continue;
    MaskFact fact{static_cast<MaskForm>(i)};
    const bool sized = !sizes_of(fact.form).empty();
    if (sized != (colon != std::string_view::npos)) return std::nullopt;
    if (!sized) return fact;
    const std::string_view size = text.substr(colon + 1);
    if (fact.form == MaskForm::window) return parse_window(size, fact);
    if (fact.form == MaskForm::natten) {
      const auto neighbourhood = parse_neighbourhood(size);
      if (!neighbourhood) return std::nullopt;
      fact.neighbourhood = *neighbourhood;
      return fact;
    }
    const auto block = parse_tokens(size);
    if (!block) return std::nullopt;
    fact.causal_block = *block;
    return fact;
  }
  return std::nullopt;
}

std::optional<std::array<int64_t, 2>> parse_mask_block(std::string_view text) {
  const size_t by = text.find('x');
  if (by == std::string_view::npos) return std::nullopt;
  const auto queries = parse_tokens(text.substr(0, by));
  const auto keys = parse_tokens(text.substr(by + 1));
  if (!queries || !keys) return std::nullopt;
  return std::array{*queries, *keys};
}

std::string mask_fact_words() {
  std::string list;
  for (size_t i = 0; i < kForms.size(); ++i) {
    const bool last = i + 1 == kForms.size();
    list += (i == 0 ? "" : last ? " or " : ", ") + std::string(kForms[i].word);
    list += sizes_of(static_cast<MaskForm>(i));
  }
  return list;
}

Mask make_mask(const MaskFact& fact, std::shared_ptr<const TensorSource> tensor,
               const TokenGrid& queries, const TokenGrid& keys) {
  switch (fact.form) {
    case MaskForm::none:
      return {};
    case MaskForm::causal:
      return Mask::causal();
    case MaskForm::tensor:
      return Mask::tensor(std::move(tensor));
    case MaskForm::valid:
      return valid_keys_mask(std::move(tensor));
    case MaskForm::valid_pairs:
      return valid_pairs_mask(std::move(tensor));
    case MaskForm::segments:
      return same_segment_mask(std::move(tensor));
    case MaskForm::block_causal:
      return block_causal_mask(fact.causal_block);
    case MaskForm::blocks:
      return recorded_blocks_mask(std::move(tensor), fact.block[0], fact.block[1]);
    case MaskForm::spans:
      return query_spans_mask(std::move(tensor));
    case MaskForm::window:
      return Mask::window(fact.window[0], fact.window[1], keys.tokens() - queries.tokens());
    case MaskForm::natten:
      return natten_mask(fact.neighbourhood, queries, keys);
  }
  return {};
}

std::vector<std::string> mask_words() {
  return {"none", "causal", "window:N", "window:L,R", "block_causal:N", "natten:TxHxW"};
}

bool is_mask_word(std::string_view option) {
  for (const std::string& word : mask_words()) {
    const size_t number = word.find(':');
    if (number == std::string::npos ? option == word
                                    : option.starts_with(word.substr(0, number + 1))) {
      return true;
    }
  }
  return false;
}

}  // namespace attnscope
