#include "cli/run_backend.h"

#include "core/error.h"
#include "core/memory_budget.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

/// A share stays one: how much is free only the device can tell.
DeviceMemory parse_vram(const std::string& text) {
  if (text.empty()) return {};
  constexpr int64_t kWhole = int64_t{1} << 40;
  const int64_t bytes = parse_size(text, "--vram", kWhole);
  if (text.back() != '%') return {.bytes = bytes, .share = 0};
  return {.bytes = 0, .share = static_cast<double>(bytes) / static_cast<double>(kWhole)};
}

}  // namespace

std::unique_ptr<TileBackend> make_run_backend(const RunOptions& o, const Console& console) {
  const BackendKind kind = parse_backend(o.backend);
  if (!o.vram.empty() && kind != BackendKind::cuda && kind != BackendKind::automatic) {
    throw usage_error("--vram " + o.vram + ": backend " + o.backend +
                      " has no device memory (--vram is for --backend cuda and auto)");
  }
  auto backend = make_backend(
      kind, {.threads = o.threads,
             .vram = parse_vram(o.vram),
             .notice = [console](const std::string& text) { console.say("note: " + text); }});
  if (!o.vram.empty() && backend->name().rfind("cuda", 0) != 0) {
    console.say("note: --vram has no effect: " + backend->description() + " computes");
  }
  return backend;
}

}  // namespace attnscope
