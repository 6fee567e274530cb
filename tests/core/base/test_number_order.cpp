#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/number_order.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

const std::vector<std::string> kNames{"entropy", "text_mass"};

std::vector<std::string> sorted(const std::string& sort) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  struct Row {
    std::string name;
    std::optional<double> number;
  };
  std::vector<Row> rows{{"none", std::nullopt}, {"two", 2.0},   {"nan", kNan},
                        {"minus", -1.0},        {"again", 2.0}, {"five", 5.0}};
  NumberOrder::parse(sort, kNames).sort(rows, [](const Row& row) { return row.number; });
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("rows stand by a number, equal ones as they came, those without it last") {
  CHECK(sorted("entropy") ==
        std::vector<std::string>{"five", "two", "again", "minus", "none", "nan"});
  CHECK(sorted("entropy:asc") ==
        std::vector<std::string>{"minus", "two", "again", "five", "none", "nan"});
  CHECK(sorted("") == std::vector<std::string>{"none", "two", "nan", "minus", "again", "five"});
}

TEST_CASE("an unknown number is refused with the nearest name") {
  CHECK_THROWS_WITH(NumberOrder::parse("entropie:asc", kNames),
                    "--sort entropie:asc: there is no such number; did you mean entropy? (there "
                    "are entropy, text_mass; NAME:asc has the smallest first)");
  CHECK_THROWS_AS(NumberOrder::parse("entropy:up", kNames), Error);
}
