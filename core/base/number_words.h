#pragma once

#include <span>
#include <string>
#include <vector>

namespace attnscope {

/// How numbers are written where people read them: in pictures, windows and pages. JSON, CSV and
/// what scripts print have all digits and plain forms instead. UTF-8 all.

/// With `digits` (1 to 15) that count and no zeros behind them: a decimal from 0.001 on ("0.0256",
/// "17.8"), a whole number from 1000 on ("17776"), powers of ten below the one and from a million
/// on ("3.2×10⁻⁵", "10⁻⁸"). "inf", "-inf" and "nan" where it is no number.
std::string number_words(double value, int digits = 3);

/// A part of 1 in per cent, of `digits` digits: "12.3 %", "0.000276 %", with a space that no line
/// is broken at (U+00A0); parts below 10⁻⁸ (and
/// what is no part) as number_words(). What is less than all gets more digits rather than "100 %":
/// "99.98 %".
std::string share_words(double share, int digits = 3);

/// "10⁻⁵".
std::string power_of_ten(int exponent);

/// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, ascending, `most` of them at
/// most; none where the range is empty.
std::vector<double> linear_ticks(double low, double high, int most);
/// For an axis of logarithms, 0 < low: powers of ten, all or each n-th of them as `most` allows;
/// where there are few, 2 and 5 times these too, or the ticks of linear_ticks() that
/// have room there.
std::vector<double> log_ticks(double low, double high, int most);
/// How the ticks of a picture's axes or colour bars are written.
struct TickNotation {
  bool powers = false;  ///< powers of ten also where decimals would do
  int unit = 0;         ///< the power of ten that they count in, which is told beside them
};
/// The words of one axis' ticks, ascending, in one notation: decimals, or powers of ten, of which
/// 1 and 10 stay as they are. Neighbours differ in what is written.
std::vector<std::string> tick_words(std::span<const double> ticks, TickNotation notation = {});
/// "3.2×10⁻⁵", "10⁻⁸"; 0 and sizes from 1 to 10 as they are.
std::string power_words(double value, int digits);
/// True of ticks that tick_words() writes as powers of ten.
bool need_powers(std::span<const double> ticks);

}  // namespace attnscope
