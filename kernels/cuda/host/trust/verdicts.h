#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "core/base/dtype.h"
#include "kernels/cuda/host/trust/known_answers.h"
#include "kernels/cuda/kernel/kernel_set.h"

namespace attnscope::cuda {

/// Which of a device's ways to compute were found to be right. Thread-safe.
class Verdicts {
 public:
  /// True where work of these kernels on tensors of this type may be believed, as find() says. It
  /// is called once, while others who ask for this verdict wait; again where it throws.
  bool of(const KernelSet& kernels, DType dtype, KnownWork work,
          const std::function<bool()>& find) {
    Verdict& verdict = open({&kernels, dtype, work});
    std::call_once(verdict.once, [&] { verdict.good = find(); });
    return verdict.good;
  }

 private:
  using Key = std::tuple<const KernelSet*, DType, KnownWork>;
  struct Verdict {
    std::once_flag once;
    bool good = false;
  };
  /// Stays where it is.
  Verdict& open(const Key& key) {
    const std::lock_guard lock(mutex_);
    return verdicts_[key];
  }

  std::mutex mutex_;
  std::map<Key, Verdict> verdicts_;
};

}  // namespace attnscope::cuda
