#include "viewer/view/heads/head_atlas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/problem/model_place.h"
#include "viewer/view/heads/atlas_filter.h"
#include "viewer/view/heads/head_list.h"

namespace attnscope {
namespace {

/// The batch item of `call` with this branch and number; nothing where it has none.
std::optional<int64_t> item_of(const MapSource& call, const std::string& branch, int64_t number) {
  std::optional<int64_t> found;
  for (size_t i = 0; i < call.batch.size(); ++i) {
    if (call.branch(static_cast<int64_t>(i)) != branch) continue;
    if (!found || call.batch[i] == number) found = static_cast<int64_t>(i);
  }
  return found;
}

std::string label_of(const MapSource& call) {
  if (call.place.unrecorded.layer) return "";
  return call.layer == kNoLayer ? one_line(call.place.block) : std::to_string(call.layer);
}

struct Last {
  int64_t layer = 0, head = 0;
};

Last last_of(const std::vector<AtlasLine>& lines) {
  Last last;
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) {
      last.layer = std::max(last.layer, head.name.layer);
      last.head = std::max(last.head, head.name.head);
    }
  }
  return last;
}

/// A number of a head; NaN where it is not known.
double number_in(const FindSketch& find, const HeadId& id, const HeadField& field) {
  const auto sketch = find(id);
  return sketch == nullptr ? std::nan("") : sketch->number(field);
}

std::vector<AtlasLine> sorted_heads(const std::vector<AtlasLine>& lines, const HeadField& field,
                                    const FindSketch& find) {
  std::vector<std::pair<double, AtlasHead>> all;
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) {
      if (head.shown) all.emplace_back(number_in(find, head.id, field), head);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (std::isnan(a.first) || std::isnan(b.first))
      return !std::isnan(a.first) && std::isnan(b.first);
    return a.first > b.first;
  });
  AtlasLine line;
  for (const auto& [number, head] : all) line.heads.push_back(head);
  return {line};
}

/// True where a list with the pattern's text has that pattern: of a block "3" it has layer 3.
bool is_listable(const HeadPattern& pattern) {
  try {
    const std::vector<HeadPattern> read = parse_head_list(pattern.text(), "heads select");
    return read.size() == 1 && read.front().facts() == pattern.facts();
  } catch (const Error&) {
    return false;
  }
}

/// Names every head as a list does: by its layer, or where others have that as well, or it has
/// none, by its block.
void name_picks(std::vector<AtlasLine>& lines) {
  for (AtlasLine& line : lines) {
    const auto tells = [&](HeadPattern pattern) {
      return std::all_of(lines.begin(), lines.end(), [&](const AtlasLine& other) {
        pattern.head = other.heads.front().name.head;
        return &other == &line || !pattern.matches(other.heads.front().name);
      });
    };
    const HeadName& name = line.heads.front().name;
    HeadPattern by_layer, by_block;
    by_layer.layer = name.layer;
    by_block.block = name.place.block;
    if (!name.place.slot.empty()) by_block.slot = name.place.slot;
    const bool has_block = !name.place.block.empty() && is_listable(by_block);
    const bool has_layer = name.layer != kNoLayer;
    if (!has_layer && !has_block) continue;
    HeadPattern& taken = has_block && !(has_layer && tells(by_layer)) ? by_block : by_layer;
    for (AtlasHead& head : line.heads) {
      taken.head = head.name.head;
      head.pick = taken.text();
    }
  }
}

/// Marks the heads that a list has, and counts them.
void mark_selected(const std::string& list, std::vector<AtlasLine>& lines, AtlasCells& cells) {
  if (list.empty()) return;
  const HeadSet set(parse_head_list(list, "heads select"), "heads select");
  std::vector<bool> found(set.size(), false);
  for (AtlasLine& line : lines) {
    for (AtlasHead& head : line.heads) {
      head.selected = set.contains(head.name);
      set.mark(head.name, found);
      if (head.selected) ++cells.selected;
    }
  }
  cells.selected_elsewhere = set.missing(found, "this step");
}

}  // namespace

std::vector<AtlasLine> atlas_lines(std::span<const MapSource> calls, const HeadId& from) {
  const MapSource& own = calls[static_cast<size_t>(from.call)];
  const std::string& branch = own.branch(from.batch);
  const int64_t number = own.batch[static_cast<size_t>(from.batch)];
  std::vector<std::pair<int64_t, AtlasLine>> lines;
  for (size_t c = 0; c < calls.size(); ++c) {
    const MapSource& call = calls[c];
    if (call.place.chunk != own.place.chunk) continue;
    if (call.step != own.step || call.kind != own.kind || call.place.slot != own.place.slot)
      continue;
    const auto item = static_cast<int64_t>(c) == from.call ? std::optional(from.batch)
                                                           : item_of(call, branch, number);
    if (!item) continue;
    AtlasLine line{label_of(call), {}};
    HeadName name{call.step,
                  call.layer,
                  branch,
                  std::string(kind_name(call.kind)),
                  call.batch[static_cast<size_t>(*item)],
                  0,
                  call.place};
    for (size_t h = 0; h < call.heads.size(); ++h) {
      name.head = call.heads[h];
      line.heads.push_back({{static_cast<int64_t>(c), *item, static_cast<int64_t>(h)}, name});
    }
    lines.emplace_back(call.layer, std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<AtlasLine> ordered;
  for (auto& [layer, line] : lines) ordered.push_back(std::move(line));
  name_picks(ordered);
  return ordered;
}

AtlasCells AtlasCells::of(std::vector<AtlasLine> lines, const AtlasLook& look,
                          const FindSketch& find) {
  AtlasCells cells;
  AtlasFilter filter;
  const Last last = last_of(lines);
  const HeadField* const metric = find_head_field(look.metric);
  try {
    filter = AtlasFilter::parse(look.filter);
    filter.resolve(last.layer, last.head);
  } catch (const Error& error) {
    cells.problem = error.what();
    filter = {};
  }
  mark_selected(look.selected, lines, cells);
  for (AtlasLine& line : lines) {
    for (AtlasHead& head : line.heads) {
      const auto sketch = find(head.id);
      ++cells.heads;
      if (sketch) ++cells.sketched;
      if (sketch && sketch->exact) ++cells.exact;
      if (sketch) ++cells.classes[static_cast<size_t>(sketch->head_class)];
      head.shown = filter.matches(head.name, sketch.get());
      if (!head.shown) continue;
      ++cells.shown;
      if (!sketch || metric == nullptr) continue;
      const double number = sketch->number(*metric);
      if (std::isnan(number)) continue;
      if (!cells.range) cells.range = {number, number};
      cells.range->first = std::min(cells.range->first, number);
      cells.range->second = std::max(cells.range->second, number);
    }
  }
  if (const HeadField* const by = find_head_field(look.sort)) {
    cells.sorted = true;
    cells.lines = sorted_heads(lines, *by, find);
    return cells;
  }
  std::erase_if(lines, [](const AtlasLine& line) {
    return std::none_of(line.heads.begin(), line.heads.end(),
                        [](const AtlasHead& head) { return head.shown; });
  });
  cells.lines = std::move(lines);
  return cells;
}

std::string atlas_text(const AtlasHead& head, const HeadSketch* sketch) {
  const HeadName& name = head.name;
  const bool named = name.layer != kNoLayer && !name.place.unrecorded.layer;
  std::string text = named ? fmt::format("layer {} \u00b7 ", name.layer) : "";
  text += fmt::format("head {}", name.head);
  if (sketch == nullptr) return text;
  text += " \u00b7 " + std::string(head_class_name(sketch->head_class));
  for (const HeadField& field : head_fields()) {
    if (field.heading.empty()) continue;
    const double number = sketch->number(field);
    if (!std::isnan(number))
      text += fmt::format("\n{} {:.{}f}", field.name, number, field.decimals);
  }
  return text;
}

std::vector<std::string> atlas_metrics() {
  std::vector<std::string> names;
  for (const std::string_view name : metric_names()) names.emplace_back(name);
  return names;
}

std::vector<std::string> atlas_contents() {
  std::vector<std::string> names = atlas_metrics();
  names.insert(names.begin(), kClassCells);
  return names;
}

}  // namespace attnscope
