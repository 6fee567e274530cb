#include "core/base/error.h"
#include "io/results/csv_line.h"
#include "io/results/csv_table.h"
#include "tests/support/catch.h"

using namespace attnscope;

using Fields = std::vector<std::string>;

TEST_CASE("CSV is read as it was written") {
  const Fields texts{"plain", "", "a,b", "say \"no\"", "two\r\nlines", "\"", ","};
  std::string text = "n0,n1,n2,n3,n4,n5,n6\r\n";
  for (int line = 0; line < 2; ++line) {
    for (size_t i = 0; i < texts.size(); ++i) text += (i > 0 ? "," : "") + csv_text(texts[i]);
    text += "\r\n";
  }
  const CsvTable table = parse_csv(text, "x.csv");
  CHECK(table.names.size() == 7);
  REQUIRE(table.lines.size() == 2);
  CHECK(table.lines[0] == texts);
  CHECK(table.lines[1] == texts);
  // A field of the first line has two lines.
  CHECK(table.numbers == std::vector<int64_t>{2, 4});
}

TEST_CASE("CSV of other programs: plain ends of lines, a byte order mark, no last end") {
  const CsvTable table = parse_csv(
      "\xef\xbb\xbf"
      "a,b\n1,2\n3,\n,4",
      "x.csv");
  CHECK(table.names == Fields{"a", "b"});
  REQUIRE(table.lines.size() == 3);
  CHECK(table.lines[1] == Fields{"3", ""});
  CHECK(table.lines[2] == Fields{"", "4"});
}

TEST_CASE("what is no CSV is refused with its line") {
  const auto refused = [](const std::string& text, const std::string& what) {
    INFO(text);
    CHECK_THROWS_WITH(parse_csv(text, "x.csv"), Catch::Contains("x.csv") && Catch::Contains(what));
  };
  refused("", "is empty");
  refused("a,b\n1,2\n1,2,3\n", "line 3: has 3 fields, the first line 2");
  refused("a,b\n1,\"2\n3,4\n", "line 2: a quoted field does not end");
  refused("a,b\n1,\"2\"3\n", "line 2: a quoted field goes on behind its quote");
  refused("a,a\n", "the column a is there twice");
}
