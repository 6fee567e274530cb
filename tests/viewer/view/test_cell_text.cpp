// How the numbers in the cells of a map are written.
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "viewer/view/cell_text.h"

using namespace attnscope;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The texts in the cells of a view.
std::vector<std::string> written(const std::vector<double>& values, int characters) {
  const CellNotation notation = cell_notation(values, characters);
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(cell_text(value, notation));
  return texts;
}

}  // namespace

TEST_CASE("weights in narrow cells have two digits in a common power of ten") {
  // A zoom of the sample: four decades in cells of 26 pixels.
  const std::vector<double> weights{0.0312, 4e-5, 9.1e-5, 4.3e-4, 0.0027, 0};
  const CellNotation three = cell_notation(weights, 3);
  CHECK(three.power == -4);
  CHECK(written(weights, 3) == std::vector<std::string>{"312", ".40", ".91", "4.3", "27", "0"});
  CHECK(cell_notation(weights, 4).power == -5);
  CHECK(written(weights, 4) ==
        std::vector<std::string>{"3120", "4.00", "9.10", "43.0", "270", "0"});
  // No power of ten alone, whatever the sizes.
  for (int characters = 0; characters <= 8; ++characters) {
    for (const std::string& text : written({0.9, 1e-3, 2e-5, 7e-9, 3e-12}, characters)) {
      INFO(characters << " " << text);
      CHECK(static_cast<int>(text.size()) <= characters);
      CHECK_FALSE(text.starts_with("e"));
      CHECK_FALSE((text == "0" || text == ".00" || text == "-"));
    }
  }
}

TEST_CASE("where two digits have no room in a cell it has no number") {
  CHECK(cell_notation(std::vector<double>{0.5, 0.25}, 2).characters == 0);
  CHECK(written({0.5, 0.25}, 2) == std::vector<std::string>{"", ""});
  // A sign takes one more.
  CHECK(cell_notation(std::vector<double>{-4.2, 3.1}, 3).characters == 0);
  CHECK(written({-4.2, 3.1}, 4) == std::vector<std::string>{"-4.2", "3.1"});
  CHECK_FALSE(cell_notation(std::vector<double>{-4.2, 3.1}, 4).power);
}

TEST_CASE("numbers that have their digits as they are stay so") {
  CHECK(written({0.12, 0.5, 0.034}, 5) == std::vector<std::string>{".12", ".5", ".034"});
  CHECK(written({-12.34, 0.56, 7}, 5) == std::vector<std::string>{"-12.3", ".56", "7"});
  CHECK(written({4.31e-5, 0.0213, 9e-4}, 6) ==
        std::vector<std::string>{"4.3e-5", ".0213", ".0009"});
  // One small number among many others changes nothing.
  std::vector<double> logits(40, 3.1);
  logits[3] = -0.051;
  logits[7] = -4.2;
  CHECK_FALSE(cell_notation(logits, 4).power);
  CHECK(cell_text(-0.051, cell_notation(logits, 4)) == "-.05");
}

TEST_CASE("a number that would be nothing but zeros is left out, and 0 is not") {
  const std::vector<double> values{0.9, 0.31, 0.22, 1e-7, 0, kInfinity, -kInfinity};
  CHECK(written(values, 3) ==
        std::vector<std::string>{".9", ".31", ".22", "", "0", "\u00b7", "\u00b7"});
  // A number that rounds up to one digit more takes the next power.
  CHECK(written({9.996e-4, 1.1e-5}, 3) == std::vector<std::string>{"100", "1.1"});
  CHECK(cell_notation(std::vector<double>{9.996e-4, 1.1e-5}, 3).power == -5);
}

TEST_CASE("powers of ten, and the ends of an axis") {
  CHECK(times_power_of_ten(-5) == "\u00d710\u207b\u2075");
  CHECK(times_power_of_ten(-12) == "\u00d710\u207b\u00b9\u00b2");
  CHECK(times_power_of_ten(3) == "\u00d710\u00b3");
  CHECK(axis_number_within(0.0797, 5) == "0.08");
  CHECK(axis_number_within(0.137, 5) == "0.137");
  CHECK(axis_number_within(5.852, 5) == "5.85");
  CHECK(axis_number_within(-12.34, 5) == "-12.3");
  CHECK(number_within(0.0797, 5) == ".0797");
}
