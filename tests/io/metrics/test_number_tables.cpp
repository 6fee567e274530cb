// Tables of numbers of heads: what is read of each kind of file, and what is made of them.
#include <cmath>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "io/metrics/compare_tables.h"
#include "io/metrics/metric_csv.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/metrics/read_table.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr double kUndefinedNumber = std::numeric_limits<double>::quiet_NaN();

/// Runs "a", "b" and "c" of one call with two heads. The second head was not measured in "c".
RunTable three_runs() {
  RunTable table;
  table.options = {{"model", "M"}, {"backend", "cpu"}};
  MetricGroup group;
  group.call.name = {10, kNoLayer, "cond", "joint", 0, 0, {"refiner.1", "attn", kNoChunk}};
  group.call.grid = "2x3x4";
  group.call.score = "softmax";
  group.call.head_dim = 16;
  group.batch = {0};
  group.heads = {2, 5};
  for (const char* const name : {"a", "b", "c"}) {
    MetricRun run;
    run.id = run.name = name;
    run.prompt = "a, \"dog\"";
    table.runs.push_back(run);
  }
  const auto add = [&](const char* name, MetricValues values) {
    group.variables.push_back({name, name, true, {}, {}, {}, std::move(values)});
  };
  add("measured", std::vector<int32_t>{1, 1, 1, 1, 1, 0});
  add("class", std::vector<std::string>{"text", "local", "sink", "sink", "text", ""});
  add("entropy", std::vector<double>{1, 4, 2, 5, 6, kUndefinedNumber});
  add("entropy_stderr", std::vector<double>{9, 9, 9, 9, 9, 9});
  add("masked_rows", std::vector<double>{7, 7, 7, 7, 7, 7});
  MetricVariable masks{
      "mask_recall", "recall", true, {"sparse_mask"}, {2}, {{"sparse_mask", {"m", "n,1"}}}, {}};
  masks.values = std::vector<double>{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1, 0, 0};
  group.variables.push_back(masks);
  table.groups = {group};
  return table;
}

NumberTable read(const std::filesystem::path& path) {
  MemoryBudget budget(int64_t{1} << 28);
  MemoryReservation held;
  NumberTable table = read_number_table(path, budget, held);
  CHECK(budget.used() > 0);
  return table;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void check_three_runs(const NumberTable& table) {
  CHECK(table.runs == std::vector<std::string>{"a", "b", "c"});
  CHECK(table.metrics == std::vector<std::string>{"entropy", "mask_recall(m)", "mask_recall(n,1)"});
  REQUIRE(table.lines.size() == 5);
  const NumberTable::Line& line = table.lines[3];
  CHECK(table.runs[line.run] == "b");
  CHECK(line.head ==
        HeadName{10, kNoLayer, "cond", "joint", 0, 5, {"refiner.1", "attn", kNoChunk}});
  CHECK(line.head_class == "sink");
  CHECK(line.values == std::vector<double>{5, .7, .8});
}

}  // namespace

TEST_CASE("a table of runs is the same of .h5 and .csv") {
  const TemporaryFolder folder;
  write_metric_file(three_runs(), folder.path() / "t.h5");
  write_metric_csv(three_runs(), folder.path() / "t.csv");
  for (const char* const name : {"t.h5", "t.csv"}) {
    INFO(name);
    CHECK(is_number_table(folder.path() / name));
    check_three_runs(read(folder.path() / name));
  }
}

TEST_CASE("numbers of a capture's heads are read from files whose variables name no axes") {
  const std::filesystem::path folder =
      std::filesystem::path(project_folder()) / "tests/data/tables";
  const NumberTable found = read(folder / "stats_without_axes.h5");
  const NumberTable expected = read(folder / "stats_without_axes.csv");
  CHECK(found.metrics == expected.metrics);
  CHECK(found.metrics.size() > 15);
  CHECK(found.runs == std::vector<std::string>{""});
  REQUIRE(found.lines.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(found.lines[i].head == expected.lines[i].head);
    CHECK(found.lines[i].head_class == expected.lines[i].head_class);
    for (size_t m = 0; m < found.metrics.size(); ++m) {
      INFO(found.metrics[m]);
      const double value = found.lines[i].values[m], other = expected.lines[i].values[m];
      CHECK((value == other || (std::isnan(value) && std::isnan(other))));
    }
  }
  const RunTable table = read_stats_file(folder / "stats_without_axes.h5", MetricPart::everything);
  CHECK(table.runs.empty());
  CHECK(table.capture == "tiny");
  REQUIRE(table.groups.size() == 1);
  CHECK(table.groups[0].find("frame_frame") == nullptr);  // nothing tells its axes
  CHECK_THROWS_AS(read_metric_file(folder / "stats_without_axes.h5", MetricPart::runs), Error);
}

TEST_CASE("what nobody recorded of a head is not recorded in its tables, of .h5 and .csv") {
  const TemporaryFolder folder;
  RunTable runs = three_runs();
  for (MetricGroup& group : runs.groups) {
    group.call.name.step = 0;
    group.call.name.branch = "all";
    group.call.name.place.unrecorded = {true, false, true};
  }
  write_metric_file(runs, folder.path() / "t.h5");
  write_metric_csv(runs, folder.path() / "t.csv");
  for (const char* const name : {"t.h5", "t.csv"}) {
    INFO(name);
    for (const NumberTable::Line& line : read(folder.path() / name).lines) {
      CHECK(line.head.place.unrecorded.text() == "step branch");
      CHECK(line.head.step == 0);
      CHECK(line.head.layer == kNoLayer);
      CHECK(line.head.branch == "all");
    }
  }
  // A call that goes by the number of its forward.
  runs.groups.front().call.name.place.forward = {7, 1, 0};
  write_metric_file(runs, folder.path() / "f.h5");
  write_metric_csv(runs, folder.path() / "f.csv");
  for (const char* const name : {"f.h5", "f.csv"}) {
    INFO(name);
    const NumberTable table = read(folder.path() / name);
    CHECK(table.metrics ==
          std::vector<std::string>{"entropy", "mask_recall(m)", "mask_recall(n,1)"});
    for (const NumberTable::Line& line : table.lines) {
      CHECK(line.head.place.forward.forward == 7);
      CHECK(line.head.place.forward.of_step == 1);
    }
  }
  runs.groups.front().call.name.place.forward = {};
  // Of older versions, which said 0 and "all".
  runs.groups.front().call.name.place.unrecorded = {};
  write_metric_csv(runs, folder.path() / "old.csv");
  CHECK(read(folder.path() / "old.csv").lines[0].head ==
        read(folder.path() / "t.csv").lines[0].head);
}

TEST_CASE("a run that was cut off is a table of what it measured") {
  const TemporaryFolder folder;
  MetricJournal journal(folder.path() / "t.h5", {{"model", "M"}}, false);
  MetricRun run;
  run.name = run.id = "a";
  journal.begin(run);
  RunTable one = three_runs();
  MetricGroup& group = one.groups.front();
  group.variables.resize(3);
  group.variables[0].values = std::vector<int32_t>{1, 1};
  group.variables[1].values = std::vector<std::string>{"text", "local"};
  group.variables[2].values = std::vector<double>{1, 4};
  journal.append(group);
  const NumberTable table = read(folder.path() / "t.h5.part");
  REQUIRE(table.lines.size() == 2);
  CHECK(table.lines[1].values == std::vector<double>{4});
  CHECK(table.lines[1].head_class == "local");
}

TEST_CASE("runs of a table are summed up") {
  const TemporaryFolder folder;
  write_metric_file(three_runs(), folder.path() / "t.h5");
  const NumberTable table = read(folder.path() / "t.h5");
  const std::vector<HeadName> heads = heads_of_table(table);
  REQUIRE(heads.size() == 2);
  const TableComparison found = summarise_table(table, heads);
  CHECK_FALSE(found.has_b);
  REQUIRE(found.heads.size() == 2);
  const RunSpread& entropy = found.heads[0].metrics[0].a;
  CHECK(entropy.runs == 3);
  CHECK(entropy.mean == 3);
  CHECK(entropy.deviation == Approx(std::sqrt(7.0)).epsilon(1e-14));
  CHECK(entropy.interval == Approx(4.30265272991 * std::sqrt(7.0) / std::sqrt(3.0)).epsilon(1e-10));
  CHECK(found.heads[0].a.runs == 3);
  CHECK(found.heads[0].a.head_class == "text");
  CHECK(found.heads[0].a.class_share == Approx(2.0 / 3));
  // Of two classes that are as common the first by name.
  CHECK(found.heads[1].metrics[0].a.runs == 2);
  CHECK(found.heads[1].a.head_class == "local");
  CHECK(found.heads[1].a.class_share == 0.5);
}

TEST_CASE("sides of one table are compared run by run, others by their means") {
  const TemporaryFolder folder;
  RunTable other = three_runs();
  other.groups.front().variables.push_back(
      {"extra", "extra", true, {}, {}, {}, std::vector<double>(6, 0)});
  write_metric_csv(three_runs(), folder.path() / "a.csv");
  write_metric_csv(other, folder.path() / "b.csv");
  const NumberTable a = read(folder.path() / "a.csv"), b = read(folder.path() / "b.csv");
  const std::vector<HeadName> heads = heads_of_table(a);
  const std::vector<std::pair<HeadName, HeadName>> pairs{{heads[0], heads[1]}};
  const TableComparison paired = compare_tables(a, a, pairs);
  CHECK(paired.is_paired);
  CHECK(paired.left_out.empty());
  // 1, 2, 6 against 4, 5 and none: differences -3 and -3.
  const MetricChange& each = paired.heads[0].metrics[0];
  CHECK(each.a.mean == 3);
  CHECK(each.b.mean == 4.5);
  CHECK(each.change.runs == 2);
  CHECK(each.change.mean == -3);
  CHECK(each.change.interval == 0);
  CHECK(each.is_clear());
  const TableComparison apart = compare_tables(a, b, pairs);
  CHECK_FALSE(apart.is_paired);
  CHECK(apart.left_out == std::vector<std::string>{"extra"});
  const MetricChange& means = apart.heads[0].metrics[0];
  CHECK(means.change.mean == -1.5);
  CHECK(means.change.interval == spread_of_difference(means.a, means.b).interval);
  CHECK(means.change.interval > 1.5);
  CHECK_FALSE(means.is_clear());
}

TEST_CASE("a class that is another than at the step before it is a change") {
  NumberTable table;
  table.runs = {"x"};
  const auto add = [&](int64_t step, int64_t head, const char* name) {
    table.lines.push_back({0, {step, 1, "cond", "joint", 0, head, {}}, name, {}});
  };
  // Head 0 changes twice, head 1 never; steps come in no order.
  add(9, 0, "sink");
  add(0, 0, "text");
  add(5, 0, "local");
  for (const int64_t step : {0, 5, 9}) add(step, 1, "global");
  add(5, 2, "text");
  const auto changes = class_changes(class_table(summarise_table(table, heads_of_table(table))));
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].head == HeadName{5, 1, "cond", "joint", 0, 0, {}});
  CHECK(changes[0].before_step == 0);
  CHECK(changes[0].before == "text");
  CHECK(changes[0].after == "local");
  CHECK(changes[1].head.step == 9);
  CHECK(changes[1].before == "local");
}

TEST_CASE("what is no table is refused with its place") {
  const TemporaryFolder folder;
  const auto refused = [&](const char* name, const std::string& text, const std::string& what) {
    INFO(name << ": " << text);
    write_file(folder.path() / name, text);
    CHECK_THROWS_WITH(read(folder.path() / name), Catch::Contains(name) && Catch::Contains(what));
  };
  const std::string names = "step,layer,branch,kind,batch,head,entropy\n";
  refused("a.csv", "step,layer\n", "has no column branch");
  refused("b.csv", names + "x,0,cond,joint,0,0,1\n",
          "line 2: column step: expected a whole number");
  refused("c.csv", names + "1,0,cond,joint,0,0,1e\n", "line 2: column entropy: expected a number");
  refused("d.csv", names + "1,0,c,j,0,0,1\n1,0,c,j,0,0,2\n", "is there twice");
  refused("e.csv", names, "has no heads");
  refused("a.json", "{", "a.json");
  refused("b.json", R"({"format": "attnscope-mask/1"})", "is no table of heads");
  refused("c.json", R"({"format": "attnscope-stats/1", "heads": [{"step": 1}]})", "heads[0]");
}
