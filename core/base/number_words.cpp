#include "core/base/number_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

namespace attnscope {
namespace {

/// Decimals from here on, up to kMostDecimal.
constexpr double kLeastDecimal = 1e-3;
constexpr int kMostDecimal = 6;  ///< digits before the point
/// Of a share: below and above, per cent have too many zeros.
constexpr double kLeastPercent = 1e-8, kMostPercent = 1e4;
constexpr int kMostDigits = 15;
/// No line is broken before the sign.
constexpr std::string_view kPercent = "\u00a0%";

/// A size as its digits, without zeros behind them, of which the first counts 10^exponent.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

/// Rounded to `digits` digits, of a size above 0; halves go up, as in the scripts of pages.
Decimal decimal_of(double size, int digits) {
  using Limits = std::numeric_limits<double>;
  const double above = size < Limits::min() ? size : std::nextafter(size, Limits::max());
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*e", std::clamp(digits, 1, kMostDigits) - 1, above);
  Decimal found;
  const char* at = text.data();
  // Whatever point the user's locale has.
  for (; *at != 'e'; ++at) {
    if (*at >= '0' && *at <= '9') found.digits += *at;
  }
  found.exponent = std::atoi(at + 1);
  found.digits.erase(found.digits.find_last_not_of('0') + 1);
  return found;
}

std::string zeros(int count) { return std::string(static_cast<size_t>(count), '0'); }

/// "0.0256", "17.8", "17000".
std::string plain(const Decimal& number) {
  std::string text = number.digits;
  const auto count = static_cast<int>(text.size());
  if (number.exponent < 0) return "0." + zeros(-number.exponent - 1) + text;
  if (number.exponent >= count - 1) return text + zeros(number.exponent - count + 1);
  return text.insert(static_cast<size_t>(number.exponent) + 1, ".");
}

/// "2.56×10⁻²"; a 1 before the power is left out.
std::string in_powers(const Decimal& number) {
  if (number.digits == "1") return power_of_ten(number.exponent);
  return plain({number.digits, 0}) + "×" + power_of_ten(number.exponent);
}

/// Digits of whole numbers all count.
Decimal rounded(double size, int digits) {
  const Decimal found = decimal_of(size, digits);
  const bool cuts_whole = found.exponent >= digits && found.exponent < kMostDecimal;
  return cuts_whole ? decimal_of(size, found.exponent + 1) : found;
}

std::string signed_words(double value, const std::string& size) {
  return std::signbit(value) ? "-" + size : size;
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `value`.
double round_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// These times powers of ten 10^e, e a multiple of `step`, or so many more than one.
std::vector<double> in_decades(double low, double high, std::span<const double> factors,
                               int step = 1, int more = 0) {
  std::vector<double> ticks;
  const auto first = static_cast<int>(std::floor(std::log10(low) - 1e-9));
  const auto last = static_cast<int>(std::ceil(std::log10(high) + 1e-9));
  for (int e = first; e <= last; ++e) {
    if ((e - more) % step != 0) continue;
    for (const double factor : factors) {
      const double tick = factor * std::pow(10.0, e);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

/// Of the ticks that are not 0; a largest of 0: there are none.
struct TickSizes {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
};
TickSizes sizes_of(std::span<const double> ticks) {
  TickSizes sizes;
  for (const double tick : ticks) {
    if (tick == 0) continue;
    sizes.smallest = std::min(sizes.smallest, std::abs(tick));
    sizes.largest = std::max(sizes.largest, std::abs(tick));
  }
  return sizes;
}

/// Digits that tell each tick from the next.
int telling_digits(std::span<const double> ticks, double largest) {
  double nearest = largest;
  for (size_t i = 1; i < ticks.size(); ++i) {
    if (ticks[i] > ticks[i - 1]) nearest = std::min(nearest, ticks[i] - ticks[i - 1]);
  }
  const double digits = std::floor(std::log10(largest) + 1e-9) - std::floor(std::log10(nearest));
  return std::clamp(static_cast<int>(digits) + 1, 3, kMostDigits);
}

}  // namespace

std::string number_words(double value, int digits) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  if (std::isinf(size)) return signed_words(value, "inf");
  if (size == 0) return "0";
  const Decimal found = rounded(size, digits);
  const bool decimal = found.exponent >= -3 && found.exponent < kMostDecimal;
  return signed_words(value, decimal ? plain(found) : in_powers(found));
}

std::string share_words(double share, int digits) {
  const double size = std::abs(share);
  if (!std::isfinite(share) || (size > 0 && size < kLeastPercent) || size > kMostPercent) {
    return number_words(share, digits);
  }
  if (size == 0) return "0" + std::string(kPercent);
  Decimal found = rounded(100 * size, digits);
  for (int more = 4; size < 1 && found.exponent > 1 && more <= 8; ++more) {
    found = decimal_of(100 * size, more);
  }
  return signed_words(share, plain(found)) + std::string(kPercent);
}

std::string power_of_ten(int exponent) {
  static constexpr std::array kDigits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) {
    text += kDigits[static_cast<size_t>(digit - '0')];
  }
  return text;
}

std::vector<double> linear_ticks(double low, double high, int most) {
  std::vector<double> ticks;
  if (!(high > low) || !std::isfinite(high - low) || most < 1) return ticks;
  const double step = round_step((high - low) / std::max(1, most - 1));
  const double last = std::floor(high / step + 1e-9);
  for (double n = std::ceil(low / step - 1e-9); n <= last; ++n) {
    // Zero has no sign.
    ticks.push_back(n == 0 ? 0 : n * step);
    if (static_cast<int>(ticks.size()) == most) break;
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int most) {
  if (!(low > 0) || !(high > low) || !std::isfinite(high) || most < 1) return {};
  // In decades; as far as two ticks are apart at least.
  const double apart = std::log10(high / low) / std::max(1, most - 1);
  static constexpr std::array<double, 3> kFactors{1, 2, 5};
  const auto step = static_cast<int>(std::max(1.0, std::ceil(apart - 1e-9)));
  std::vector<double> decades;
  // Multiples of the step, where others are no more.
  for (int more = 0; more < std::min(step, 400); ++more) {
    std::vector<double> found = in_decades(low, high, std::span(kFactors).first(1), step, more);
    if (found.size() > decades.size()) decades = std::move(found);
  }
  const double two = std::log10(2.0);
  // Three on a long axis are few.
  if (decades.size() >= (apart > two / 2 ? 3 : 4)) return decades;
  std::vector<double> between;
  if (apart <= two) between = in_decades(low, high, kFactors);
  if (between.size() >= 3) return between;
  if (high / low > 1000) return decades;
  // Even steps crowd at the high end: as many as there have room.
  const double crowd = (high - low) / (high * std::log(high / low));
  const std::vector<double> even =
      linear_ticks(low, high, 1 + static_cast<int>(crowd * std::max(1, most - 1)));
  if (between.size() >= std::max(decades.size(), even.size())) return between;
  return even.size() > decades.size() ? even : decades;
}

bool need_powers(std::span<const double> ticks) {
  const TickSizes sizes = sizes_of(ticks);
  if (sizes.largest == 0) return false;
  // The few steps of a linear axis have a zero more at its low end, decades have many.
  const double least = sizes.smallest * 50 > sizes.largest ? sizes.largest : sizes.smallest;
  return least < kLeastDecimal * (1 - 1e-9) || sizes.largest >= std::pow(10.0, kMostDecimal);
}

std::vector<std::string> tick_words(std::span<const double> ticks, TickNotation notation) {
  std::vector<double> counted(ticks.begin(), ticks.end());
  for (double& tick : counted) tick /= std::pow(10.0, notation.unit);
  const double largest = sizes_of(counted).largest;
  std::vector<std::string> words;
  if (largest == 0) {
    words.assign(ticks.size(), "0");
    return words;
  }
  const bool decimal = !notation.powers && !need_powers(counted);
  const int digits = telling_digits(counted, largest);
  for (const double tick : counted) {
    if (!decimal || tick == 0) {
      words.push_back(power_words(tick, digits));
    } else {
      words.push_back(signed_words(tick, plain(rounded(std::abs(tick), digits))));
    }
  }
  return words;
}

std::string power_words(double value, int digits) {
  if (value == 0) return "0";
  const Decimal found = decimal_of(std::abs(value), digits);
  const bool as_it_is = found.exponent == 0 || (found.exponent == 1 && found.digits == "1");
  return signed_words(value, as_it_is ? plain(found) : in_powers(found));
}

}  // namespace attnscope
