#pragma once

namespace attnscope {

/// How many cores this process may use at once: its affinity mask, and the quota of its control
/// group where one is set. At least 1.
int usable_cores();

}  // namespace attnscope
