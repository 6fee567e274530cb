#include <vector>

#include "kernels/common/host_cores.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A folder like /sys/devices/system/cpu, with a line of siblings for each processor; an empty line
/// stands for one that the system says nothing about.
void write_siblings(const TemporaryFolder& folder, const std::vector<std::string>& siblings) {
  for (size_t i = 0; i < siblings.size(); ++i) {
    const std::filesystem::path topology = folder.path() / ("cpu" + std::to_string(i)) / "topology";
    std::filesystem::create_directories(topology);
    if (siblings[i].empty()) continue;
    std::ofstream(topology / "thread_siblings_list") << siblings[i] << "\n";
  }
}

}  // namespace

TEST_CASE("hyper-threads of a core are counted once") {
  const TemporaryFolder folder;
  write_siblings(folder, {"0,4", "1,5", "2-3", "2-3", "0,4", "1,5", "", ""});
  const auto count = [&](const std::vector<int>& processors) {
    return count_cores(processors, folder.path());
  };
  CHECK(count({0, 1, 2, 3, 4, 5}) == 3);
  // Of a core that is shared with other processes, what is ours is a core.
  CHECK(count({0, 1}) == 2);
  CHECK(count({4, 0}) == 1);
  CHECK(count({3}) == 1);
  CHECK(count({6, 7}) == 2);
  CHECK(count({0, 4, 6, 99}) == 3);
  CHECK(count({}) == 0);
}

TEST_CASE("there is at least one core to use") { CHECK(usable_cores() >= 1); }
