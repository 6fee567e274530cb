#include "core/base/nearest_word.h"

#include <algorithm>
#include <string>
#include <vector>

namespace attnscope {
namespace {

char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours,
/// without regard to case.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                           folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  // A third of the letters may be wrong; a one-letter word has nothing in common with another.
  const size_t cutoff = word.size() < 2 ? 0 : std::max<size_t>(1, word.size() / 3);
  const std::string* best = nullptr;
  size_t best_distance = cutoff + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best != nullptr) return *best;
  // A word that was left unfinished: the shortest candidate that begins with it.
  constexpr size_t kPrefix = 3;
  for (const std::string& candidate : candidates) {
    if (word.size() < kPrefix || !candidate.starts_with(word)) continue;
    if (best == nullptr || candidate.size() < best->size()) best = &candidate;
  }
  return best == nullptr ? std::string() : *best;
}

Error unknown_name(std::string_view what, const std::string& name,
                   const std::vector<std::string>& names) {
  const std::string nearest = nearest_word(name, names);
  std::string list;
  for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
  return usage_error(std::string(what) + " " + one_line(name) + ": no such name" +
                     (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" + list +
                     ")");
}

}  // namespace attnscope
