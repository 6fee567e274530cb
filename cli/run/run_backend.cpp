#include "cli/run/run_backend.h"

#include <algorithm>
#include <exception>

#include "cli/common/profile_table.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/device_facet.h"
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

[[noreturn]] void refuse_on_host(const std::string& option, const std::string& backend) {
  throw usage_error(option + ": " + backend + " uses no device (" + option +
                    " is for --backend cuda)");
}

/// Refuses device options (--vram, --tf32, --profile) for backends without a device.
void check_device_options(const RunOptions& o, BackendKind kind) {
  if (is_cuda(kind) || kind == BackendKind::automatic) return;
  if (!o.vram.empty()) {
    throw usage_error("--vram " + o.vram + ": backend " + o.backend +
                      " has no device memory (--vram is for --backend cuda and auto)");
  }
  if (o.tf32) refuse_on_host("--tf32", "backend " + o.backend);
  if (o.profile) refuse_on_host("--profile", "backend " + o.backend);
}

}  // namespace

void RunBackendEnd::operator()(TileBackend* backend) const {
  const std::unique_ptr<TileBackend> ended(backend);
  if (!profile || std::uncaught_exceptions() > 0) return;
  const DeviceFacet* const device = ended->device();
  const auto launches = device == nullptr ? std::vector<LaunchProfile>{} : device->launch_profile();
  write_error_text(launches.empty() ? "attnscope: --profile: nothing was launched on the device\n"
                                    : profile_table(launches));
}

RunBackend make_run_backend(const RunOptions& o, const Console& console) {
  const BackendKind kind = parse_backend(o.backend);
  check_device_options(o, kind);
  auto backend = make_backend(
      kind, {.threads = o.threads,
             .vram = parse_vram(o.vram),
             .tf32 = o.tf32,
             .profile = o.profile,
             .task = {o.task, o.tasks},
             .notice = [console](const std::string& text) { console.say("note: " + text); }});
  const bool on_device = backend->name().rfind("cuda", 0) == 0;
  if (!o.vram.empty() && !on_device) refuse_on_host("--vram", backend->description());
  if (o.tf32 && !on_device) refuse_on_host("--tf32", backend->description());
  if (o.profile && !on_device) refuse_on_host("--profile", backend->description());
  return {backend.release(), RunBackendEnd{o.profile}};
}

std::string recorded_backend(const TileBackend& backend, std::span<const SelectedCall> calls) {
  if (calls.empty()) return backend.name();
  const std::string name = backend.name_for(*calls.front().call->problem);
  const bool one = std::all_of(calls.begin(), calls.end(), [&](const SelectedCall& selected) {
    return backend.name_for(*selected.call->problem) == name;
  });
  return one ? name : backend.name();
}

}  // namespace attnscope
