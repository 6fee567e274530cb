#include "core/base/name_patterns.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {

bool matches_pattern(std::string_view pattern, std::string_view name) {
  // The last star seen, and where the name goes on if the star takes one character more.
  size_t p = 0, n = 0, star = std::string_view::npos, after = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool matches_any(std::span<const std::string> patterns, std::string_view name) {
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& p) { return matches_pattern(p, name); });
}

std::string pattern_problem(const std::string& pattern, const std::set<std::string>& names,
                            std::string_view option, std::string_view where) {
  const bool found = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return matches_pattern(pattern, name);
  });
  if (found) return "";
  std::vector<std::string> known;
  std::string list;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    known.push_back(name);
    list += (list.empty() ? "" : ", ") + one_line(name);
  }
  const std::string nearest = nearest_word(pattern, known);
  return std::string(option) + " " + one_line(pattern) + ": not in " + std::string(where) +
         (nearest.empty() ? "" : ", did you mean " + one_line(nearest) + "?") + " (it has " +
         (list.empty() ? "none recorded" : list) + ")";
}

}  // namespace attnscope
