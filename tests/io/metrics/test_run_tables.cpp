// Tables of several runs: what is joined, what a journal keeps, and what damage does.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/files/json_types.h"
#include "io/metrics/merge_metrics.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/metrics/metric_line.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// Heads of a call of one run, whose numbers are 100·layer + 10·head + `shift`.
MetricGroup sample_group(int64_t layer, std::vector<int64_t> heads, double shift) {
  MetricGroup group;
  group.call.name = {10, layer, "cond", "joint", 0, 0, {}};
  group.call.grid = "2x3x4";
  group.call.score = "softmax";
  group.call.head_dim = 16;
  group.batch = {0};
  group.heads = std::move(heads);
  const size_t count = group.heads.size();
  MetricVariable measured{std::string(kMeasured), "measured", true, {}, {}, {}, {}};
  measured.values = std::vector<int32_t>(count, 1);
  MetricVariable entropy{"entropy", "entropy", true, {}, {}, {}, {}};
  MetricVariable words{"class", "class", true, {}, {}, {}, {}};
  MetricVariable blocks{
      "level_8/weights_max", "blocks", true, {"query_block", "key_block"}, {2, 3}, {}, {}};
  MetricVariable masks{
      "mask_recall", "recall", true, {"sparse_mask"}, {2}, {{"sparse_mask", {"a", "b=\"1\""}}}, {}};
  MetricVariable scale{"scale", "scale", false, {}, {}, {}, {}};
  std::vector<double> numbers, recall;
  std::vector<float> weights;
  for (const int64_t head : group.heads) {
    numbers.push_back(100 * static_cast<double>(layer) + 10 * static_cast<double>(head) + shift);
    for (int i = 0; i < 6; ++i) weights.push_back(static_cast<float>(numbers.back()) + 0.1f * i);
    recall.insert(recall.end(), {numbers.back() / 7, kNothing});
  }
  entropy.values = numbers;
  words.values = std::vector<std::string>(count, shift > 0 ? "text, \"x\"" : "global");
  blocks.values = weights;
  masks.values = recall;
  scale.values = std::vector<double>{0.25};
  group.variables = {measured, scale, words, entropy, blocks, masks};
  return group;
}

MetricRun sample_run(const std::string& name) {
  MetricRun run;
  run.id = "id of " + name;
  run.name = name;
  run.prompt = "a \"dog\"";
  run.seed = int64_t{1} << 60;
  run.steps = {{10, 0.5}};
  return run;
}

const OrderedJson kOptions{{"model", "M"}, {"sample", nullptr}, {"backend", "cpu"}};

const std::vector<double>& numbers_of(const MetricGroup& group, const char* name) {
  return std::get<std::vector<double>>(group.find(name)->values);
}

bool same_values(const MetricValues& a, const MetricValues& b) {
  return std::visit(
      [&](const auto& x) {
        const auto& y = std::get<std::decay_t<decltype(x)>>(b);
        return x.size() == y.size() &&
               std::equal(x.begin(), x.end(), y.begin(),
                          [](auto p, auto q) { return p == q || (p != p && q != q); });
      },
      a);
}

void check_same(const RunTable& a, const RunTable& b) {
  CHECK(a.options == b.options);
  REQUIRE(a.runs.size() == b.runs.size());
  for (size_t r = 0; r < a.runs.size(); ++r) CHECK(a.runs[r].json() == b.runs[r].json());
  REQUIRE(a.groups.size() == b.groups.size());
  for (size_t g = 0; g < a.groups.size(); ++g) {
    const MetricGroup &x = a.groups[g], &y = b.groups[g];
    CHECK(group_key(x) == group_key(y));
    CHECK(x.batch == y.batch);
    CHECK(x.heads == y.heads);
    REQUIRE(x.variables.size() == y.variables.size());
    for (const MetricVariable& variable : x.variables) {
      INFO(variable.name);
      const MetricVariable* const other = y.find(variable.name);
      REQUIRE(other != nullptr);
      CHECK(other->axes == variable.axes);
      CHECK(other->shape == variable.shape);
      CHECK(other->labels == variable.labels);
      CHECK(same_values(other->values, variable.values));
    }
  }
}

/// Writes the runs of a table, one after another, each of whose calls is a group of `shift`.
void write_runs(const std::filesystem::path& out, const std::vector<std::string>& names,
                double shift = 0) {
  MemoryBudget budget(int64_t{1} << 30);
  for (const std::string& name : names) {
    MetricJournal journal(out, kOptions, false);
    MetricRun run = sample_run(name);
    run.name = journal.begin(run);
    journal.append(sample_group(3, {0, 1}, shift));
    journal.append(sample_group(4, {0, 1}, shift));
    run.complete = true;
    journal.finish(run, budget);
    shift += 1;
  }
}

}  // namespace

TEST_CASE("a group is the same when it was read back from its line") {
  for (size_t heads = 1; heads < 5; ++heads) {
    std::vector<int64_t> numbers;
    for (size_t h = 0; h < heads; ++h) numbers.push_back(static_cast<int64_t>(2 * h));
    const MetricGroup group = sample_group(3, numbers, 0.1);
    const MetricGroup again = parse_group_line(OrderedJson::parse(group_line(group).dump()));
    check_same({kOptions, {}, {group}}, {kOptions, {}, {again}});
  }
  for (const char* const name : {"call", "batch", "variables"}) {
    OrderedJson line = group_line(sample_group(3, {0}, 0));
    line.erase(name);
    CHECK_THROWS(parse_group_line(line));
  }
  for (const auto& [name, value] : {std::pair<const char*, OrderedJson>{"values", "AAA="},
                                    {"values", "????????????"},
                                    {"shape", {int64_t{1} << 62}},
                                    {"type", "f16"},
                                    {"axes", {"x"}}}) {
    INFO(name << " " << value);
    OrderedJson line = group_line(sample_group(3, {0}, 0));
    line["variables"][3][name] = value;
    CHECK_THROWS(parse_group_line(line));
  }
}

TEST_CASE("runs stand beside each other, and what one lacks is undefined") {
  const MetricGroup both = sample_group(3, {0, 1}, 0), late = sample_group(3, {1, 5}, 0.5);
  MetricGroup sampled = sample_group(4, {2}, 0);
  const MetricSource sources[] = {{"a", {0}, &both}, {"b", {1}, &late}, {"b", {1}, &sampled}};
  const auto groups = join_groups(sources, 2);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].heads == std::vector<int64_t>{0, 1, 5});
  CHECK(same_values(groups[0].find("entropy")->values,
                    std::vector<double>{300, 310, kNothing, kNothing, 310.5, 350.5}));
  CHECK(same_values(groups[0].find(kMeasured)->values, std::vector<int32_t>{1, 1, 0, 0, 1, 1}));
  CHECK(same_values(groups[1].find("entropy")->values, std::vector<double>{kNothing, 420}));
  CHECK(same_values(groups[1].find("scale")->values, std::vector<double>{kNothing, 0.25}));
  CHECK(std::get<std::vector<float>>(groups[0].find("level_8/weights_max")->values)[4 * 6 + 2] ==
        310.7f);

  const MetricSource twice[] = {{"a", {0}, &both}, {"b", {0}, &late}};
  CHECK_THROWS_WITH(
      join_groups(twice, 1),
      "b: step 10 layer 3 cond joint: has a head of a run that another file has, too");
  MetricGroup other = late;
  other.variables[4].shape = {3, 2};
  const MetricSource unlike[] = {{"a", {0}, &both}, {"b", {1}, &other}};
  CHECK_THROWS_WITH(join_groups(unlike, 2),
                    Catch::Contains("b: step 10 layer 3 cond joint: level_8/weights_max is [3, 2] "
                                    "(expected [2, 3]"));
}

TEST_CASE("a table is the same when it was read back from its file") {
  const TemporaryFolder folder;
  const std::string out = folder / "m.h5";
  write_runs(out, {"a", "b", "a"});
  const RunTable table = read_metric_file(out, MetricPart::everything);
  REQUIRE(table.runs.size() == 3);
  CHECK(table.runs[2].name == "a (2)");
  CHECK(table.runs[0].seed == int64_t{1} << 60);
  CHECK(numbers_of(table.groups[1], "entropy") ==
        std::vector<double>{400, 410, 401, 411, 402, 412});
  write_metric_file(table, folder / "again.h5");
  check_same(table, read_metric_file(folder / "again.h5", MetricPart::everything));
  CHECK(read_bytes(folder / "again.h5") == read_bytes(out));
  CHECK(read_metric_file(out, MetricPart::shapes).groups[0].find("entropy")->shape.empty());
  CHECK(read_metric_file(out, MetricPart::runs).groups.empty());
}

TEST_CASE("what a run refused has a reason") {
  OrderedJson json = sample_run("a").json();
  CHECK_FALSE(json.contains("refused"));
  for (const OrderedJson& wrong : {OrderedJson(1), OrderedJson{{"forward", 1}},
                                   OrderedJson::array({{{"forward", 1}, {"why", 2}}})}) {
    json["refused"] = wrong;
    CHECK_THROWS_AS(MetricRun::parse(json), OrderedJson::exception);
  }
}

TEST_CASE("a journal that was cut at any byte has what was written before") {
  const TemporaryFolder folder;
  const std::string out = folder / "m.h5", part = out + ".part";
  {
    MetricJournal journal(out, kOptions, false);
    journal.begin(sample_run("a"));
    for (int64_t layer = 0; layer < 3; ++layer) journal.append(sample_group(layer, {0, 1}, 0));
  }
  const std::string whole = read_bytes(part);
  MemoryBudget budget(int64_t{1} << 30);
  REQUIRE(read_metric_journal(part).groups.size() == 3);
  for (size_t size = 0; size < whole.size(); size += 37) {
    INFO(size << " of " << whole.size() << " bytes");
    write_file(part, whole.substr(0, size));
    const auto lines = static_cast<size_t>(
        std::count(whole.begin(), whole.begin() + static_cast<int64_t>(size), '\n'));
    CHECK(read_metric_journal(part).groups.size() == (lines > 2 ? lines - 2 : 0));
    MetricJournal journal(out, kOptions, false);
    MetricRun run = sample_run("b");
    journal.begin(run);
    journal.append(sample_group(7, {0, 1}, 0));
    journal.finish(run, budget);
    const RunTable table = read_metric_file(out, MetricPart::runs);
    CHECK(table.runs.size() == (lines > 2 ? 2 : 1));
    CHECK_FALSE(std::filesystem::exists(part));
    std::filesystem::remove(out);
  }
}

TEST_CASE("a journal with a number that changed is refused, and names the line") {
  const TemporaryFolder folder;
  const std::string out = folder / "m.h5", part = out + ".part";
  {
    MetricJournal journal(out, kOptions, false);
    journal.begin(sample_run("a"));
    for (int64_t layer = 0; layer < 3; ++layer) journal.append(sample_group(layer, {0, 1}, 0));
  }
  std::string bytes = read_bytes(part);
  // A number of the fourth line, layer 1's.
  size_t at = 0;
  for (int line = 1; line < 4; ++line) at = bytes.find('\n', at) + 1;
  const size_t digit = bytes.find("\"values\":\"", at) + 10;
  bytes[digit] = bytes[digit] == 'A' ? 'B' : 'A';
  write_file(part, bytes);
  const std::string says = part + ": line 4: is damaged: its checksum is wrong";
  CHECK_THROWS_WITH(read_metric_journal(part), says);
  CHECK_THROWS_WITH(MetricJournal(out, kOptions, false), says + " (force=True gives it up)");
  CHECK(read_bytes(part) == bytes);
  CHECK(MetricJournal(out, kOptions, true).runs().empty());
}

TEST_CASE("a journal of an older version is read, and not gone on with") {
  const TemporaryFolder folder;
  const std::string out = folder / "m.h5", part = out + ".part";
  {
    MetricJournal journal(out, kOptions, false);
    journal.begin(sample_run("a"));
    journal.append(sample_group(1, {0, 1}, 0));
  }
  std::string older;
  SummedLineReader lines(part, read_bytes(part));
  while (const auto text = lines.next("")) older += *text + "\n";
  older.replace(older.find("part/2"), 6, "part/1");
  write_file(part, older);
  CHECK(numbers_of(read_metric_journal(part).groups.at(0), "entropy") ==
        std::vector<double>{100, 110});
  CHECK_THROWS_WITH(MetricJournal(out, kOptions, false),
                    part +
                        ": was left by an older version of attnscope (attnscope merge makes a "
                        "table of it, force=True gives it up)");
  CHECK(read_bytes(part) == older);
}

TEST_CASE("what was left when a table had just got its name is not counted twice") {
  const TemporaryFolder folder;
  const std::string out = folder / "m.h5", part = out + ".part";
  MemoryBudget budget(int64_t{1} << 30);
  std::string left;
  {
    MetricJournal journal(out, kOptions, false);
    MetricRun run = sample_run("a");
    journal.begin(run);
    journal.append(sample_group(1, {0, 1}, 0));
    left = read_bytes(part);
    journal.finish(run, budget);
  }
  write_file(part, left);
  CHECK(MetricJournal(out, kOptions, false).runs().size() == 1);
  CHECK_FALSE(std::filesystem::exists(part));
  // A run of another name is one of its own.
  write_runs(out, {"a"});
  CHECK(read_metric_file(out, MetricPart::runs).runs.size() == 2);
}

TEST_CASE("a table with a byte that changed is refused") {
  const TemporaryFolder folder;
  const std::string out = folder / "m.h5";
  write_runs(out, {"a"});
  const std::string whole = read_bytes(out);
  for (size_t at = 0; at < whole.size(); at += whole.size() / 60) {
    INFO("byte " << at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    write_file(out, damaged);
    CHECK_THROWS_AS(read_metric_file(out, MetricPart::everything), Error);
  }
}

TEST_CASE("tables of ranks are one, and what is missing is named") {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> parts{folder / "0.h5", folder / "1.h5"};
  MemoryBudget budget(int64_t{1} << 30);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    MetricJournal journal(parts[rank], kOptions, false);
    MetricRun run = sample_run("a");
    run.rank = static_cast<int64_t>(rank);
    run.ranks = 2;
    run.refused.push_back({{"forward", run.rank}, {"why", "a \"word\""}});
    journal.begin(run);
    journal.append(sample_group(3, {2 * run.rank, 2 * run.rank + 1}, 0));
    run.complete = true;
    journal.finish(run, budget);
  }
  const auto merge = [&](const std::vector<std::filesystem::path>& given) {
    return merge_metrics(given, folder / "whole.h5", {}, {.force = true}, budget);
  };
  CHECK(merge({parts[1], parts[0]}).runs == 1);
  const RunTable whole = read_metric_file(folder / "whole.h5", MetricPart::everything);
  CHECK(whole.runs[0].complete);
  REQUIRE(whole.runs[0].refused.size() == 2);
  CHECK(whole.runs[0].refused[0] == OrderedJson{{"forward", 1}, {"why", "a \"word\""}});
  CHECK(whole.runs[0].refused[1].at("forward") == 0);
  CHECK(numbers_of(whole.groups[0], "entropy") == std::vector<double>{300, 310, 320, 330});
  CHECK_THROWS_WITH(merge({parts[0]}), "merge: the file of rank 1 of 2 is missing");
  CHECK_THROWS_WITH(merge({parts[0], parts[1], parts[0]}),
                    Catch::StartsWith("merge: run a is there 2 times ("));
  // A joined table is whole, whatever is merged with it.
  write_runs(folder / "other.h5", {"b"});
  const auto both =
      merge_metrics({folder / "whole.h5", folder / "other.h5"}, folder / "both.h5", {}, {}, budget);
  CHECK(both.runs == 2);
  CHECK_THROWS_WITH(
      merge_metrics({folder / "whole.h5", parts[1]}, folder / "no.h5", {}, {}, budget),
      Catch::Contains("run a is there 2 times"));
  MemoryBudget small(1000);
  CHECK_THROWS_AS(merge_metrics(parts, folder / "small.h5", {}, {}, small), Error);
}
