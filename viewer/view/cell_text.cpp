#include "viewer/view/cell_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/number_words.h"

namespace attnscope {
namespace {

/// Characters without a sign in which two digits can be written over several powers of ten: "43",
/// "4.3", ".43".
constexpr int kLeastBody = 3;
constexpr int kMostDigits = 3;
/// Of the numbers, what has to have two digits as they are.
constexpr double kMost = 0.9;

/// "1e-05" → "1e-5", "1e+05" → "1e5".
std::string short_exponent(std::string text) {
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  size_t digit = e + 1;
  if (text[digit] == '+') {
    text.erase(digit, 1);
  } else if (text[digit] == '-') {
    ++digit;
  }
  while (digit + 1 < text.size() && text[digit] == '0') text.erase(digit, 1);
  return text;
}

/// "0.05" → ".05", "-0.5" → "-.5".
std::string without_zero(std::string text) {
  const size_t zero = text.find("0.");
  if (zero == 0 || (zero == 1 && text[0] == '-')) text.erase(zero, 1);
  return text;
}

/// A number as it is written, and how many of its digits that tells.
struct Written {
  std::string text;
  int digits = 0;
};

Written write_within(double value, int characters, bool terse) {
  if (value == 0) return characters >= 1 ? Written{"0", kMostDigits} : Written{};
  for (int digits = kMostDigits; digits >= 1; --digits) {
    for (std::string text :
         {fmt::format("{:.{}g}", value, digits), fmt::format("{:.{}e}", value, digits - 1)}) {
      text = short_exponent(std::move(text));
      if (terse) text = without_zero(std::move(text));
      if (static_cast<int>(text.size()) <= characters) return {text, digits};
    }
  }
  return {};
}

/// A number in a unit, with as many places after the point as fit.
Written write_fixed(double in_units, int characters) {
  for (int places = kMostDigits; places >= 0; --places) {
    std::string text = without_zero(fmt::format("{:.{}f}", in_units, places));
    if (static_cast<int>(text.size()) > characters) continue;
    const size_t first = text.find_first_of("123456789");
    if (first == std::string::npos) return {};
    const auto digits =
        static_cast<int>(std::count_if(text.begin() + static_cast<std::ptrdiff_t>(first),
                                       text.end(), [](char c) { return c != '.'; }));
    if (digits > kMostDigits && places > 0) continue;
    return {text, digits};
  }
  return {};
}

double in_power(double value, int power) { return value / std::pow(10.0, power); }

/// The power of ten in which a number of this size has `body` digits before the point.
int power_for(double largest, int body) {
  const int power = static_cast<int>(std::floor(std::log10(largest))) - (body - 1);
  const bool rounds_up = std::round(in_power(largest, power)) >= std::pow(10.0, body);
  return rounds_up ? power + 1 : power;
}

}  // namespace

std::string number_within(double value, int characters) {
  return write_within(value, characters, true).text;
}

std::string axis_number_within(double value, int characters) {
  return write_within(value, characters, false).text;
}

CellNotation cell_notation(std::span<const double> values, int characters) {
  double largest = 0;
  bool is_signed = false;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    largest = std::max(largest, std::abs(value));
    is_signed = is_signed || value < 0;
  }
  const int body = characters - (is_signed ? 1 : 0);
  if (body < kLeastBody) return {};
  CellNotation plain{characters};
  if (largest == 0) return plain;
  const CellNotation counted{characters, power_for(largest, body)};
  int64_t all = 0, as_they_are = 0, in_units = 0;
  for (const double value : values) {
    if (!std::isfinite(value) || value == 0) continue;
    ++all;
    as_they_are += write_within(value, characters, true).digits >= 2 ? 1 : 0;
    in_units += write_fixed(in_power(value, *counted.power), characters).digits >= 2 ? 1 : 0;
  }
  const bool most = static_cast<double>(as_they_are) >= kMost * static_cast<double>(all);
  return most || as_they_are >= in_units ? plain : counted;
}

std::string cell_text(double value, const CellNotation& notation) {
  if (notation.characters == 0) return "";
  if (!std::isfinite(value)) return "\u00b7";
  if (value == 0) return "0";
  if (!notation.power) return write_within(value, notation.characters, true).text;
  return write_fixed(in_power(value, *notation.power), notation.characters).text;
}

std::string times_power_of_ten(int power) { return "\u00d7" + power_of_ten(power); }

}  // namespace attnscope
