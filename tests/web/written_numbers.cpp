// Numbers of all sizes as core/base/number_words.h writes them, for the test of the pages' own
// words:
// [[bits of the double as hexadecimal, number_words(), of two digits, share_words()], …] as JSON.
#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "core/base/number_words.h"

namespace {

void print(double value, bool last) {
  fmt::print("[\"{:016x}\",\"{}\",\"{}\",\"{}\"]{}\n", std::bit_cast<uint64_t>(value),
             attnscope::number_words(value), attnscope::number_words(value, 2),
             attnscope::share_words(value), last ? "]" : ",");
}

}  // namespace

int main() {
  fmt::print("[");
  for (const double value :
       {0.0,        1.0,     -1.0,     0.5,      0.3125, 0.0009996, 0.000999, 999.6,
        999.96,     17776.0, 999499.9, 999999.6, 1e6,    1e-8,      9.999e-9, 0.9998,
        0.99999999, 1e-300,  1.7e308,  0.125,    2.5,    1234.5}) {
    print(value, false);
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 4000; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    const double size = static_cast<double>(random() >> 11) * 0x1p-53;
    print((i % 7 == 0 ? -1 : 1) * (1 + unit) * std::pow(10.0, (i % 2 == 0 ? 40 : 9) * (size - 0.8)),
          i == 3999);
  }
}
