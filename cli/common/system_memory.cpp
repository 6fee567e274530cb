#include "cli/common/system_memory.h"

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

/// A line "KEY NUMBER" of a file; 0 where there is none.
int64_t read_entry(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string key;
  int64_t value = 0;
  while (file >> key >> value) {
    if (key == wanted) return value;
  }
  return 0;
}

/// Bytes left in one control group. Its use counts cached files, which the kernel gives back.
std::optional<int64_t> group_available(const std::string& folder) {
  const auto limit = read_number(folder + "/memory.max");
  const auto used = read_number(folder + "/memory.current");
  if (!limit || !used) return std::nullopt;
  const int64_t cached = read_entry(folder + "/memory.stat", "inactive_file");
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - cached));
}

}  // namespace

std::optional<int64_t> control_group_memory(const std::string& root, const std::string& group) {
  std::optional<int64_t> least;
  std::string path = group == "/" ? "" : group;
  while (true) {
    if (const auto left = group_available(root + path)) {
      least = std::min(least.value_or(*left), *left);
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

namespace {

/// Bytes that the control groups (version 2) of this process leave.
std::optional<int64_t> cgroup_available() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) == 0) return control_group_memory("/sys/fs/cgroup", line.substr(3));
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
