#include "cli/common/head_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The facts that tell table rows from each other; the layer is always named.
struct RowFact {
  const char* name;
  std::string (*text)(const HeadName&);
};

constexpr std::array<RowFact, 9> kRowFacts{
    {{"step",
      [](const HeadName& h) {
        return h.place.unrecorded.step ? std::string("-") : std::to_string(h.step);
      }},
     {"layer",
      [](const HeadName& h) {
        const bool none = h.place.unrecorded.layer || h.layer == kNoLayer;
        return none ? std::string("-") : std::to_string(h.layer);
      }},
     {"chunk",
      [](const HeadName& h) {
        return h.place.has_chunk() ? std::to_string(h.place.chunk) : std::string("-");
      }},
     {"call", [](const HeadName& h) { return std::to_string(h.place.forward.call); }},
     {"branch",
      [](const HeadName& h) { return h.place.unrecorded.branch ? std::string("-") : h.branch; }},
     {"kind", [](const HeadName& h) { return h.kind; }},
     {"block", [](const HeadName& h) { return h.place.block; }},
     {"slot", [](const HeadName& h) { return h.place.slot; }},
     {"batch", [](const HeadName& h) { return std::to_string(h.batch); }}}};

bool same_row(const HeadName& a, const HeadName& b) {
  return std::all_of(kRowFacts.begin(), kRowFacts.end(),
                     [&](const RowFact& fact) { return fact.text(a) == fact.text(b); });
}

void name_rows(TableNames& names, const std::vector<const HeadName*>& rows, bool blocks) {
  names.row_name.clear();
  names.rows.assign(rows.size(), "");
  for (const RowFact& fact : kRowFacts) {
    const bool differs = std::any_of(rows.begin(), rows.end(), [&](const HeadName* row) {
      return fact.text(*row) != fact.text(*rows.front());
    });
    if (!differs && std::string_view(fact.name) != "layer") continue;
    if (!blocks && std::string_view(fact.name) == "block") continue;
    names.row_name += (names.row_name.empty() ? "" : " ") + std::string(fact.name);
    for (size_t r = 0; r < rows.size(); ++r) {
      names.rows[r] += (names.rows[r].empty() ? "" : " ") + fact.text(*rows[r]);
    }
  }
}

}  // namespace

std::string head_label(const HeadName& h) { return one_line(head_words(h)); }

HeadTable table_of_heads(const std::vector<HeadName>& heads) {
  HeadTable table;
  TableNames& names = table.names;
  names.column_name = "head";
  std::vector<const HeadName*> rows;
  std::vector<size_t> row_of;
  std::set<int64_t> columns;
  for (const HeadName& head : heads) {
    // Heads of a call stand together.
    if (rows.empty() || !same_row(*rows.back(), head)) rows.push_back(&head);
    row_of.push_back(rows.size() - 1);
    columns.insert(head.head);
  }
  for (const int64_t column : columns) names.columns.push_back(std::to_string(column));
  for (size_t i = 0; i < heads.size(); ++i) {
    const auto column = std::distance(columns.begin(), columns.find(heads[i].head));
    table.places.push_back(row_of[i] * columns.size() + static_cast<size_t>(column));
  }
  name_rows(names, rows, false);
  // Blocks are layers by other names, unless they tell rows apart that nothing else does.
  if (std::set<std::string>(names.rows.begin(), names.rows.end()).size() < rows.size()) {
    name_rows(names, rows, true);
  }
  return table;
}

}  // namespace attnscope
