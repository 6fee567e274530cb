#include <algorithm>
#include <sstream>
#include <vector>

#include "cli/common/profile_table.h"
#include "tests/support/catch.h"

namespace attnscope {
namespace {

/// The cells of a line: they are at least two spaces apart.
std::vector<std::string> cells_of(std::string line) {
  std::vector<std::string> cells;
  while (!line.empty()) {
    const size_t gap = std::min(line.find("  "), line.size());
    cells.push_back(line.substr(0, gap));
    line.erase(0, std::min(line.find_first_not_of(' ', gap), line.size()));
  }
  return cells;
}

std::vector<std::vector<std::string>> read(const std::string& table) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream text(table);
  for (std::string line; std::getline(text, line);) lines.push_back(cells_of(line));
  return lines;
}

}  // namespace

TEST_CASE("a table of launches has rates, waves and a remark where a device is not filled") {
  LaunchProfile sums;
  sums.device = "0 A GPU";
  sums.kernel = "row sums";
  sums.product = "mma";
  sums.grid = {12, 11, 1};
  sums.threads = 128;
  sums.registers = 168;
  sums.shared_bytes = 66560;
  sums.resident_blocks = 2;
  sums.occupancy = 0.125;
  sums.multiprocessors = 132;
  sums.splits = 11;
  sums.launches = 4;
  sums.seconds = 0.002;
  sums.flops = 1e12;
  sums.bytes = 3e9;
  LaunchProfile few = sums;
  few.grid = {12, 1, 1};
  LaunchProfile copy;
  copy.device = "1 A GPU";
  copy.kernel = "copy to the host";
  copy.launches = 1;
  copy.seconds = 0.5;
  copy.bytes = 1e9;
  const std::vector<LaunchProfile> profiles{sums, few, copy};
  const auto lines = read(profile_table(profiles));
  REQUIRE(lines.size() == 4);
  using Line = std::vector<std::string>;
  CHECK(lines[0] == Line{"device", "kernel", "product", "launches", "grid", "threads", "registers",
                         "shared", "blocks/SM", "warps %", "waves", "splits", "ms", "us/launch",
                         "TFLOP/s", "GB/s", "remark"});
  CHECK(lines[1] == Line{"0 A GPU", "row sums", "mma", "4", "12x11x1", "128", "168", "66560", "2",
                         "12", "0.50", "11", "2.000", "500.00", "500", "1500", "-"});
  REQUIRE(lines[2].size() == 17);
  CHECK(lines[2][10] == "0.05");
  CHECK(lines[2][16] == "idle: 120 of 132 SMs");
  CHECK(lines[3] == Line{"1 A GPU", "copy to the host", "-", "1", "-", "-", "-", "-", "-", "-", "-",
                         "-", "500.000", "500000.00", "-", "2", "-"});
}

TEST_CASE("a table of nothing is its headings") { CHECK(read(profile_table({})).size() == 1); }

}  // namespace attnscope
