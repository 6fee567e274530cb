#include "cli/diff/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "cli/common/head_table.h"
#include "cli/common/text_table.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// How exact an export's entries are.
std::string precision_text(const std::string& dtype) {
  if (dtype.empty()) return "computed";
  if (dtype == "f16") return "f16 of the file, rounded to 2^-11 of its size";
  if (dtype == "u8") return "u8 of the file, a code to 3.34 %";
  return dtype + " of the file";
}

void print_segments(const ComparedSegments& s) {
  if (s.queries.empty()) return;
  fmt::print("   {} -> {}", one_line(s.queries), one_line(s.keys));
  if (s.renormalised) {
    fmt::print(", each row divided by its sum there: A {}, B {} of the weight",
               number_cell(s.mass_a), number_cell(s.mass_b));
  }
  fmt::print("\n");
}

/// The rows of the largest divergence, a line each.
std::string ranked_text(const HeadDifference& found) {
  std::string text;
  for (const RankedRow& each : found.top) {
    text += fmt::format("     query {:>7}   JS {}\n", each.row, number_cell(each.divergence));
  }
  return text;
}

/// A number that pairs are sorted by and, where `shown`, that has a column.
struct PairNumber {
  const char* name;
  bool shown;
  std::optional<double> (*of)(const DiffRow&);
};

std::optional<double> mass_of(const ComparedSegments& segments, double mass) {
  return segments.queries.empty() || !segments.renormalised ? std::nullopt : std::optional(mass);
}

constexpr PairNumber kPairNumbers[] = {
    {"mean_abs", true, [](const DiffRow& row) { return std::optional(row.found.mean_abs); }},
    {"max_abs", true, [](const DiffRow& row) { return std::optional(row.found.max_abs); }},
    {"total_variation", true, [](const DiffRow& row) { return row.found.total_variation; }},
    {"js_mean", true, [](const DiffRow& row) { return row.found.divergence_mean; }},
    {"js_max", true, [](const DiffRow& row) { return row.found.divergence_max; }},
    {"cosine", true, [](const DiffRow& row) { return row.found.cosine_mean; }},
    {"entropy_change", true, [](const DiffRow& row) { return row.found.entropy_change; }},
    {"lse_mean", true, [](const DiffRow& row) { return row.found.lse_mean; }},
    {"lse_max_abs", false, [](const DiffRow& row) { return row.found.lse_max_abs; }},
    {"mass_a", true, [](const DiffRow& row) { return mass_of(row.segments, row.segments.mass_a); }},
    {"mass_b", true,
     [](const DiffRow& row) { return mass_of(row.segments, row.segments.mass_b); }}};

/// What B's head is called where it differs from A's: "step 1", "head 2"; empty: nowhere.
std::string other_text(const HeadName& a, const HeadName& b) {
  std::string text;
  const auto add = [&](bool differs, std::string_view fact, const std::string& value) {
    if (differs) text += fmt::format("{}{} {}", text.empty() ? "" : " ", fact, one_line(value));
  };
  const auto number = [](int64_t value) { return value < 0 ? "-" : std::to_string(value); };
  add(a.step != b.step, "step", number(b.step));
  add(a.layer != b.layer, "layer", number(b.layer));
  add(a.place.block != b.place.block, "block", b.place.block);
  add(a.place.slot != b.place.slot, "slot", b.place.slot);
  add(a.place.chunk != b.place.chunk, "chunk", number(b.place.chunk));
  add(a.branch != b.branch, "branch", b.branch);
  add(a.kind != b.kind, "kind", b.kind);
  add(a.batch != b.batch, "batch", number(b.batch));
  add(a.head != b.head, "head", number(b.head));
  return text;
}

/// "10/90"; empty: it is all of them.
std::string part_text(int64_t part, int64_t of) {
  return part < of ? fmt::format("{}/{}", part, of) : "";
}

/// A column that stands where one of the pairs has a cell for it.
struct FactColumn {
  const char* heading;
  TextTable::Side side;
  std::string (*cell)(const DiffRow&);  ///< empty: nothing is to be told of the pair
};

constexpr FactColumn kFactColumns[] = {
    {"b_head", TextTable::Side::left, [](const DiffRow& row) { return other_text(row.a, row.b); }},
    {"segments", TextTable::Side::left,
     [](const DiffRow& row) {
       const ComparedSegments& s = row.segments;
       return s.queries.empty() ? std::string() : one_line(s.queries + " -> " + s.keys);
     }},
    {"stored_a", TextTable::Side::left, [](const DiffRow& row) { return row.dtype_a; }},
    {"stored_b", TextTable::Side::left, [](const DiffRow& row) { return row.dtype_b; }}};

/// Behind the numbers.
constexpr FactColumn kCountColumns[] = {
    {"js_query", TextTable::Side::right,
     [](const DiffRow& row) {
       const HeadDifference& d = row.found;
       return d.divergence_max ? std::to_string(d.divergence_row) : std::string();
     }},
    {"rows", TextTable::Side::right,
     [](const DiffRow& row) { return part_text(row.found.rows, row.found.rows_of); }},
    {"entries", TextTable::Side::right,
     [](const DiffRow& row) { return part_text(row.found.entries, row.found.entries_of); }},
    {"masked_rows", TextTable::Side::right, [](const DiffRow& row) {
       const int64_t masked = row.found.masked_rows;
       return masked > 0 ? std::to_string(masked) : std::string();
     }}};

std::vector<FactColumn> columns_told(std::span<const FactColumn> columns,
                                     const std::vector<DiffRow>& rows) {
  std::vector<FactColumn> told;
  for (const FactColumn& column : columns) {
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [&](const DiffRow& row) { return !column.cell(row).empty(); });
    if (any) told.push_back(column);
  }
  return told;
}

std::vector<PairNumber> numbers_told(const std::vector<DiffRow>& rows, const std::string& sort) {
  std::vector<PairNumber> told;
  for (const PairNumber& number : kPairNumbers) {
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [&](const DiffRow& row) { return number.of(row).has_value(); });
    if ((number.shown && any) || sort == number.name) told.push_back(number);
  }
  return told;
}

}  // namespace

std::vector<std::string> diff_numbers() {
  std::vector<std::string> names;
  for (const PairNumber& number : kPairNumbers) names.emplace_back(number.name);
  return names;
}

void sort_diff(const NumberOrder& order, std::vector<DiffRow>& rows) {
  const auto* const number =
      std::find_if(std::begin(kPairNumbers), std::end(kPairNumbers),
                   [&](const PairNumber& each) { return order.name == each.name; });
  if (number != std::end(kPairNumbers)) order.sort(rows, number->of);
}

void print_diff(const DiffRow& row) {
  const HeadDifference& d = row.found;
  fmt::print("A  {}\nB  {}\n", head_label(row.a), head_label(row.b));
  print_segments(row.segments);
  if (row.of_exports) {
    fmt::print("   entries   A {}, B {}\n", precision_text(row.dtype_a),
               precision_text(row.dtype_b));
  }
  fmt::print("   |A - B|   mean {}   max {} at query {}, key {}   total variation {}\n",
             number_cell(d.mean_abs), number_cell(d.max_abs), d.max_row, d.max_key,
             number_cell(d.total_variation));
  if (d.divergence_max) {
    fmt::print("   JS bits   mean {}   max {} at query {}\n", number_cell(d.divergence_mean),
               number_cell(d.divergence_max), d.divergence_row);
  }
  fmt::print("   rows      cosine {}   entropy A-B {} nats\n", number_cell(d.cosine_mean),
             number_cell(d.entropy_change));
  if (d.lse_max_abs) {
    fmt::print("   LSE A-B   mean {}   largest size {} at query {}\n", number_cell(d.lse_mean),
               number_cell(d.lse_max_abs), d.lse_row);
  }
  if (d.rows < d.rows_of) fmt::print("   of {} of {} rows\n", d.rows, d.rows_of);
  if (d.entries < d.entries_of) {
    fmt::print("   {} of {} entries are on both sides\n", d.entries, d.entries_of);
  }
  if (d.masked_rows > 0) {
    fmt::print("   {} rows have no weight in one of the maps\n", d.masked_rows);
  }
  fmt::print("{}", ranked_text(d));
}

void print_diff_table(const std::vector<DiffRow>& rows, const std::string& sort, bool lists_top) {
  std::vector<HeadName> names;
  for (const DiffRow& row : rows) names.push_back(row.a);
  const HeadCells heads(names);
  const auto facts = columns_told(kFactColumns, rows), counts = columns_told(kCountColumns, rows);
  const auto numbers = numbers_told(rows, sort);
  TextTable table;
  heads.add_to(table);
  for (const FactColumn& each : facts) table.add_column(each.heading, each.side);
  for (const PairNumber& each : numbers) table.add_column(each.name, TextTable::Side::right, 9);
  for (const FactColumn& each : counts) table.add_column(each.heading, each.side);
  for (const DiffRow& row : rows) {
    std::vector<std::string> cells = heads.cells(row.a);
    const auto add = [&](const FactColumn& column) {
      const std::string cell = column.cell(row);
      cells.push_back(cell.empty() ? "-" : cell);
    };
    for (const FactColumn& each : facts) add(each);
    for (const PairNumber& each : numbers) cells.push_back(number_cell(each.of(row)));
    for (const FactColumn& each : counts) add(each);
    table.add_line(std::move(cells), lists_top ? ranked_text(row.found) : "");
  }
  fmt::print("{}", table.text());
}

}  // namespace attnscope
