#include "core/base/selection.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <numeric>
#include <optional>

#include "core/base/error.h"

namespace attnscope {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Takes a decimal number off the front of `text`; nothing where none stands there or it is too
/// large.
std::optional<int64_t> take_number(std::string_view& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::string in_quotes(std::string_view text) { return std::string("'").append(text).append("'"); }

}  // namespace

/// Reads one part between commas. Throws a description of what is wrong with it as usage_error.
Selection::Term Selection::parse_term(std::string_view part) {
  Term term;
  term.text = std::string(part);
  std::string_view rest = part;
  const auto fail = [&](std::string_view why) { return usage_error(why); };
  if (rest.starts_with('!')) {
    term.exclude = true;
    rest = trim(rest.substr(1));
  }
  if (rest.empty()) throw fail(term.exclude ? "'!' needs a number or a range" : "an empty part");
  if (rest == "last") {
    term.kind = Term::Kind::last;
    return term;
  }
  term.kind = Term::Kind::range;
  if (rest.starts_with("all")) {
    rest.remove_prefix(3);
    term.open_begin = term.open_end = true;
  } else if (rest.starts_with(':')) {
    term.open_begin = term.open_end = true;
  } else {
    const auto begin = take_number(rest);
    term.open_begin = !begin;
    term.begin = term.end = begin.value_or(0);
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      const auto end = take_number(rest);
      term.open_end = !end;
      term.end = end.value_or(0);
      if (!begin && !end) throw fail(in_quotes(part) + " is neither a number nor a range");
      // -1 means the last one elsewhere: it must not silently mean something else here.
      if (!begin) {
        throw fail(in_quotes(part) +
                   ": numbers are not negative; the largest is last, and a range "
                   "starts with a number");
      }
      if (begin && end && *end < *begin) throw fail(in_quotes(part) + " runs backwards");
    } else {
      if (!begin) throw fail(in_quotes(part) + " is neither a number nor a range");
      term.kind = Term::Kind::number;
    }
  }
  if (rest.starts_with(':')) {
    rest.remove_prefix(1);
    const auto step = take_number(rest);
    if (!step || *step < 1) throw fail(in_quotes(part) + " needs a step of at least 1 after ':'");
    if (term.kind == Term::Kind::number) throw fail(in_quotes(part) + ": a step needs a range");
    term.step = *step;
  }
  if (!rest.empty()) throw fail(in_quotes(rest) + " in " + in_quotes(part) + " cannot be read");
  return term;
}

Selection Selection::parse(std::string_view text, std::string_view option) {
  Selection selection;
  selection.text_ = std::string(text);
  selection.option_ = std::string(option);
  if (trim(text) == "all") return selection;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    try {
      selection.terms_.push_back(parse_term(trim(rest.substr(0, comma))));
    } catch (const Error& error) {
      throw usage_error(selection.prefix() + error.what() +
                        " (expected a list like 0,3-7, 8-, all, last, !4 or 0-39:5)");
    }
    if (comma == std::string_view::npos) return selection;
    rest.remove_prefix(comma + 1);
  }
}

std::string Selection::prefix() const {
  return (option_.empty() ? "selection" : option_) + " " + (text_.empty() ? "''" : text_) + ": ";
}

/// Marks in `chosen` the recorded values that the term names.
void Selection::mark(const Term& term, std::span<const int64_t> recorded, bool value,
                     std::vector<bool>& chosen) {
  if (term.kind == Term::Kind::last) {
    chosen.back() = value;
    return;
  }
  const int64_t begin = term.open_begin ? recorded.front() : term.begin;
  const int64_t end = term.open_end ? recorded.back() : term.end;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i] < begin || recorded[i] > end || (recorded[i] - begin) % term.step != 0) {
      continue;
    }
    chosen[i] = value;
  }
}

/// Tells what the term names and is not recorded; empty where all is.
std::string Selection::problem_of(const Term& term, std::span<const int64_t> recorded) {
  if (term.kind == Term::Kind::last) return "";
  if (term.kind == Term::Kind::number) {
    const bool exists = std::binary_search(recorded.begin(), recorded.end(), term.begin);
    return exists ? "" : std::to_string(term.begin) + " does not exist";
  }
  const int64_t begin = term.open_begin ? recorded.front() : term.begin;
  const int64_t end = term.open_end ? recorded.back() : term.end;
  for (const int64_t bound : {begin, end}) {
    if (bound < recorded.front() || bound > recorded.back()) {
      return std::to_string(bound) + " in " + in_quotes(term.text) + " is out of range";
    }
  }
  std::vector<bool> held(recorded.size());
  mark(term, recorded, true, held);
  const bool any = std::find(held.begin(), held.end(), true) != held.end();
  return any ? "" : in_quotes(term.text) + " holds nothing";
}

std::vector<std::string> Selection::missing(std::span<const int64_t> recorded) const {
  std::vector<std::string> lines;
  for (const Term& term : terms_) {
    const std::string problem = recorded.empty() ? "" : problem_of(term, recorded);
    if (problem.empty()) continue;
    lines.push_back(prefix() + problem + " (there are " + format_index_list(recorded) + ")");
  }
  return lines;
}

std::vector<int64_t> Selection::resolve(std::span<const int64_t> recorded) const {
  assert(std::adjacent_find(recorded.begin(), recorded.end(), std::greater_equal<>()) ==
         recorded.end());
  if (recorded.empty()) throw usage_error(prefix() + "nothing exists to choose from");
  const bool any_include =
      std::any_of(terms_.begin(), terms_.end(), [](const Term& t) { return !t.exclude; });
  std::vector<bool> chosen(recorded.size(), !any_include);
  // An excluded item is out wherever in the list its term stands.
  for (const bool exclude : {false, true}) {
    for (const Term& term : terms_) {
      if (term.exclude == exclude) mark(term, recorded, !exclude, chosen);
    }
  }
  std::vector<int64_t> result;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (chosen[i]) result.push_back(recorded[i]);
  }
  if (!result.empty()) return result;
  const std::vector<std::string> lacks = missing(recorded);
  if (!lacks.empty()) throw usage_error(lacks.front());
  throw usage_error(prefix() + "nothing is left (there are " + format_index_list(recorded) + ")");
}

std::vector<int64_t> Selection::resolve_count(int64_t count) const {
  std::vector<int64_t> recorded(static_cast<size_t>(count));
  std::iota(recorded.begin(), recorded.end(), int64_t{0});
  return resolve(recorded);
}

IndexRange parse_crop(std::string_view text, std::string_view option, int64_t count) {
  const std::string valid = " (valid: 0:" + std::to_string(count) + ", half-open)";
  const auto fail = [&](std::string_view why) {
    return usage_error(std::string(option) + " " + std::string(text) + ": " + std::string(why) +
                       valid);
  };
  IndexRange range{0, count};
  std::string_view rest = text;
  if (const auto begin = take_number(rest)) range.begin = *begin;
  if (!rest.starts_with(':')) throw fail("expected A:B, A:, :B or :");
  rest.remove_prefix(1);
  if (const auto end = take_number(rest)) range.end = *end;
  if (!rest.empty()) throw fail("expected A:B, A:, :B or :");
  if (range.begin > count) throw fail(std::to_string(range.begin) + " is out of range");
  if (range.end > count) throw fail(std::to_string(range.end) + " is out of range");
  if (range.empty()) throw fail("holds nothing");
  return range;
}

std::string format_index_list(std::span<const int64_t> values, size_t limit) {
  std::string text;
  size_t pieces = 0;
  for (size_t i = 0; i < values.size();) {
    size_t last = i;
    while (last + 1 < values.size() && values[last + 1] == values[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    if (pieces++ == limit) return text + "…";
    text += std::to_string(values[i]);
    if (last > i) text.append("-").append(std::to_string(values[last]));
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

}  // namespace attnscope
