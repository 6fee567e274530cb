#include "core/problem/head_set.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The number that the whole text is; nothing where it is none.
std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  const bool whole = error == std::errc{} && last == end && number >= 0;
  return whole && text.front() != '-' ? std::optional(number) : std::nullopt;
}

template <typename Wanted, typename Value>
bool agrees(const std::optional<Wanted>& wanted, const Value& value) {
  return !wanted || *wanted == value;
}

}  // namespace

HeadPattern HeadPattern::parse(std::string_view text, std::string_view option) {
  const auto fail = [&] {
    return usage_error(std::string(option) + " " + one_line(std::string(text)) +
                       ": expected LAYER.HEAD, STEP:LAYER.HEAD or BLOCK[/SLOT].HEAD, such as 3.1, "
                       "10:3.1 or refiner.0/attn.1");
  };
  HeadPattern pattern;
  std::string_view rest = text;
  const size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    pattern.step = number_of(rest.substr(0, colon));
    if (!pattern.step) throw fail();
    rest.remove_prefix(colon + 1);
  }
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos || dot == 0) throw fail();
  const auto head = number_of(rest.substr(dot + 1));
  if (!head) throw fail();
  pattern.head = *head;
  const std::string_view place = rest.substr(0, dot);
  pattern.layer = number_of(place);
  if (pattern.layer) return pattern;
  const size_t slash = place.find('/');
  pattern.block = place.substr(0, slash);
  if (slash != std::string_view::npos) pattern.slot = place.substr(slash + 1);
  if (pattern.block->empty() || (pattern.slot && pattern.slot->empty())) throw fail();
  return pattern;
}

HeadPattern HeadPattern::of(const HeadName& name) {
  HeadPattern pattern;
  pattern.head = name.head;
  pattern.batch = name.batch;
  pattern.layer = name.layer;
  if (!name.place.unrecorded.step) pattern.step = name.step;
  if (!name.place.unrecorded.branch && !name.branch.empty()) pattern.branch = name.branch;
  if (name.place.unrecorded.layer) pattern.layer.reset();
  if (!name.kind.empty()) pattern.kind = name.kind;
  if (!name.place.block.empty()) pattern.block = name.place.block;
  if (!name.place.slot.empty()) pattern.slot = name.place.slot;
  if (name.place.has_chunk()) pattern.chunk = name.place.chunk;
  return pattern;
}

bool HeadPattern::matches(const HeadName& name) const {
  return head == name.head && agrees(step, name.step) && agrees(layer, name.layer) &&
         agrees(batch, name.batch) && agrees(chunk, name.place.chunk) &&
         agrees(branch, name.branch) && agrees(kind, name.kind) &&
         agrees(block, name.place.block) && agrees(slot, name.place.slot);
}

std::string HeadPattern::facts() const {
  std::string text = "head " + std::to_string(head);
  for (const auto& [name, number] :
       {std::pair("step", &step), {"layer", &layer}, {"batch", &batch}, {"chunk", &chunk}}) {
    if (*number) text += std::string(" ") + name + " " + std::to_string(**number);
  }
  for (const auto& [name, word] :
       {std::pair("branch", &branch), {"kind", &kind}, {"block", &block}, {"slot", &slot}}) {
    // Its length keeps words apart, whatever is in them.
    if (*word) {
      text += std::string(" ") + name + " " + std::to_string((*word)->size()) + ":" + **word;
    }
  }
  return text;
}

std::string HeadPattern::text() const {
  std::string text = step ? std::to_string(*step) + ":" : "";
  if (layer && *layer != kNoLayer) {
    text += std::to_string(*layer);
  } else {
    text += block.value_or("") + (slot ? "/" + *slot : "");
  }
  text += "." + std::to_string(head);
  if (chunk) text += " chunk " + std::to_string(*chunk);
  if (branch) text += " " + *branch;
  if (kind) text += " " + *kind;
  if (batch) text += " b" + std::to_string(*batch);
  return text;
}

HeadSet::HeadSet(std::vector<HeadPattern> patterns, std::string source)
    : patterns_(std::move(patterns)), source_(std::move(source)) {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    places_[{patterns_[i].layer, patterns_[i].head}].push_back(i);
  }
}

template <typename Use>
bool HeadSet::find(const HeadName& name, const Use& use) const {
  for (const std::optional<int64_t> layer : {std::optional(name.layer), std::optional<int64_t>()}) {
    const auto there = places_.find({layer, name.head});
    if (there == places_.end()) continue;
    for (const size_t i : there->second) {
      if (patterns_[i].matches(name) && use(i)) return true;
    }
  }
  return false;
}

bool HeadSet::contains(const HeadName& name) const {
  return find(name, [](size_t) { return true; });
}

void HeadSet::mark(const HeadName& name, std::vector<bool>& found) const {
  find(name, [&](size_t i) {
    found[i] = true;
    return false;
  });
}

std::string HeadSet::missing(const std::vector<bool>& found, std::string_view where) const {
  constexpr int64_t kNamed = 8;
  const int64_t lacks = std::count(found.begin(), found.end(), false);
  if (lacks == 0) return "";
  std::string names;
  int64_t named = 0;
  for (size_t i = 0; i < found.size() && named <= kNamed; ++i) {
    if (found[i]) continue;
    if (named++ == kNamed) {
      names += ", …";
    } else {
      names += (names.empty() ? "" : ", ") + one_line(patterns_[i].text());
    }
  }
  return source_ + ": " + std::to_string(lacks) + " of " + std::to_string(size()) +
         (size() == 1 ? " head is" : " heads are") + " not in " + std::string(where) + ": " + names;
}

std::string HeadSet::text() const {
  std::string text;
  for (const HeadPattern& pattern : patterns_) text += pattern.facts() + "\n";
  return text;
}

}  // namespace attnscope
