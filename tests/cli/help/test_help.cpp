// attnscope help, its topics and manual pages.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "io/files/file_text.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The first words of the lines behind a heading, up to an empty line.
std::vector<std::string> listed(const std::string& text, const std::string& heading) {
  std::vector<std::string> words;
  const size_t at = text.find(heading);
  REQUIRE(at != std::string::npos);
  for (const std::string& line : lines_of(text.substr(text.find('\n', at) + 1))) {
    if (!line.starts_with("  ")) break;
    words.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return words;
}

}  // namespace

TEST_CASE("help lists commands and topics, each of which is a page") {
  const auto list = run_attnscope({"help"});
  CHECK(list.exit_code == 0);
  const auto topics = listed(list.out, "Topics (attnscope help TOPIC):");
  CHECK(topics == std::vector<std::string>{"select", "tokens", "inputs", "memory", "json", "exit"});
  for (const std::string& topic : topics) {
    INFO(topic);
    const auto page = run_attnscope({"help", topic});
    CHECK(page.exit_code == 0);
    const auto lines = lines_of(page.out);
    CHECK(lines.size() > 5);
    CHECK(lines.size() <= 40);
    for (const std::string& line : lines) CHECK(line.size() <= 80);
    CHECK(page.out.back() == '\n');
  }
  for (const std::string& command : listed(list.out, "Subcommands:")) {
    INFO(command);
    CHECK(run_attnscope({"help", command}).out == run_attnscope({command, "-h"}).out);
  }
}

TEST_CASE("help of an unknown word suggests one") {
  const auto wrong = run_attnscope({"help", "tokns"});
  CHECK(wrong.exit_code == 2);
  CHECK(has(wrong.err, "help tokns: no such name, did you mean tokens?"));
  CHECK(run_attnscope({"help", "select", "--man", "x"}).exit_code == 2);
}

TEST_CASE("the options that the topics name are there") {
  const std::string query = run_attnscope({"query", "--help"}).out,
                    exporting = run_attnscope({"export", "--help"}).out;
  for (const char* topic : {"select", "tokens", "inputs", "memory"}) {
    const std::string page = run_attnscope({"help", topic}).out;
    size_t options = 0;
    for (size_t at = 0; (at = page.find(" --", at)) != std::string::npos; ++at) {
      const std::string name = page.substr(
          at + 1, page.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 3) - at - 1);
      INFO(name);
      const bool known = has(query, name + " ") || has(exporting, name + " ") ||
                         has(run_attnscope({"stats", "--help"}).out, name + " ") ||
                         has(run_attnscope({"view", "--help"}).out, name + " ");
      CHECK(known);
      ++options;
    }
    CHECK(options >= 5);
  }
}

TEST_CASE("manual pages are written of all commands, over older ones") {
  const TemporaryFolder folder;
  const std::filesystem::path pages = folder.path() / "deep" / "man1";
  for (int run = 0; run < 2; ++run) {
    CHECK(run_attnscope({"help", "--man", pages.string()}).exit_code == 0);
  }
  const auto commands = listed(run_attnscope({"help"}).out, "Subcommands:");
  const auto files = std::distance(std::filesystem::directory_iterator(pages),
                                   std::filesystem::directory_iterator());
  CHECK(files == std::ssize(commands) + 1);
  const std::string whole = read_file_text(pages / "attnscope.1");
  CHECK(whole.starts_with(".TH ATTNSCOPE 1 "));
  for (const std::string& command : commands) {
    INFO(command);
    CHECK(has(whole, "attnscope\\-" + command + "\\fR(1)"));
    const std::string page = read_file_text(pages / ("attnscope-" + command + ".1"));
    CHECK(has(page, ".SH OPTIONS\n"));
    CHECK(has(page, "\\fB\\-h\\fR"));
    // A line that begins with a dot is a request.
    for (const std::string& line : lines_of(page)) {
      if (!line.starts_with(".")) continue;
      const std::string request = line.substr(0, line.find(' '));
      CHECK((request == ".TH" || request == ".SH" || request == ".SS" || request == ".TP" ||
             request == ".nf" || request == ".fi"));
    }
  }
  const std::string stats = read_file_text(pages / "attnscope-stats.1");
  CHECK(has(stats, "\\fB\\-\\-top\\fR \\fIN\\fR\n"));
  const auto taken = run_attnscope({"help", "--man", "/dev/null"});
  CHECK(taken.exit_code == 1);
}

TEST_CASE("manual pages that cannot be written whole are not written") {
  const TemporaryFolder folder;
  const std::string pages = folder / "man";
  REQUIRE(run_attnscope({"help", "--man", pages}).exit_code == 0);
  const std::string first = pages + "/attnscope.1";
  const std::string whole = read_file_text(first);
  REQUIRE(whole.size() > 6000);
  for (const bool is_there : {true, false}) {
    if (!is_there) std::filesystem::remove(first);
    const auto cut = run_attnscope({"help", "--man", pages}, {.max_file_bytes = 6000});
    INFO(cut.err);
    CHECK(cut.exit_code == 1);
    CHECK(cut.err.starts_with("attnscope: "));
    CHECK(std::filesystem::exists(first) == is_there);
    if (is_there) CHECK(read_file_text(first) == whole);
    for (const auto& file : std::filesystem::directory_iterator(pages)) {
      INFO(file.path());
      CHECK(file.path().extension() == ".1");
    }
  }
}
