#include "cli/common/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Characters of UTF-8, of which one is as wide as any other.
size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Outside the main stack, the block instead of the layer.
std::string slot_of(const HeadName& name) {
  return one_line(name.layer == kNoLayer ? name.place.text() : name.place.slot);
}

std::string fact_cell(int64_t value, bool unrecorded = false) {
  return unrecorded || value < 0 ? "-" : std::to_string(value);
}

}  // namespace

void TextTable::add_column(const std::string& heading, Side side, size_t width) {
  assert(lines_.empty());
  columns_.push_back({side, std::max(width, characters(heading))});
  headings_.push_back(heading);
}

void TextTable::add_line(std::vector<std::string> cells, std::string below) {
  assert(cells.size() == columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    columns_[i].width = std::max(columns_[i].width, characters(cells[i]));
  }
  lines_.push_back({std::move(cells), std::move(below)});
}

std::string TextTable::line_text(const std::vector<std::string>& cells) const {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string space(columns_[i].width - characters(cells[i]), ' ');
    if (i > 0) text += ' ';
    text += columns_[i].side == Side::left ? cells[i] + space : space + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string TextTable::text(const std::string& indent) const {
  const bool has_headings = std::any_of(headings_.begin(), headings_.end(),
                                        [](const std::string& each) { return !each.empty(); });
  std::string text = has_headings ? indent + line_text(headings_) : "";
  for (const Line& line : lines_) text += indent + line_text(line.cells) + line.below;
  return text;
}

std::string number_cell(std::optional<double> value) {
  return value && !std::isnan(*value) ? fmt::format("{:.4g}", *value) : "-";
}

HeadCells::HeadCells(std::span<const HeadName> heads, bool calls) : calls_(calls) {
  for (const HeadName& head : heads) {
    has_chunk_ |= head.place.has_chunk();
    has_slot_ |= !slot_of(head).empty();
  }
}

void HeadCells::add_to(TextTable& table) const {
  if (calls_) table.add_column("step", TextTable::Side::right, 5);
  if (has_chunk_) table.add_column("chunk");
  table.add_column("layer");
  if (has_slot_) table.add_column("slot", TextTable::Side::left);
  if (calls_) table.add_column("branch", TextTable::Side::left);
  table.add_column("kind", TextTable::Side::left, 5);
  table.add_column("b", TextTable::Side::right, 2);
  table.add_column("head");
}

std::vector<std::string> HeadCells::cells(const HeadName& head) const {
  const Unrecorded& unrecorded = head.place.unrecorded;
  std::vector<std::string> cells;
  if (calls_) cells.push_back(fact_cell(head.step, unrecorded.step));
  if (has_chunk_) cells.push_back(fact_cell(head.place.chunk));
  cells.push_back(fact_cell(head.layer, unrecorded.layer));
  if (has_slot_) cells.push_back(slot_of(head));
  if (calls_) cells.push_back(unrecorded.branch ? "-" : one_line(head.branch));
  cells.push_back(one_line(head.kind));
  cells.push_back(fact_cell(head.batch));
  cells.push_back(fact_cell(head.head));
  return cells;
}

}  // namespace attnscope
