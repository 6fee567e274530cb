#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/info_export.h"
#include "cli/interrupt.h"
#include "core/error.h"
#include "core/memory_budget.h"
#include "io/export_verify.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyOptions {
  std::string file;
  bool json = false;
  bool quiet = false;
};

void print_report(const VerifyOptions& o, const VerifyReport& r) {
  if (o.json) {
    print_json({{"format", "attnscope-verify/1"},
                {"file", o.file},
                {"good", r.good()},
                {"complete", r.state.complete},
                {"tiles_good", r.tiles_good},
                {"tiles_missing", r.tiles_missing},
                {"bad", r.bad},
                {"bad_places", r.bad_places},
                {"bytes", r.bytes}},
               true);
    return;
  }
  for (const std::string& place : r.bad_places) fmt::print("bad: {}\n", one_line(place));
  const char* unit = r.stored.shards.empty() ? "tiles" : "shards";
  const auto unnamed = r.bad - static_cast<int64_t>(r.bad_places.size());
  if (unnamed > 0) fmt::print("bad: {} more\n", unnamed);
  if (r.tiles_missing > 0) {
    fmt::print("missing: {} of {} {}\n", r.tiles_missing, r.state.tiles_total, unit);
  }
  const char* verdict = r.bad > 0                                  ? "damaged"
                        : r.tiles_missing > 0 || !r.state.complete ? "incomplete"
                                                                   : "good";
  if (!r.stored.plain_groups.empty()) {
    fmt::print("{}: one file, {} read\n", verdict, format_bytes(r.bytes));
    return;
  }
  fmt::print("{}: {} of {} {} good, {} read\n", verdict, r.tiles_good, r.state.tiles_total, unit,
             format_bytes(r.bytes));
}

int run_verify(const VerifyOptions& o) {
  const Console console(o.quiet);
  if (!is_hdf5_file(o.file)) {
    if (!std::filesystem::exists(o.file)) {
      throw file_error(o.file, "", "there is no such file");
    }
    throw file_error(o.file, "", "is no export: expected an HDF5 file that attnscope wrote");
  }
  VerifyReport report;
  try {
    const InterruptWatch interrupts;
    std::optional<Progress> progress;
    report = verify_export(o.file, interrupts.token(), [&](int64_t done, int64_t total) {
      if (!progress) progress.emplace(console, "verify", total, 1.0, "tiles");
      progress->update(done);
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    // It begins as HDF5 does, and is not what it was.
    console.warn(error.what());
    return kExitDifference;
  }
  print_report(o, report);
  return report.good() ? kExitOk : kExitDifference;
}

}  // namespace

Command add_verify_command(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  VerifyOptions& o = *options;
  CommandParser command(app, "verify", "read an export back and compare it with its checksums");
  command.add_option("file", o.file, "an export, or the OUT.part of an interrupted one")
      .type_name("FILE")
      .required();
  command.add_flag("--json", o.json, "print JSON");
  command.add_flag("--quiet", o.quiet, "no progress");
  command.footer(
      "Exit code 0: complete and as it was written; 3: something is bad or missing.\n"
      "Examples:\n"
      "  attnscope verify maps.h5\n"
      "  attnscope verify maps.h5.part --json");
  return {command, [options] { return run_verify(*options); }};
}

}  // namespace attnscope
