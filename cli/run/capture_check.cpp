#include "cli/run/capture_check.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/common/interrupt.h"
#include "cli/run/run_backend.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/check/self_check.h"

namespace attnscope {
namespace {

/// A quick check reads little, but the first value of a member of an archive costs reading it all.
bool has_archives(const Capture& capture) {
  return std::any_of(capture.files().begin(), capture.files().end(),
                     [](const std::filesystem::path& file) {
                       const std::filesystem::path ending = file.extension();
                       return ending == ".npz" || ending == ".pt" || ending == ".pth";
                     });
}

}  // namespace

void check_capture(const Capture& capture, const CaptureOptions& options,
                   const TileBackend& backend, const MemoryRoom& memory, const Console& console) {
  if (options.texts.mask || options.score != "softmax") return;
  std::optional<InterruptWatch> interrupts;
  if (has_archives(capture)) interrupts.emplace(console);
  MemoryBudget budget(memory);
  const auto check =
      quick_check(capture, {backend, budget}, interrupts ? interrupts->token() : std::stop_token());
  if (interrupts && interrupts->interrupted()) throw Error(ErrorCode::interrupted, "interrupted");
  if (check) {
    console.warn("warning: " + one_line(capture.path().string()) + ": " +
                 quick_check_warning(*check));
  }
  if (interrupts) interrupts->hand_on();
}

void check_capture(const Capture& capture, const CaptureOptions& options, const Console& console) {
  RunOptions run;
  run.backend = "cpu";
  check_capture(capture, options, *make_run_backend(run, console), memory_limit(run), console);
}

}  // namespace attnscope
