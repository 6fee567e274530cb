#include <utility>
#include <vector>

#include "core/heads/class_table.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

using Heads = std::vector<NamedClass>;

NamedClass named(int64_t step, const std::string& branch, int64_t head, const std::string& name) {
  return {{step, 2, branch, "joint", 0, head, {}}, name};
}

}  // namespace

TEST_CASE("heads stand in rows and their steps in columns, whatever their order") {
  const ClassTable table =
      class_table(Heads{named(9, "cond", 0, "sink"), named(0, "uncond", 0, "text"),
                        named(0, "cond", 0, "text"), named(0, "cond", 1, "local")});
  REQUIRE(table.columns.size() == 3);
  CHECK(table.columns[1].step == 9);
  CHECK(table.columns[2].branch == "uncond");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0][1]->head_class == "sink");
  CHECK_FALSE(table.rows[1][1].has_value());
  CHECK(head_of_row(table.rows[1]).head == 1);
  CHECK(is_changing(table.rows[0]));
  CHECK_FALSE(is_changing(table.rows[1]));
  CHECK(table.compares());
  const std::vector<ClassChange> changes = class_changes(table);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].head.step == 9);
  CHECK(changes[0].before == "text");
}

TEST_CASE("batch items that are branches of one call share a row") {
  NamedClass other = named(0, "uncond", 0, "text");
  other.head.batch = 1;
  const ClassTable table = class_table(Heads{named(0, "cond", 0, "sink"), other});
  CHECK(table.rows.size() == 1);
  CHECK(table.compares());
}

TEST_CASE("a branch's batch item may be another at each step") {
  // Step 0 has both branches in one call, step 1 has cond alone.
  NamedClass batched = named(0, "cond", 0, "text");
  batched.head.batch = 1;
  const ClassTable table = class_table(
      Heads{named(0, "uncond", 0, "text"), std::move(batched), named(1, "cond", 0, "sink")});
  REQUIRE(table.rows.size() == 1);
  REQUIRE(class_changes(table).size() == 1);
  CHECK(class_changes(table)[0].head.batch == 0);
  // Of two items of a branch that were measured at step 0, step 1 has the second.
  Heads heads;
  for (const int64_t item : {2, 3}) {
    heads.push_back(named(0, "cond", 0, item == 2 ? "text" : "sink"));
    heads.back().head.batch = item;
  }
  heads.push_back(named(1, "cond", 0, "sink"));
  heads.back().head.batch = 3;
  const ClassTable pairs = class_table(std::move(heads));
  REQUIRE(pairs.rows.size() == 2);
  CHECK_FALSE(pairs.rows[0][1].has_value());
  CHECK(class_changes(pairs).empty());
}

TEST_CASE("heads of one step have nothing to compare") {
  CHECK_FALSE(class_table(Heads{}).compares());
  CHECK_FALSE(
      class_table(Heads{named(0, "cond", 0, "text"), named(0, "cond", 1, "sink")}).compares());
  // Two columns, of different heads.
  CHECK_FALSE(
      class_table(Heads{named(0, "cond", 0, "text"), named(1, "cond", 1, "sink")}).compares());
}

TEST_CASE("forwards of which nobody recorded the step are columns, and no steps") {
  std::vector<NamedClass> heads;
  for (const int64_t forward : {0, 1}) {
    NamedClass each = named(0, "cond", 0, forward == 0 ? "text" : "sink");
    each.head.place.unrecorded.step = true;
    each.head.place.forward.forward = forward;
    heads.push_back(each);
  }
  const ClassTable table = class_table(std::move(heads));
  CHECK(table.rows.size() == 1);
  CHECK(table.columns.size() == 2);
  CHECK(is_changing(table.rows[0]));
  CHECK(class_changes(table).empty());
}
