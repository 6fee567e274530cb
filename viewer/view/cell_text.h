#pragma once

#include <optional>
#include <span>
#include <string>

namespace attnscope {

/// `value` in at most `characters` characters (a sign included), as precise as three digits allow:
/// ".05", "-12", "4e-5"; empty where not one digit fits.
std::string number_within(double value, int characters);
/// number_within() for an axis, which keeps the zero before the point: "0.08".
std::string axis_number_within(double value, int characters);

/// How the numbers in the cells of a map are written.
struct CellNotation {
  int characters = 0;             ///< that a cell has room for; 0: no numbers
  std::optional<int> power = {};  ///< of ten, in which they are counted; nothing: as they are
};

/// For cells of `characters` characters: as they are where that shows two digits of nine in ten
/// numbers, or of as many as a common power of ten does; else in the power that writes the largest
/// number in the whole cell, so that three characters show two digits of all numbers down to a
/// thousandth of it. No numbers where a cell has no room for two digits and a point, and for a sign
/// where there is one. What is not finite does not count.
CellNotation cell_notation(std::span<const double> values, int characters);

/// The text of a cell: "0" of 0 alone, "\u00b7" of what is not finite, nothing of a number that has
/// no digit in this notation.
std::string cell_text(double value, const CellNotation& notation);

/// "×10⁻⁵".
std::string times_power_of_ten(int power);

}  // namespace attnscope
