#include "cli/export/export_steps.h"

#include <fmt/core.h>

#include "cli/run/team_steps.h"
#include "core/base/memory_budget.h"
#include "io/export/format/export_layout.h"

namespace attnscope {

namespace {

/// Maps whose chunks are smaller than what they are aligned to: the first one of each stands there.
void say_unaligned(const Console& console, const ExportSpec& spec) {
  if (spec.align == 0) return;
  int64_t maps = 0;
  const ExportLayout layout = make_export_layout(spec);
  for (const ExportGroup& group : layout.groups) {
    maps += group.grid.chunk_bytes() % spec.align == 0 ? 0 : 1;
  }
  if (maps == 0) return;
  console.say(fmt::format(
      "note: --align: the maps of {} of {} groups are smaller than a chunk of whole {}: their "
      "first chunk is aligned, the others follow it",
      maps, layout.groups.size(), format_bytes(spec.align)));
}

}  // namespace

void say_export_start(const Console& console, const ExportOptions& o, const ExportSpec& spec,
                      const RunPlan& f, const TileBackend& backend) {
  console.say(fmt::format("{} of {}{}: {}{} to {}{}{}; {}; {}", export_product_name(spec.product),
                          heads_text(f.heads), processes_text(f), f.at_most ? "at most " : "",
                          format_bytes(*f.file_bytes), o.out, free_text(f),
                          about_text(f, f.seconds_note), backend.description(), f.how));
  say_unaligned(console, spec);
}

void commit_what_can_be(ExportSink& sink) {
  try {
    sink.suspend();
  } catch (const std::exception&) {
    // Tiles that are not committed are computed again.
  }
}

KeptParts kept_tiles(const ExportSink& sink, int64_t done) {
  return {done, sink.tiles_total(), "tiles", sink.partial_path()};
}

void find_hashes(ExportSpec& spec, Team& team, const Capture& capture, bool with_values,
                 const std::stop_token& stop) {
  CallDigests digests =
      digest_calls(team, capture, spec.selection(), spec.share, with_values, stop);
  spec.call_hashes = std::move(digests.of_calls);
  spec.capture_hash = std::move(digests.whole);
}

void say_export_resume(const Console& console, const ExportSink& sink) {
  const ExportResume& resume = sink.resume();
  if (!resume.resumed) return;
  console.say(fmt::format("{} ({} read back)", resuming_text(kept_tiles(sink, resume.tiles_kept)),
                          format_bytes(resume.bytes_checked)));
  if (resume.tiles_dropped > 0) {
    console.warn(fmt::format("{}: {} tiles were not as its journal says and are computed again",
                             sink.partial_path().string(), resume.tiles_dropped));
  }
}

std::string written_text(const ExportOptions& o, int64_t bytes, double seconds) {
  return fmt::format("wrote {} ({} in {}, {}B/s)", o.out, format_bytes(bytes),
                     format_seconds(seconds), format_count(static_cast<double>(bytes) / seconds));
}

}  // namespace attnscope
