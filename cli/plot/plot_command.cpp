#include "cli/plot/plot.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/head_list.h"
#include "cli/common/shell_words.h"
#include "cli/common/unknown_state.h"
#include "cli/plot/plot_capture.h"
#include "cli/plot/plot_keys.h"
#include "cli/plot/plot_logits.h"
#include "cli/plot/plot_options.h"
#include "cli/plot/plot_output.h"
#include "cli/plot/plot_table.h"
#include "cli/run/capture_check.h"
#include "cli/run/head_where.h"
#include "core/base/error.h"
#include "io/capture/capture_guard.h"
#include "io/export/format/export_manifest.h"
#include "io/metrics/read_table.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// Of kinds that are drawn from the heads' numbers.
Plot plot_of_heads(PlotKind kind, const PlotHeads& heads) {
  return kind == PlotKind::recall    ? plot_recall(heads)
         : kind == PlotKind::entropy ? plot_entropy(heads)
                                     : plot_classes(heads);
}

int plot_table(const PlotRequest& o, const Console& console) {
  const std::vector<fs::path> inputs(1, o.capture.capture);
  check_plot_targets(o, inputs);
  MemoryBudget budget(memory_limit(o.run));
  MemoryReservation held;
  const Plot plot = o.kind() == PlotKind::keys
                        ? plot_keys_of_table(o, console, budget, held)
                        : plot_of_heads(o.kind(), plot_heads_of_table(o, console, budget, held));
  if (!o.dry_run) {
    write_plot(o, plot, console);
    return kExitOk;
  }
  RunPlan plan = plan_of("plot", static_cast<int64_t>(plot.heads), ReductionPlan(), budget);
  plan.seconds = 0;
  print_plan(plan, o.json);
  return kExitOk;
}

/// Nothing in a dry run.
std::optional<Plot> plot_of_work(const PlotWork& work) {
  switch (work.request.kind()) {
    case PlotKind::logits:
      return plot_logits(work);
    case PlotKind::keys:
      return plot_keys(work);
    default:
      break;
  }
  const std::optional<PlotHeads> heads = plot_heads_of_capture(work);
  return heads ? std::optional(plot_of_heads(work.request.kind(), *heads)) : std::nullopt;
}

int plot_capture(PlotRequest o, const Console& console) {
  const Capture capture = open_capture(o.capture, o.run, console);
  StreamRun run(o.run, memory_beside(capture, o.run), console, "plot");
  check_capture(capture, o.capture, run.backend(), run.budget().room(), console);
  // Before --where, which may compute numbers.
  check_plot_targets(o, guarded_inputs(capture));
  settle_where(o.selection, capture, o.run, console, o.dry_run);
  const std::vector<SelectedCall> calls = select_and_tell(capture, o.selection, console);
  if (o.dry_run) run.plan_only();
  const std::string title = capture.model().empty() ? file_name(capture.path()) : capture.model();
  const std::optional<Plot> plot = plot_of_work({o, run, calls, title});
  if (!plot) {
    print_plan(run.forecast(), o.json);
    return kExitOk;
  }
  capture.require_unchanged();
  write_plot(o, *plot, console);
  return kExitOk;
}

int run_plot(const PlotRequest& o) {
  const Console console(o.quiet);
  check_plot_options(o);
  refuse_list_as_output(o.selection.from, o.out);
  refuse_list_as_output(o.selection.from, o.data);
  const std::string& path = o.capture.capture;
  if (is_number_table(path)) return plot_table(o, console);
  if (!path.empty() && is_export_file(path)) {
    throw usage_error(fmt::format(
        "{}: is an export of maps; plots are drawn from a capture, or from a table of attnscope "
        "stats -o",
        one_line(path)));
  }
  return plot_capture(o, console);
}

}  // namespace

Command add_plot_command(CLI::App& app) {
  auto request = std::make_shared<PlotRequest>();
  CommandParser command(app, "plot", "curves and bars over layers, steps and keys, for a paper");
  add_plot_options(command, *request);
  command.footer(
      "All but logits are drawn from a table of attnscope stats too.\n"
      "Examples:\n"
      "  attnscope plot dump/ --what recall -o recall.pdf --data recall.csv\n"
      "  attnscope plot dump/ --what entropy --steps 10 -o entropy.png\n"
      "  attnscope plot stats.json --what classes -o classes.svg");
  return {command, [request] { return run_plot(*request); }};
}

}  // namespace attnscope
