#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/option_use.h"
#include "cli/common/report_error.h"
#include "cli/verify/verify_capture.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/export/format/export_manifest.h"
#include "io/export/read/export_verify.h"
#include "io/files/json_types.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

struct VerifyOptions {
  CommandParser command;
  VerifyCaptureRequest request;
  bool quiet = false;
};

void print_report(const std::string& file, bool as_json, const VerifyReport& r) {
  if (as_json) {
    OrderedJson json{{"format", "attnscope-verify/1"},
                     {"file", file},
                     {"good", r.good()},
                     {"complete", r.state.complete},
                     {"tiles_good", r.tiles_good},
                     {"tiles_missing", r.tiles_missing},
                     {"bad", r.bad},
                     {"bad_places", r.bad_places},
                     {"bytes", r.bytes}};
    if (r.stored.part) json["shard"] = r.stored.part->plan.share.text();
    print_json(json, true);
    return;
  }
  for (const std::string& place : r.bad_places) fmt::print("bad: {}\n", one_line(place));
  const char* unit = !r.stored.shards.empty()  ? "shards"
                     : !r.stored.parts.empty() ? "parts"
                                               : "tiles";
  const auto unnamed = r.bad - static_cast<int64_t>(r.bad_places.size());
  if (unnamed > 0) fmt::print("bad: {} more\n", unnamed);
  if (r.tiles_missing > 0) {
    fmt::print("missing: {} of {} {}\n", r.tiles_missing, r.state.tiles_total, unit);
  }
  const char* verdict = r.bad > 0                                  ? "damaged"
                        : r.tiles_missing > 0 || !r.state.complete ? "incomplete"
                                                                   : "good";
  if (r.stored.part) {
    fmt::print("part {} of a plan\n", one_line(r.stored.part->plan.share.text()));
  }
  if (!r.stored.plain_groups.empty() && r.stored.parts.empty()) {
    fmt::print("{}: one file, {} read\n", verdict, format_bytes(r.bytes));
    return;
  }
  fmt::print("{}: {} of {} {} good, {} read\n", verdict, r.tiles_good, r.state.tiles_total, unit,
             format_bytes(r.bytes));
}

int verify_stored_export(const std::string& file, bool as_json, const Console& console) {
  VerifyReport report;
  try {
    const InterruptWatch interrupts(console);
    std::optional<Progress> progress;
    report = verify_export(file, interrupts.token(), [&](int64_t done, int64_t total) {
      if (!progress) progress.emplace(console, "verify", total, 1.0, "tiles");
      progress->update(done);
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    // It begins as HDF5 does, and is not what it was.
    report_error("verification", error.what(), error.place());
    return kExitDifference;
  }
  print_report(file, as_json, report);
  return report.good() ? kExitOk : kExitDifference;
}

/// An HDF5 file that cannot be read may be an export that was damaged.
bool is_verified_as_export(const std::string& file) {
  try {
    return is_export_file(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    return true;
  }
}

int run_verify(const VerifyOptions& o) {
  const Console console(o.quiet);
  const std::string& file = o.request.capture.capture;
  if (is_verified_as_export(file)) {
    refuse_capture_options(o.command, file, "is an export, and all of it is checked",
                           {"--links", "--threads", "--backend"});
    return verify_stored_export(file, o.request.json, console);
  }
  return verify_capture(o.request, console);
}

}  // namespace

Command add_verify_command(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  VerifyOptions& o = *options;
  CommandParser command(
      app, "verify",
      "re-check an export against its checksums, or a capture against the outputs "
      "that it recorded");
  add_capture_options(command, o.request.capture);
  add_selection_options(command, o.request.selection);
  command.add_option("--threads", o.request.run.threads, "worker threads (default: one a core)")
      .in_range(1, 4096)
      .type_name("N");
  command.add_option("--backend", o.request.run.backend, "what computes the rows of a capture: {}")
      .words(backend_names())
      .type_name("NAME");
  command.add_flag("--strict", o.request.strict,
                   "exit code 3 also where a capture recorded nothing to check against");
  command.add_flag("--json", o.request.json, "print JSON");
  command.add_flag("--quiet", o.quiet, "no progress");
  command.footer(
      "CAPTURE is a capture, an export, or the OUT.part of an interrupted one. Of an export every\n"
      "checksum is read; of a capture the recorded output rows (or LSEs) are computed again from "
      "q,\n"
      "k, v and the facts, and where they differ the usual mistakes are tried: scale, mask, "
      "layout,\n"
      "batch half, heads, token order, RoPE, norm, another layer's keys.\n"
      "Exit code 0: as it was written, or in agreement, or nothing recorded to check against\n"
      "(--strict: 3);\n"
      "3: something is bad, missing or does not agree, or the recorder refused a call.\n"
      "Examples:\n"
      "  attnscope verify maps.h5\n"
      "  attnscope verify maps.h5.part --json\n"
      "  attnscope verify dump/ --layers 0\n"
      "  attnscope verify dump/ --scale 0.125");
  o.command = command;
  return {command, [options] { return run_verify(*options); }};
}

}  // namespace attnscope
