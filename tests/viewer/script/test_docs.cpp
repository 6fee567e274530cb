#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "tests/support/project_paths.h"
#include "viewer/commands/commands.h"
#include "viewer/script/script.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("the documentation lists every word of a script and every key") {
  const std::string text = read_bytes(project_folder() + "/docs/window-scripts.md");
  std::string words = "| command | what it does |\n|---|---|\n";
  for (const ScriptWordHelp& word : script_word_help()) {
    // A bar within a table's cell is escaped.
    std::string usage;
    for (const char c : word.usage) usage += c == '|' ? std::string("\\|") : std::string(1, c);
    words += "| `" + usage + "` | " + std::string(word.help) + " |\n";
  }
  INFO(words << "\n" << key_table());
  CHECK(has(text, words));
  CHECK(has(text, key_table()));
}

TEST_CASE("the documentation's example is a script") {
  const std::string text = read_bytes(project_folder() + "/docs/window-scripts.md");
  const size_t begin = text.find("```\n") + 4;
  const Script script = parse_script(text.substr(begin, text.find("```", begin) - begin), "docs");
  CHECK(script.lines.size() == 8);
}
