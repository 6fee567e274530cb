#include "cli/report/report_options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "cli/common/output_options.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/files/file_ending.h"
#include "web/report/report_page.h"

namespace attnscope {

std::chrono::milliseconds parse_time_span(const std::string& text, const std::string& option) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"ms", 1}, {"s", 1e3}, {"", 1e3}, {"min", 6e4}, {"m", 6e4}, {"h", 3.6e6}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && number >= 0 && std::isfinite(number)) {
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    for (const auto& [name, milliseconds] : kUnits) {
      if (unit != name || number * milliseconds > 1e12) continue;
      return std::chrono::milliseconds(static_cast<int64_t>(number * milliseconds));
    }
  }
  throw usage_error(fmt::format("{} {}: expected a time of at least 0 with a unit: 90s, 2min, 1h",
                                option, one_line(text)));
}

int64_t ReportRequest::most_bytes() const { return parse_size(max_size, "--max-size", -1); }

void check_report_options(const ReportRequest& o) {
  refuse_tasks("", o.alone, o.out, kOneProcess);
  require_ending(o.out, {".html", ".htm"});
  if (o.most_bytes() <= 0) throw usage_error(o.size_option() + ": expected more than 0 bytes");
  if (o.most_bytes() < report_frame_bytes(false)) {
    throw usage_error(fmt::format("{}: a page has at least {}, without any head", o.size_option(),
                                  format_bytes(report_frame_bytes(false))));
  }
  if (!o.budget_time.empty()) parse_time_span(o.budget_time, "--budget-time");
}

void add_report_options(CommandParser& command, ReportRequest& o) {
  add_capture_options_of_two(command, o.capture, o.second);
  command
      .add_option("SECOND", o.second, "a second capture, whose heads are compared with the first's")
      .type_name("SECOND");
  command.add_option("-o", o.out, "the page, a file that ends in .html")
      .required()
      .type_name("FILE");
  command
      .add_option("--max-size", o.max_size,
                  "the page is never larger (default 8MiB): figures, larger maps, small maps and\n"
                  "pictures are left out in this order, and the page says so")
      .type_name("SIZE");
  command
      .add_option("--sample", o.sample,
                  "numbers and maps from N evenly spread rows of each head; without it from all\n"
                  "rows where these are soon computed, else from 256")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  command
      .add_option(
          "--budget-time", o.budget_time,
          "begin nothing more after this time (90s, 2min, 1h): the page tells what it lacks")
      .type_name("TIME");
  command.add_option("--title", o.title, "the page's heading; else the model").type_name("WORDS");
  command
      .add_option("--style", o.style,
                  "the page's ground: as its reader's browser has it, dark, or white as paper")
      .one_of(page_style_names())
      .type_name("NAME");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_alone_option(command, o.alone);
  add_output_options(command, o,
                     {.dry_run = "say what it would take and how large the page may be; write "
                                 "nothing",
                      .json = "print the heads' numbers and what the page lacks as JSON",
                      .quiet = "no narration, no progress"});
}

}  // namespace attnscope
