// A line a head: query of several heads without -o.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/cli/query/query_reference.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The words of each line behind the first, which says what was asked for.
std::vector<std::vector<std::string>> table_of(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::vector<std::string>& cells = lines.emplace_back();
    for (std::string word; words >> word;) cells.push_back(word);
  }
  return lines;
}

double number_in(const std::vector<std::vector<std::string>>& table, size_t line,
                 const std::string& heading) {
  const auto place = std::find(table[0].begin(), table[0].end(), heading);
  REQUIRE(place != table[0].end());
  return std::stod(table[line].at(static_cast<size_t>(place - table[0].begin())));
}

/// 4 text tokens, then 3 x 4 x 5 of video; four heads.
class QueryTable {
 public:
  QueryTable() : call_(joint_call("start", 5)) { call_.write(path()); }
  std::string path() const { return folder_ / "call.safetensors"; }
  std::string file(const std::string& name) const { return folder_ / name; }
  ProgramResult run(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"query", path(), "--query", "1,2,3", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_attnscope(words);
  }
  std::vector<double> row(int64_t head) const {
    return call_.row(0, head, 4 + (1 * 4 + 2) * 5 + 3);
  }

 private:
  TemporaryFolder folder_;
  ReferenceCall call_;
};

}  // namespace

TEST_CASE("several heads are a line each, as in double, in the order of --sort") {
  const QueryTable query;
  const auto result = query.run({"--sort", "weight"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto table = table_of(result.out);
  INFO(result.out);
  REQUIRE(table.size() == 5);
  double before = 2;
  for (size_t line = 1; line < table.size(); ++line) {
    const auto head = static_cast<int64_t>(number_in(table, line, "head"));
    const std::vector<double> row = query.row(head);
    const auto best = std::max_element(row.begin(), row.end());
    double text = 0;
    for (size_t i = 0; i < 4; ++i) text += row[i];
    const double weight = number_in(table, line, "weight");
    CHECK(std::abs(weight - *best) <= 1e-3 * *best);
    CHECK(std::abs(number_in(table, line, "text_mass") - text) <= 1e-3 * text);
    CHECK(std::abs(number_in(table, line, "video_mass") - (1 - text)) <= 1e-3);
    const auto frame = static_cast<size_t>(number_in(table, line, "frame"));
    std::vector<double> frames(3, 0.0);
    for (size_t i = 4; i < row.size(); ++i) frames[(i - 4) / 20] += row[i];
    CHECK(frames[frame] == *std::max_element(frames.begin(), frames.end()));
    CHECK(std::abs(number_in(table, line, "frame_mass") - frames[frame]) <= 1e-3);
    CHECK(weight <= before);
    before = weight;
  }
  // JSON has that order, too, and the opposite one.
  const auto heads_by = [&](const std::string& sort) {
    std::vector<int64_t> heads;
    const Json found = Json::parse(query.run({"--sort", sort, "--json"}).out);
    for (const Json& head : found["heads"]) heads.push_back(head["head"]);
    return heads;
  };
  const std::vector<int64_t> heads = heads_by("weight");
  std::vector<int64_t> reversed = heads_by("weight:asc");
  std::reverse(reversed.begin(), reversed.end());
  CHECK(heads == reversed);
  for (size_t line = 1; line < table.size(); ++line) {
    CHECK(static_cast<double>(heads[line - 1]) == number_in(table, line, "head"));
  }
}

TEST_CASE("what is asked for of several heads stands below each line") {
  const QueryTable query;
  const auto top = table_of(query.run({"--top", "3"}).out);
  REQUIRE(top.size() == 1 + 4 * (1 + 3));
  CHECK(top[1].size() == top[0].size());
  CHECK(top[2].size() == 2);
  CHECK(std::stod(top[2][0]) >= std::stod(top[3][0]));
  const auto track = table_of(query.run({"--track"}).out);
  // A line a head, a heading and three frames.
  REQUIRE(track.size() == 1 + 4 * (1 + 1 + 3));
  CHECK(track[2][0] == "frame");
  CHECK(table_of(query.run({"--top", "0"}).out)[0].back() != "key");
}

TEST_CASE("of one head all of it is printed") {
  const QueryTable query;
  const auto one = query.run({"--heads", "2"});
  CHECK(contains(one.out, "head 2\n  text "));
  CHECK(contains(one.out, "frames 0-2"));
  CHECK(table_of(one.out).size() == 3 + 5);
  // A mean is one volume, several means are a line each.
  CHECK(contains(query.run({"--mean", "heads"}).out, "mean of 4\n  text "));
}

TEST_CASE("query --sort is refused where nothing is printed in that order") {
  const QueryTable query;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    const auto result = query.run(more);
    CHECK(result.exit_code == 2);
    INFO(result.err);
    CHECK(contains(result.err, words));
  };
  refused({"--sort", "wieght"}, "did you mean weight?");
  refused({"--sort", "weight", "--top", "0"}, "--top 0 lists no weight");
  refused({"--sort", "weight", "-o", query.file("v.npy")}, "--sort: is of the summary");
  refused({"--sort", "weight", "--shard", "0/2"}, "--sort is of all heads");
  refused({"--sort", "lse", "--index", "1"}, "--sort lse: means over 2 tokens have no row sum");
}
