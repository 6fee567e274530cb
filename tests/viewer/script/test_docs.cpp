#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "tests/support/project_paths.h"
#include "viewer/commands/commands.h"
#include "viewer/script/script.h"
#include "viewer/settings/settings.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string docs_file() { return project_folder() + "/docs/window-scripts.md"; }

/// A bar within a table's cell is escaped.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return "`" + escaped + "`";
}

std::string word_table() {
  std::string table = "| command | what it does |\n|---|---|\n";
  for (const ScriptWordHelp& word : script_word_help()) {
    table += "| " + cell(word.usage) + " | " + std::string(word.help) + " |\n";
  }
  return table;
}

/// The names by which `print` tells settings, where they are not the command's.
std::string name_table() {
  std::string table = "| name | of |\n|---|---|\n";
  for (const Setting& setting : settings()) {
    if (setting.name.empty() || setting.name == setting.word()) continue;
    table += "| " + cell(setting.name) + " | " + cell(setting.usage) + " |\n";
  }
  return table;
}

/// The documentation with each table that begins as `table` does replaced by it.
std::string with_table(const std::string& text, const std::string& table) {
  const size_t head = table.find('\n');
  const size_t begin = text.find(table.substr(0, head + 1));
  REQUIRE(begin != std::string::npos);
  const size_t end = text.find("\n\n", begin);
  return text.substr(0, begin) + table + (end == std::string::npos ? "" : text.substr(end + 1));
}

std::string generated(const std::string& text) {
  return with_table(with_table(with_table(text, word_table()), name_table()), key_table());
}

}  // namespace

TEST_CASE("the documentation lists every word of a script, every setting and every key") {
  const std::string text = read_bytes(docs_file());
  INFO("test_viewer_script '[write-docs]' writes the tables anew");
  CHECK(text == generated(text));
}

TEST_CASE("the documentation's tables are written", "[.][write-docs]") {
  const std::string text = generated(read_bytes(docs_file()));
  write_bytes(docs_file(), text);
}

TEST_CASE("the documentation's example is a script") {
  const std::string text = read_bytes(project_folder() + "/docs/window-scripts.md");
  const size_t begin = text.find("```\n") + 4;
  const Script script = parse_script(text.substr(begin, text.find("```", begin) - begin), "docs");
  CHECK(script.lines.size() == 8);
}
