#include <memory>
#include <string>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/head_list.h"
#include "cli/report/report_capture.h"
#include "cli/report/report_export.h"
#include "cli/report/report_options.h"
#include "cli/report/report_pair.h"
#include "cli/report/report_table.h"
#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/metrics/read_table.h"

namespace attnscope {
namespace {

int run_report(const ReportRequest& o) {
  const Console console(o.quiet);
  check_report_options(o);
  refuse_list_as_output(o.selection.from, o.out);
  if (!o.second.empty()) return report_pair(o, console);
  const std::string& path = o.capture.capture;
  if (is_number_table(path)) return report_table(o, console);
  if (!path.empty() && is_export_file(path)) return report_export(o, console);
  return report_capture(o, console);
}

}  // namespace

Command add_report_command(CLI::App& app) {
  auto request = std::make_shared<ReportRequest>();
  CommandParser command(app, "report",
                        "all of a capture's heads as one page that opens in any browser");
  add_report_options(command, *request);
  command.footer(
      "What was captured and what was guessed, every head with its class, numbers and a small "
      "map,\n"
      "and the heads that stand out, with films and sentences; one file, without a server.\n"
      "Examples:\n"
      "  attnscope report dump/ -o report.html\n"
      "  attnscope report dump/ --layers 0-5 --sample 256 --max-size 3MB -o report.html\n"
      "  attnscope report dump/ --budget-time 2min -o report.html\n"
      "  attnscope report stats.json -o report.html");
  return {command, [request] { return run_report(*request); }};
}

}  // namespace attnscope
