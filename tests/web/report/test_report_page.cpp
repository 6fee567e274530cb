#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "web/report/report_page.h"

using namespace attnscope;

namespace {

const std::string kHostile = "</script><script>alert(1)</script><!--\"'&\xe2\x80\xa8\xff";

OrderedJson hostile_facts() {
  return {{"format", "attnscope-report/1"},
          {"title", kHostile},
          {"problems", {kHostile, 7}},
          {"about", {{{"label", kHostile}, {"text", kHostile}}, {{"label", "steps"}}}}};
}

std::string written(const ReportPage& page) {
  std::string text;
  write_report_page(page, [&](std::string_view part) { text += part; });
  return text;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a report's size is told to the byte before it is written") {
  const OrderedJson facts = hostile_facts();
  const std::vector<std::byte> some(100), few(1);
  ReportPage page{kHostile, facts, {{"maps", some}, {"look-0", few}, {"none", {}}}, {}};
  CHECK(report_bytes(page) == static_cast<int64_t>(written(page).size()));
  CHECK(report_bytes(page) > report_frame_bytes(false));
  page.figures.push_back({3, {{"title", kHostile}}, {{"q", some}, {"k", few}}});
  CHECK(report_bytes(page) == static_cast<int64_t>(written(page).size()));
  CHECK(report_bytes(page) > report_frame_bytes());
  for (const PageStyle style : {PageStyle::dark, PageStyle::paper}) {
    page.style = style;
    const std::string text = written(page);
    CHECK(report_bytes(page) == static_cast<int64_t>(text.size()));
    // Both the report's rules and those of figures within it hold always or never.
    const std::string rule = style == PageStyle::dark ? "@media all {" : "@media not all {";
    CHECK(count_of(text, rule) >= 2);
    CHECK(count_of(text, "@media (prefers-color-scheme") == 0);
  }
}

TEST_CASE("texts in a report are no markup") {
  const OrderedJson facts = hostile_facts();
  const std::string text = written({kHostile, facts, {}, {}});
  CHECK(text.find("alert(1)</script>") == std::string::npos);
  CHECK(text.find("<script>alert") == std::string::npos);
  // The facts, the colours and the page's script: nothing ends these earlier or begins others.
  CHECK(count_of(text, "<script") == 3);
  CHECK(count_of(text, "</script>") == 3);
  CHECK(text.find("<!--") == std::string::npos);
}

TEST_CASE("a report without figures has nothing of theirs") {
  const OrderedJson facts = hostile_facts();
  ReportPage page{"report", facts, {}, {}};
  std::string text = written(page);
  CHECK(count_of(text.substr(0, text.find("<title>")), "'sha256-") == 1);
  CHECK(text.find("figure-engine\">") == std::string::npos);
  page.figures.push_back({0, {{"title", "map"}}, {}});
  text = written(page);
  CHECK(count_of(text.substr(0, text.find("<title>")), "'sha256-") == 2);
  CHECK(count_of(text, "id=\"figure-engine\"") == 1);
  CHECK(count_of(text, "id=\"figure-0\"") == 1);
}

TEST_CASE("the parts that all reports have stay small") {
  // Styles and scripts, beside 256 colours.
  CHECK(report_frame_bytes(false) - encoded_bytes(768) < 90'000);
}
