#include "kernels/common/host_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace attnscope {
namespace {

int cores_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  // More processors than cpu_set_t holds.
  return static_cast<int>(std::thread::hardware_concurrency());
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

}  // namespace

int usable_cores() {
  int cores = std::max(1, cores_of_affinity());
  const double quota = cores_of_quota();
  if (quota > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota))));
  return cores;
}

}  // namespace attnscope
