#pragma once

#include <functional>
#include <string>

namespace attnscope {

/// How much of a device's memory a backend may work in: `bytes`, or where that is 0 `share` of what
/// is free there, in (0, 1]; where both are 0 the backend chooses.
struct DeviceMemory {
  int64_t bytes = 0;
  double share = 0;
};

/// Of the processes that compute one run on this host, which one this is: its devices are its own
/// as far as there are enough.
struct HostTask {
  int index = 0;
  int count = 1;
};

struct BackendOptions {
  int threads = 0;         ///< 0: one a core this process may use
  DeviceMemory vram = {};  ///< for backends that have a device
  bool tf32 = false;       ///< cuda multiplies float32 tensors in TF32
  bool profile = false;    ///< a backend that has a device times what it does there
  HostTask task = {};      ///< of backends that have devices: which of them
  /// Gets lines for people about how the work goes on ("cuda: out of memory, halving the tile");
  /// may be empty. Backends call it from the threads that compute, which may be several at once.
  std::function<void(const std::string&)> notice = {};
};

}  // namespace attnscope
