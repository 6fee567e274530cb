#include <limits>
#include <vector>

#include "cli/common/text_table.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("columns are as wide as their widest cell, of characters and not of bytes") {
  TextTable table;
  table.add_column("name", TextTable::Side::left);
  table.add_column("mass", TextTable::Side::right, 6);
  table.add_column("key", TextTable::Side::left);
  table.add_line({"ключ", "1", "a"}, "    below\n");
  table.add_line({"x", "0.1235 ±1", "bc"});
  CHECK(table.text(" ") ==
        " name      mass key\n"
        " ключ         1 a\n"
        "    below\n"
        " x    0.1235 ±1 bc\n");
}

TEST_CASE("small numbers keep their digits, and what is not there is a dash") {
  CHECK(number_cell(2.14e-8) == "2.14e-08");
  CHECK(number_cell(0.123456) == "0.1235");
  CHECK(number_cell(0.0) == "0");
  CHECK(number_cell(std::nullopt) == "-");
  CHECK(number_cell(std::numeric_limits<double>::quiet_NaN()) == "-");
}

TEST_CASE("heads have the columns that one of them needs") {
  HeadName plain{4, 2, "cond", "joint", 0, 3, {}};
  HeadName outside{4, kNoLayer, "cond", "self", 0, 1, {"refiner.0", "attn", 7, {}, {}}};
  HeadName unknown = plain;
  unknown.place.unrecorded = {true, true, true};
  const std::vector<HeadName> one{plain}, all{plain, outside, unknown};
  CHECK(HeadCells(one).cells(plain) ==
        std::vector<std::string>{"4", "2", "cond", "joint", "0", "3"});
  const HeadCells columns(all);
  CHECK(columns.cells(plain) ==
        std::vector<std::string>{"4", "-", "2", "", "cond", "joint", "0", "3"});
  CHECK(columns.cells(outside) ==
        std::vector<std::string>{"4", "7", "-", "refiner.0.attn", "cond", "self", "0", "1"});
  CHECK(columns.cells(unknown) ==
        std::vector<std::string>{"-", "-", "-", "", "-", "joint", "0", "3"});
  TextTable table;
  columns.add_to(table);
  CHECK(table.text() == " step chunk layer slot branch kind   b head\n");
}
