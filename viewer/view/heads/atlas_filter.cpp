#include "viewer/view/heads/atlas_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

constexpr HeadClass kClasses[] = {HeadClass::sink,     HeadClass::text,  HeadClass::temporal,
                                  HeadClass::spatial,  HeadClass::local, HeadClass::global,
                                  HeadClass::undefined};

std::string class_names() {
  std::string names;
  for (const HeadClass each : kClasses) {
    names += (names.empty() ? "" : ", ") + std::string(head_class_name(each));
  }
  return names;
}

bool is_among(const Selection& selection, int64_t number, int64_t last) {
  const std::vector<int64_t> chosen = selection.resolve_count(last + 1);
  return std::binary_search(chosen.begin(), chosen.end(), number);
}

Error bad_word(const std::string& word, const std::string& why) {
  return usage_error(fmt::format("atlas filter: \"{}\": {}", one_line(word), why));
}

}  // namespace

AtlasFilter AtlasFilter::parse(std::string_view text) {
  AtlasFilter filter;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) filter.add_word(word);
  return filter;
}

void AtlasFilter::add_word(const std::string& word) {
  const auto list_of = [&](std::string_view key) -> std::optional<std::string> {
    if (word.compare(0, key.size(), key) != 0) return std::nullopt;
    return word.substr(key.size());
  };
  if (const auto list = list_of("layers=")) {
    layers_ = Selection::parse(*list, "layers=");
  } else if (const auto heads = list_of("heads=")) {
    heads_ = Selection::parse(*heads, "heads=");
  } else if (const auto names = list_of("class=")) {
    add_classes(*names, word);
  } else if (!add_bound(word)) {
    if (!parse_head_class(word)) {
      throw bad_word(word,
                     "expected layers=LIST, heads=LIST, METRIC<VALUE, METRIC>VALUE or a class (" +
                         class_names() + ")");
    }
    add_classes(word, word);
  }
}

void AtlasFilter::add_classes(std::string_view names, const std::string& word) {
  size_t begin = 0;
  while (begin <= names.size()) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const auto found = parse_head_class(names.substr(begin, end - begin));
    if (!found) throw bad_word(word, "the classes are " + class_names());
    classes_.push_back(*found);
    begin = end + 1;
  }
}

/// False where the word compares nothing.
bool AtlasFilter::add_bound(const std::string& word) {
  const size_t at = word.find_first_of("<>");
  if (at == std::string::npos) return false;
  const bool equal = at + 1 < word.size() && word[at + 1] == '=';
  const std::string name = word.substr(0, at);
  const std::string number = word.substr(at + (equal ? 2 : 1));
  Bound bound;
  bound.field = find_head_field(name);
  if (bound.field == nullptr) {
    std::vector<std::string> names;
    for (const HeadField& field : head_fields()) names.emplace_back(field.name);
    const std::string nearest = nearest_word(name, names);
    throw bad_word(word, nearest.empty()
                             ? fmt::format("the numbers of a head are {}", fmt::join(names, ", "))
                             : "did you mean " + nearest + "?");
  }
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, bound.value);
  if (error != std::errc() || stop != end || !std::isfinite(bound.value)) {
    throw bad_word(word, "expected a number behind the sign");
  }
  if (word[at] == '<') {
    bound.compare = equal ? Compare::less_equal : Compare::less;
  } else {
    bound.compare = equal ? Compare::greater_equal : Compare::greater;
  }
  bounds_.push_back(bound);
  return true;
}

bool AtlasFilter::matches(int64_t layer, int64_t head, int64_t last_layer,
                          int64_t last_head) const {
  if (layers_ && (layer < 0 || !is_among(*layers_, layer, last_layer))) return false;
  return !heads_ || is_among(*heads_, head, last_head);
}

bool AtlasFilter::matches(const HeadSketch* sketch) const {
  if (!asks_for_numbers()) return true;
  if (sketch == nullptr) return false;
  if (!classes_.empty() &&
      std::find(classes_.begin(), classes_.end(), sketch->head_class) == classes_.end()) {
    return false;
  }
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    const double number = sketch->number(*bound.field);
    switch (bound.compare) {
      case Compare::less:
        return number < bound.value;
      case Compare::less_equal:
        return number <= bound.value;
      case Compare::greater:
        return number > bound.value;
      case Compare::greater_equal:
        return number >= bound.value;
    }
    return false;
  });
}

}  // namespace attnscope
