#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/output_options.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/capture/capture.h"
#include "io/capture/capture_location.h"
#include "io/files/file_lock.h"
#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/relabel/relabel_journal.h"
#include "io/relabel/relabel_plan.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

struct RelabelOptions {
  std::string capture;
  std::string branches, steps, layers;
  std::optional<int64_t> forwards_per_step;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

/// How many files keep their place, and how many are written anew, whole.
struct FileCounts {
  int64_t in_place = 0, anew = 0, bytes = 0;

  explicit FileCounts(const RelabelWork& work) {
    for (const HeaderPatch& patch : work.files) {
      if (patch.in_place()) {
        ++in_place;
        continue;
      }
      ++anew;
      bytes += patch.file_bytes;
    }
  }
};

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string finishing_hint(const RelabelOptions& o) {
  return "attnscope relabel " + one_line(o.capture) + " finishes it";
}

void print_relabel_json(const RelabelOptions& o, const RelabelPlan& plan, const RelabelWork& work,
                        bool resumed) {
  const FileCounts counts(work);
  OrderedJson json{{"format", "attnscope-relabel/1"},
                   {"capture", o.capture},
                   {"written", !o.dry_run && (work.catalogue || !work.files.empty())},
                   {"resumed", resumed},
                   {"headers_in_place", counts.in_place},
                   {"files_written_anew", counts.anew},
                   {"catalogue", work.catalogue.has_value()}};
  json["calls"] = OrderedJson::array();
  for (const RelabelledCall& call : plan.calls) {
    json["calls"].push_back({{"file", call.file.string()},
                             {"before", labels_json(call.before)},
                             {"after", labels_json(call.after)}});
  }
  print_json(json, true);
}

/// A line for each kind of change, with the number of its calls.
void print_changes(const RelabelPlan& plan) {
  std::map<std::string, int64_t> kinds;
  for (const RelabelledCall& call : plan.calls) ++kinds[call.text()];
  for (const auto& [text, count] : kinds) fmt::print("{}: {}\n", counted(count, "call"), text);
  if (!plan.calls.empty()) return;
  fmt::print("{}\n", plan.catalogue ? "no call changes, capture.json does" : "nothing changes");
}

void tell_files(const RelabelWork& work, const Console& console) {
  const FileCounts counts(work);
  if (counts.anew == 0) return;
  console.say(fmt::format(
      "note: {} ({}) {} written anew: the header has no room, or the file has other names",
      counted(counts.anew, "file"), format_bytes(counts.bytes), counts.anew == 1 ? "is" : "are"));
}

/// Does what the journal tells; what goes wrong says how it goes on.
void finish(const RelabelOptions& o, const fs::path& folder, const RelabelWork& work,
            const InterruptWatch& interrupts) {
  try {
    finish_relabel(folder, work, interrupts.token());
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + "; " + finishing_hint(o));
  }
}

int resume(const RelabelOptions& o, const fs::path& folder, const Console& console,
           const InterruptWatch& interrupts) {
  const RelabelWork work = read_relabel_journal(folder);
  tell_files(work, console);
  if (!o.dry_run) finish(o, folder, work, interrupts);
  if (o.json) {
    print_relabel_json(o, {}, work, true);
  } else if (o.dry_run) {
    fmt::print("an interrupted relabelling of {} is to be finished\n",
               counted(std::ssize(work.files), "file"));
  } else {
    console.say("finished the interrupted relabelling of " +
                counted(std::ssize(work.files), "file"));
  }
  return kExitOk;
}

RelabelWork work_of(const fs::path& folder, const RelabelPlan& plan, const std::stop_token& stop) {
  RelabelWork work;
  for (const RelabelledCall& call : plan.calls) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::interrupted, "interrupted: nothing was changed");
    }
    if (auto patch = header_patch(folder, call)) work.files.push_back(std::move(*patch));
  }
  work.catalogue = plan.catalogue;
  return work;
}

/// The folder as the files of its calls are named from it.
fs::path relabelled_folder(const RelabelOptions& o) {
  std::error_code error;
  if (!fs::exists(o.capture, error)) {
    throw file_error(o.capture, "", "there is no such file or folder");
  }
  const auto folder = capture_folder(o.capture);
  if (!folder) {
    throw usage_error(o.capture +
                      ": is one file: relabel takes a folder of calls (--as tells a "
                      "fact of a file, and convert writes it down)");
  }
  return folder->empty() ? fs::path(".") : *folder;
}

int run_relabel(const RelabelOptions& o) {
  const Console console(o.quiet);
  const RelabelRules rules =
      parse_relabel_rules(o.branches, o.steps, o.layers, o.forwards_per_step);
  const fs::path folder = relabelled_folder(o);
  // The recorder holds it while it adds calls.
  const fs::path lock_file = folder / "capture.json.lock";
  std::optional<FileLock> lock;
  require_writable_folder(lock_file);
  if (!o.dry_run) {
    lock.emplace(lock_file, folder);
  } else if (FileLock::is_held(lock_file)) {
    throw file_error(o.capture, "", "is being written by another run");
  }
  const InterruptWatch interrupts(console);
  if (has_relabel_journal(folder)) {
    if (rules.empty()) return resume(o, folder, console, interrupts);
    throw usage_error(o.capture + ": an earlier relabelling was interrupted: " + finishing_hint(o) +
                      ", without options; then give these");
  }
  if (rules.empty()) {
    throw usage_error(
        "nothing is told: give --branches, --steps, --forwards-per-step or --layers (see attnscope "
        "relabel --help)");
  }
  const Capture capture = Capture::open(o.capture, {}, {.stop = interrupts.token()});
  const RelabelPlan plan = plan_relabel(capture, rules);
  const RelabelWork work = work_of(folder, plan, interrupts.token());
  capture.require_unchanged();
  tell_files(work, console);
  const bool changes = !work.files.empty() || work.catalogue;
  if (changes && !o.dry_run) {
    write_relabel_journal(folder, work, interrupts.token());
    finish(o, folder, work, interrupts);
  }
  if (o.json) {
    print_relabel_json(o, plan, work, false);
  } else {
    print_changes(plan);
  }
  return kExitOk;
}

}  // namespace

Command add_relabel_command(CLI::App& app) {
  auto options = std::make_shared<RelabelOptions>();
  RelabelOptions& o = *options;
  CommandParser command(
      app, "relabel", "tell branches, steps and layers of a capture's calls afterwards, in place");
  command.add_option("capture", o.capture, "the capture, a folder").type_name("CAPTURE").required();
  command
      .add_option("--branches", o.branches,
                  "branches by new names: f0=cond,f1=uncond; all at once, so that two may swap")
      .type_name("OLD=NEW,...");
  command
      .add_option("--steps", o.steps,
                  "recorded steps, or forwards (f3) of which nobody told the step, by other\n"
                  "numbers: 0-9=10-19 or f0-f1=0,f2-f3=1")
      .type_name("OLD=NEW,...");
  command
      .add_option("--forwards-per-step", o.forwards_per_step,
                  "forwards without a step are so many a step, in their order; --branches\n"
                  "f0=...,f1=... then names those of a step")
      .type_name("N");
  command
      .add_option("--layers", o.layers,
                  "layers by other numbers, or the number of a block that has none: 0-9=20-29 or\n"
                  "refiner.0=40")
      .type_name("OLD=NEW,...");
  add_output_options(
      command, o,
      {.dry_run = "print what would change; write nothing", .json = "print the changes as JSON"});
  command.footer(
      "No tensor is copied where a file's header has room. A run that was killed leaves a capture\n"
      "that only attnscope relabel CAPTURE, without options, takes, and finishes.\n"
      "Examples:\n"
      "  attnscope relabel dump/ --branches f0=cond,f1=uncond --dry-run\n"
      "  attnscope relabel dump/ --branches cond=uncond,uncond=cond\n"
      "  attnscope relabel dump/ --forwards-per-step 2 --branches f0=cond,f1=uncond\n"
      "  attnscope relabel dump/                          # finish what was interrupted");
  return {command, [options] { return run_relabel(*options); }};
}

}  // namespace attnscope
