#include "core/problem/model_place.h"

#include <algorithm>
#include <array>
#include <utility>

namespace attnscope {
namespace {

constexpr std::array<std::pair<std::string_view, bool Unrecorded::*>, 3> kFacts{
    {{"step", &Unrecorded::step}, {"layer", &Unrecorded::layer}, {"branch", &Unrecorded::branch}}};

void add_word(std::string& text, std::string_view word, std::string_view between) {
  if (word.empty()) return;
  if (!text.empty()) text += between;
  text += word;
}

}  // namespace

std::string Unrecorded::text() const {
  std::string names;
  for (const auto& [name, member] : kFacts) {
    if (this->*member) add_word(names, name, " ");
  }
  return names;
}

Unrecorded Unrecorded::parse(std::string_view names) {
  Unrecorded facts;
  while (!names.empty()) {
    const std::string_view word = names.substr(0, names.find(' '));
    for (const auto& [name, member] : kFacts) {
      if (word == name) facts.*member = true;
    }
    names.remove_prefix(std::min(names.size(), word.size() + 1));
  }
  return facts;
}

std::string CallForward::branch() const {
  return "f" + std::to_string(of_step >= 0 ? of_step : forward);
}

std::string ModelPlace::text() const {
  return block + (block.empty() || slot.empty() ? "" : ".") + slot;
}

std::string layer_text(int64_t layer, const ModelPlace& place) {
  const std::string name = place.text();
  const bool numbered = !place.unrecorded.layer && (layer != kNoLayer || name.empty());
  std::string text = numbered ? "layer " + std::to_string(layer) : "";
  add_word(text, name, " ");
  if (place.has_chunk()) add_word(text, "chunk " + std::to_string(place.chunk), " ");
  if (place.forward.call > 0) add_word(text, "call " + std::to_string(place.forward.call), " ");
  return text;
}

std::string call_words(int64_t step, int64_t layer, std::string_view branch, std::string_view rest,
                       const ModelPlace& place, std::string_view between) {
  std::string text = place.unrecorded.step ? "" : "step " + std::to_string(step);
  add_word(text, layer_text(layer, place), between);
  add_word(text, place.unrecorded.branch ? "" : branch, between);
  add_word(text, rest, between);
  return text;
}

}  // namespace attnscope
