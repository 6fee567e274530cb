#include "cli/system_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace attnscope {
namespace {

std::optional<int64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::optional<int64_t> meminfo_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

/// What the control group (version 2) of this process leaves.
std::optional<int64_t> cgroup_available() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) != 0) continue;
    const std::string folder = "/sys/fs/cgroup" + line.substr(3);
    const auto limit = read_number(folder + "/memory.max");
    const auto used = read_number(folder + "/memory.current");
    if (limit && used) return std::max<int64_t>(0, *limit - *used);
  }
  return std::nullopt;
}

}  // namespace

int64_t available_memory() {
  constexpr int64_t kUnknown = int64_t{4} << 30;
  const int64_t host = meminfo_available().value_or(kUnknown);
  return std::min(host, cgroup_available().value_or(std::numeric_limits<int64_t>::max()));
}

int64_t peak_resident_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace attnscope
