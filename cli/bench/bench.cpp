#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_options.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/bench_runs.h"
#include "cli/bench/random_heads.h"
#include "cli/bench/write_speed.h"
#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_backend.h"
#include "cli/common/system_memory.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// A folder of our own within another one, removed with what it holds.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent) : path_(parent + "/attnscope-bench-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      throw file_error(parent, "", "cannot be written: " + errno_text(errno));
    }
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Ceilings measure_ceilings(const BenchOptions& o, const Console& console, int threads,
                          const std::string& folder) {
  console.say("measuring this machine's ceilings");
  Ceilings ceilings{.cpu = measure_cpu_ceilings(threads), .disk = {}};
  if (o.wants("export")) {
    ceilings.disk = DiskCeilings{.folder = folder,
                                 .buffered = write_speed(folder, WriteWay::buffered),
                                 .durable = write_speed(folder, WriteWay::durable),
                                 .direct = write_speed(folder, WriteWay::direct)};
  }
  return ceilings;
}

void measure_heads(const BenchOptions& o, const std::vector<HeadSize>& sizes, BenchRuns& runs,
                   int threads, std::vector<BenchResult>& results) {
  for (const HeadSize& size : sizes) {
    const auto problem = random_problem(size.tokens, size.head_dim, {});
    if (o.wants("lse")) results.push_back(runs.norms("lse", *problem));
    if (o.wants("weights")) results.push_back(runs.weights("weights", *problem));
    if (o.wants("metrics")) results.push_back(runs.metrics(*problem));
    if (o.wants("pyramid")) results.push_back(runs.pyramid(*problem));
    if (o.wants("row")) results.push_back(runs.row(*problem));
    if (o.wants("tile")) results.push_back(runs.tile(*problem));
    for (int used = 1; o.wants("threads"); used = std::min(2 * used, threads)) {
      const std::string name = fmt::format("lse, {} thread{}", used, used == 1 ? "" : "s");
      results.push_back(runs.norms(name, *problem, used));
      if (used == threads) break;
    }
    if (!o.wants("export")) continue;
    results.push_back(runs.exported(problem, false));
    results.push_back(runs.exported(problem, true));
  }
  for (const int percent : {10, 90}) {
    if (!o.wants("masks")) continue;
    const HeadSize& size = sizes.front();
    const auto problem =
        random_problem(size.tokens, size.head_dim, random_block_mask(size.tokens, percent));
    results.push_back(runs.weights(fmt::format("weights mask {}%", percent), *problem));
  }
}

int run_bench(const BenchOptions& o) {
  const std::vector<HeadSize> sizes = o.head_sizes();
  const Console console(o.quiet);
  const InterruptWatch interrupts(console);
  const RunBackend backend = make_run_backend(o.run, console);
  MemoryBudget budget(memory_limit(o.run));
  const ScratchFolder scratch(o.folder.empty() ? std::filesystem::temp_directory_path().string()
                                               : o.folder);
  // Of a device the processor's ceilings say nothing: bench/cuda_figures.py measures a device's.
  std::optional<Ceilings> ceilings;
  if (backend->name().rfind("cuda", 0) != 0) {
    ceilings = measure_ceilings(o, console, backend->workers(), scratch.path());
  }
  BenchReport report{*backend, ceilings ? &*ceilings : nullptr};
  BenchRuns runs(
      {o, console, *backend, budget, report.ceilings, scratch.path(), interrupts.token()});
  measure_heads(o, sizes, runs, backend->workers(), report.results);
  o.json ? print_bench_json(report) : print_bench_table(report);
  return kExitOk;
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CommandParser command(
      app, "bench", "this machine's speed at one head, beside ceilings measured in the same run");
  add_run_options(command, options->run);
  add_bench_options(command, *options);
  command.footer(
      "Examples:\n"
      "  attnscope bench\n"
      "  attnscope bench --case lse --head 4096x128,16384x128,65536x128,119056x128   growth\n"
      "  attnscope bench --backend cuda --profile --head 118800x128 --case lse,pyramid,tile\n"
      "  attnscope bench --threads 1 --json");
  return {command, [options] { return run_bench(*options); }};
}

}  // namespace attnscope
