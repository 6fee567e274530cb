#pragma once

#include <limits>
#include <memory>
#include <string>

#include "io/check/self_check.h"
#include "kernels/backend_factory.h"
#include "tests/support/catch.h"
#include "tests/support/recorded_call.h"
#include "tests/support/temporary_folder.h"

namespace attnscope::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The cpu, and plenty of memory.
inline CheckMeans means() {
  static const std::unique_ptr<TileBackend> backend =
      make_backend(BackendKind::cpu, {.threads = 2});
  static MemoryBudget budget(int64_t{1} << 30);
  return {*backend, budget};
}

/// A folder of calls.
class Recording {
 public:
  void add(const RecordedCall& call) {
    call.file().write(folder_.path() / ("layer" + std::to_string(call.layer) + ".safetensors"));
  }
  Capture open() const { return Capture::open(folder_.path()); }

  /// The suspect of the first call, whose check must fail clearly.
  Suspect culprit() const {
    const Capture capture = open();
    const CallCheck check = check_call(capture.calls().front(), {}, means(), 2);
    REQUIRE(check.verdict == CheckVerdict::differs);
    CHECK(check.error > 10 * check.tolerance);
    return find_culprit(check, capture);
  }

 private:
  TemporaryFolder folder_;
};

/// The culprit of a single call, whose error must be gone then.
inline std::string culprit_of(const RecordedCall& call) {
  Recording recording;
  recording.add(call);
  const Suspect suspect = recording.culprit();
  INFO(suspect.explanation);
  CHECK((suspect.culprit == "unknown" || suspect.error < 1e-4));
  return suspect.culprit;
}

/// Turns pair (a, b) of a row by an angle, as the definition of rotary embeddings says.

}  // namespace attnscope::test
