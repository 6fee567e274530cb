#include "cli/diff/diff_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_steps.h"
#include "cli/common/stored_input.h"
#include "cli/diff/diff_report.h"
#include "cli/diff/stored_pair.h"
#include "core/base/error.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

void check_request(const DiffOptions& o) {
  check_export_options(o.capture, o.run);
  if (o.classes)
    throw usage_error("--classes lists changes of class in tables of numbers of heads");
  if (o.dry_run) throw usage_error("--dry-run: nothing of an export is computed");
}

/// The heads of a file by their names.
std::map<HeadName, const StoredHead*> heads_by_name(const StoredMaps& maps) {
  std::map<HeadName, const StoredHead*> heads;
  for (const StoredHead& head : maps.heads()) {
    heads[stored_name(*head.facts, head.batch, head.head)] = &head;
  }
  return heads;
}

std::vector<HeadName> names_of(const std::vector<StoredHead>& heads) {
  std::vector<HeadName> names;
  for (const StoredHead& head : heads) {
    names.push_back(stored_name(*head.facts, head.batch, head.head));
  }
  return names;
}

std::vector<DiffRow> compare_stored(const DiffOptions& o, const StoredMaps& a, const StoredMaps& b,
                                    const Console& console) {
  const auto of_a = heads_by_name(a), of_b = heads_by_name(b);
  const auto pairs =
      pair_heads(names_of(select_stored(a, o.selection)),
                 OtherHeads(names_of(b.heads()), b.path().string()), o.other, &a == &b);
  std::vector<StoredPair> stored;
  int64_t entries = 0;
  for (const auto& [name_a, name_b] : pairs) {
    stored.emplace_back(a, *of_a.at(name_a), b, *of_b.at(name_b), o.sample);
    entries += stored.back().entries();
  }
  MemoryBudget budget(memory_limit(o.run));
  const InterruptWatch interrupts(console);
  Progress progress(console, "diff", std::max<int64_t>(1, entries), 1, "entries");
  std::vector<DiffRow> rows;
  int64_t done = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto found = stored[i].compare(o.top, budget, interrupts.token(),
                                         [&](int64_t own) { progress.update(done + own); });
    if (!found) throw interrupted_error(kNothingWritten);
    done += stored[i].entries();
    rows.push_back({pairs[i].first, pairs[i].second, *found, true});
  }
  return rows;
}

}  // namespace

bool compares_exports(const DiffOptions& o) {
  const bool first = is_export_file(o.capture.capture);
  if (o.second.empty()) return first;
  const bool second = is_export_file(o.second);
  if (first == second) return first;
  const std::string& file = first ? o.capture.capture : o.second;
  throw usage_error(
      fmt::format("{} is an export, {} is not: export the same heads of it, or give "
                  "the capture that the export was made of",
                  one_line(file), one_line(first ? o.second : o.capture.capture)));
}

int diff_exports(const DiffOptions& o, const Console& console) {
  check_request(o);
  const StoredMaps a(o.capture.capture);
  std::optional<StoredMaps> second;
  if (!o.second.empty()) second.emplace(o.second);
  const StoredMaps& b = second ? *second : a;
  std::vector<std::filesystem::path> inputs{a.path()};
  if (second) inputs.push_back(b.path());
  if (!o.out.empty()) OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  const std::vector<DiffRow> rows = compare_stored(o, a, b, console);
  const nlohmann::ordered_json json =
      diff_json(a.path().filename().string(), b.path().filename().string(), rows);
  if (!o.out.empty()) {
    write_diff(json, o.out, o.force);
    console.say(fmt::format("wrote {} ({} pairs of exported heads)", o.out, rows.size()));
  }
  print_result(
      o.json, !o.out.empty(), [&] { return json; }, [&] { print_diff_table(rows); });
  return kExitOk;
}

}  // namespace attnscope
