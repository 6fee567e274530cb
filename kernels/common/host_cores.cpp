#include "kernels/common/host_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace attnscope {
namespace {

#if defined(__linux__)

/// The processors that this process may run on; none where there are more than cpu_set_t holds.
std::vector<int> processors_of_affinity() {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

/// Cores' worth of time a period that the control group grants; 0 where there is no limit.
double cores_of_quota() {
  // Version 2: "QUOTA PERIOD" or "max PERIOD"; a container sees its own group as the root.
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0) {
      return std::strtod(quota.c_str(), nullptr) / period;
    }
    return 0;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    return quota / period;
  }
  return 0;
}

#endif

}  // namespace

int count_cores(std::span<const int> processors, const std::filesystem::path& folder) {
  std::set<std::string> cores;
  for (const int processor : processors) {
    const std::string name = "cpu" + std::to_string(processor);
    std::ifstream file(folder / name / "topology" / "thread_siblings_list");
    std::string siblings;
    // One of which the system tells nothing is a core of its own.
    cores.insert(file >> siblings ? siblings : name);
  }
  return static_cast<int>(cores.size());
}

int usable_cores() {
#if defined(__linux__)
  const std::vector<int> processors = processors_of_affinity();
  int cores = processors.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                 : count_cores(processors, "/sys/devices/system/cpu");
  cores = std::max(1, cores);
  const double quota = cores_of_quota();
  if (quota > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota))));
  return cores;
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

}  // namespace attnscope
