#include "cli/diff/diff_tables.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/run_steps.h"
#include "cli/common/stored_input.h"
#include "cli/diff/diff_report.h"
#include "cli/diff/diff_tables_report.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/files/output_file.h"
#include "io/metrics/read_table.h"

namespace attnscope {
namespace {

void check_table_options(const DiffOptions& o) {
  std::string given = capture_option_given(o.capture, o.run);
  if (o.sample > 0) throw usage_error("--sample: the numbers of a table are what they are");
  if (o.top != kListedRows) given = "--top";
  if (o.dry_run) given = "--dry-run";
  if (given.empty()) return;
  throw usage_error(
      fmt::format("{}: {} is a table of numbers, of which nothing is computed (the "
                  "option belongs to captures)",
                  given, one_line(o.capture.capture)));
}

std::vector<HeadName> selected_heads(const NumberTable& table, const SelectionOptions& selection) {
  const std::vector<HeadName> all = heads_of_table(table);
  std::vector<HeadName> selected;
  for (const size_t i : select_stored(all, selection)) selected.push_back(all[i]);
  return selected;
}

/// Side A's heads by themselves, or each with side B's.
TableReport report_of(const DiffOptions& o, const NumberTable& a, const NumberTable* b) {
  const std::vector<HeadName> heads = selected_heads(a, o.selection);
  if (b == nullptr && !o.other.any()) return {a.name, "", summarise_table(a, heads)};
  if (o.classes) {
    throw usage_error("--classes: changes of class along the steps are those of one table");
  }
  const NumberTable& other = b != nullptr ? *b : a;
  const std::string where = b != nullptr ? o.second : o.capture.capture;
  const auto pairs =
      pair_heads(heads, OtherHeads(heads_of_table(other), where), o.other, b == nullptr);
  return {a.name, other.name, compare_tables(a, other, pairs)};
}

}  // namespace

bool compares_tables(const DiffOptions& o) {
  const bool first = is_number_table(o.capture.capture);
  const bool second = !o.second.empty() && is_number_table(o.second);
  if (first == second || o.second.empty()) return first;
  const std::string& other = first ? o.second : o.capture.capture;
  std::error_code error;
  if (!std::filesystem::exists(other, error)) {
    throw file_error(other, "", "there is no such file or folder");
  }
  throw usage_error(
      fmt::format("{}: is no table of metrics, and {} is one (attnscope stats makes tables)",
                  one_line(other), one_line(first ? o.capture.capture : o.second)));
}

int diff_tables(const DiffOptions& o, const Console& console) {
  check_table_options(o);
  const std::filesystem::path first = o.capture.capture, second = o.second;
  std::vector<std::filesystem::path> inputs{first};
  if (!o.second.empty()) inputs.push_back(second);
  if (!o.out.empty()) OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  MemoryBudget budget(memory_limit(o.run));
  MemoryReservation held_a, held_b;
  const NumberTable a = read_number_table(first, budget, held_a);
  std::optional<NumberTable> b;
  if (!o.second.empty()) b = read_number_table(second, budget, held_b);
  const TableReport report = report_of(o, a, b ? &*b : nullptr);
  if (!report.found.left_out.empty()) {
    console.warn(fmt::format("only one of the tables has {}",
                             one_line(fmt::format("{}", fmt::join(report.found.left_out, ", ")))));
  }
  if (!o.out.empty()) {
    write_tables(report, o.classes, o.out, o.force);
    console.say(fmt::format("wrote {} ({})", o.out, heads_text(std::ssize(report.found.heads))));
  }
  print_result(
      o.json, !o.out.empty(), [&] { return tables_json(report); },
      [&] { print_tables(report, o.classes); });
  return kExitOk;
}

}  // namespace attnscope
