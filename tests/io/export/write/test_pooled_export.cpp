#include <algorithm>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "io/export/write/pooled_export.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kSide = 8;

using Calls = std::vector<std::shared_ptr<CallEntry>>;

Calls two_calls() {
  FixtureFacts second = joint_facts();
  ++second.layer;
  return {make_call(joint_facts()), make_call(second)};
}

/// Writes every row of blocks with values of its own, in an order that heads may take when workers
/// share them: each head's rows in turn, the heads from the last to the first if `backwards`.
void write_pooled(const std::string& out, bool pyramid, bool backwards) {
  const Calls calls = two_calls();
  ExportSpec spec = make_spec(calls, ExportProduct::pooled, Encoding::f32);
  spec.detail = PoolBlocks{kSide, pyramid};
  const auto sink = make_pooled_export(spec, out, {.force = false, .sync = false});
  std::vector<size_t> order(sink->jobs().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (backwards) std::ranges::reverse(order);
  for (const size_t job : order) {
    const HeadTask& task = sink->jobs()[job].task;
    const int64_t rows = ceil_div(task.num_rows(), kSide);
    const auto cols = static_cast<size_t>(ceil_div(task.keys.size(), kSide));
    for (int64_t row = 0; row < rows; ++row) {
      const auto value = static_cast<float>(1 + job * 100 + static_cast<size_t>(row));
      sink->block_row(static_cast<int64_t>(job), row, std::vector<float>(cols, value),
                      std::vector<double>(cols, value));
    }
  }
  sink->end();
}

}  // namespace

TEST_CASE("the bytes of a pooled export do not depend on the order of its heads") {
  for (const bool pyramid : {false, true}) {
    INFO("pyramid " << pyramid);
    const TemporaryFolder folder;
    write_pooled(folder / "forwards.h5", pyramid, false);
    write_pooled(folder / "backwards.h5", pyramid, true);
    CHECK(read_bytes(folder / "forwards.h5") == read_bytes(folder / "backwards.h5"));
  }
}
