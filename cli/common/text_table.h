#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// A table for people: lines of cells under headings, in columns as wide as their widest cell.
class TextTable {
 public:
  enum class Side { left, right };

  /// Adds a column right of the others, at least `width` characters wide.
  void add_column(const std::string& heading, Side side = Side::right, size_t width = 0);
  /// Adds a line with a cell for each column; `below` stands below it as it is, if not empty.
  void add_line(std::vector<std::string> cells, std::string below = "");
  /// The lines, each behind `indent` and with a line break; without headings where all are empty.
  std::string text(const std::string& indent = "") const;

 private:
  struct Column {
    Side side;
    size_t width;
  };
  struct Line {
    std::vector<std::string> cells;
    std::string below;
  };
  std::string line_text(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::string> headings_;
  std::vector<Line> lines_;
};

/// A number with four significant digits: "0.1235", "2e-08"; "-" where there is none, or a NaN.
std::string number_cell(std::optional<double> value);

/// The columns of a table that name heads: step, layer, branch, kind, batch item and head; chunk
/// and slot where one of the heads has it.
class HeadCells {
 public:
  /// `calls`: with the step and the branch of each.
  explicit HeadCells(std::span<const HeadName> heads, bool calls = true);
  void add_to(TextTable& table) const;
  /// Their cells; "-" for a fact that is negative or that nobody recorded.
  std::vector<std::string> cells(const HeadName& head) const;

 private:
  bool calls_, has_chunk_ = false, has_slot_ = false;
};

}  // namespace attnscope
