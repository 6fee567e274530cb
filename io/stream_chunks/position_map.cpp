#include "io/stream_chunks/position_map.h"

#include <algorithm>
#include <iterator>

namespace attnscope {

void PositionMap::cut(int64_t position) {
  auto after = runs_.upper_bound(position);
  if (after == runs_.begin()) return;
  const auto run = std::prev(after);
  if (run->first == position || run->second.end <= position) return;
  Entry rest = run->second;
  rest.run.first += position - run->first;
  run->second.end = position;
  runs_.emplace_hint(after, position, rest);
}

void PositionMap::assign(IndexRange positions, const Run& run) {
  if (positions.empty()) return;
  cut(positions.begin);
  cut(positions.end);
  const auto past =
      runs_.erase(runs_.lower_bound(positions.begin), runs_.lower_bound(positions.end));
  if (past != runs_.begin()) {
    const auto before = std::prev(past);
    Entry& entry = before->second;
    if (entry.end == positions.begin && entry.run.sequence == run.sequence &&
        entry.run.own == run.own && entry.run.first + entry.end - before->first == run.first) {
      entry.end = positions.end;
      return;
    }
  }
  runs_.emplace_hint(past, positions.begin, Entry{positions.end, run});
}

void PositionMap::visit(IndexRange positions,
                        const std::function<void(IndexRange, const Run*)>& visit) const {
  auto next = runs_.upper_bound(positions.begin);
  if (next != runs_.begin() && std::prev(next)->second.end > positions.begin) --next;
  while (!positions.empty()) {
    const bool here = next != runs_.end() && next->first <= positions.begin;
    if (!here) {
      const int64_t end =
          next == runs_.end() ? positions.end : std::min(positions.end, next->first);
      visit({positions.begin, end}, nullptr);
      positions.begin = end;
      continue;
    }
    const IndexRange part{positions.begin, std::min(positions.end, next->second.end)};
    Run run = next->second.run;
    run.first += part.begin - next->first;
    visit(part, &run);
    positions.begin = part.end;
    ++next;
  }
}

void PositionMap::visit_all(const std::function<void(IndexRange, const Run&)>& visit) const {
  for (const auto& [begin, entry] : runs_) visit({begin, entry.end}, entry.run);
}

}  // namespace attnscope
