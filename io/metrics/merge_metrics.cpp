#include "io/metrics/merge_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/metrics/metric_csv.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/metrics/run_table.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// A run as one of the files has it.
struct FoundRun {
  size_t file = 0, place = 0;
  const MetricRun* run = nullptr;
};

std::string file_name(const fs::path& path) { return one_line(path.string()); }

void add_fault(std::string& lines, const std::string& line) {
  lines += (lines.empty() ? "" : "; ") + line;
}

/// Runs of the same id: of one process twice, or of several that share its heads.
void find_doubles(const std::map<std::string, std::vector<FoundRun>>& runs,
                  const std::vector<fs::path>& paths, std::string& lines) {
  for (const auto& [id, found] : runs) {
    const bool is_whole = std::any_of(found.begin(), found.end(),
                                      [](const FoundRun& run) { return run.run->ranks == 1; });
    std::map<int64_t, std::vector<std::string>> by_rank;
    for (const FoundRun& run : found) {
      by_rank[is_whole ? 0 : run.run->rank].push_back(file_name(paths[run.file]));
    }
    for (const auto& [rank, files] : by_rank) {
      if (files.size() < 2) continue;
      add_fault(lines,
                fmt::format("run {} is there {} times ({})", one_line(found.front().run->name),
                            files.size(), fmt::join(files, ", ")));
    }
  }
}

/// Of processes that were started together all have to be there.
void find_missing(const std::vector<RunTable>& tables, std::string& lines) {
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> launches;
  for (const RunTable& table : tables) {
    for (const MetricRun& run : table.runs) {
      if (run.ranks > 1) launches[{run.launch, run.ranks}].insert(run.rank);
    }
  }
  for (const auto& [launch, ranks] : launches) {
    std::vector<int64_t> missing;
    for (int64_t rank = 0; rank < launch.second; ++rank) {
      if (ranks.count(rank) == 0) missing.push_back(rank);
    }
    if (missing.empty()) continue;
    add_fault(lines, fmt::format("the file{} of rank{} {} of {} {} missing",
                                 missing.size() == 1 ? "" : "s", missing.size() == 1 ? "" : "s",
                                 format_index_list(missing), launch.second,
                                 missing.size() == 1 ? "is" : "are"));
  }
}

std::vector<RunTable> read_tables(const std::vector<fs::path>& paths) {
  std::vector<RunTable> tables;
  for (const fs::path& path : paths) {
    tables.push_back(is_metric_journal(path) ? read_metric_journal(path)
                                             : read_metric_file(path, MetricPart::everything));
  }
  return tables;
}

/// The options of most files; of as many, those of the first.
const OrderedJson& common_options(const std::vector<RunTable>& tables) {
  const auto count = [&](const RunTable& table) {
    return std::count_if(tables.begin(), tables.end(),
                         [&](const RunTable& other) { return other.options == table.options; });
  };
  const RunTable* most = &tables.front();
  for (const RunTable& table : tables) {
    if (count(table) > count(*most)) most = &table;
  }
  return most->options;
}

std::string joined_names(const std::vector<RunTable>& tables) {
  std::set<std::string> names;
  for (const RunTable& table : tables) {
    const auto backend = table.options.find("backend");
    if (backend != table.options.end() && backend->is_string()) {
      names.insert(backend->get<std::string>());
    }
  }
  return fmt::format("{}", fmt::join(names, " + "));
}

void check_options(const std::vector<RunTable>& tables, const std::vector<fs::path>& paths,
                   bool mixed, std::string& lines) {
  const OrderedJson& expected = common_options(tables);
  for (size_t i = 0; i < tables.size(); ++i) {
    try {
      expect_options(expected, tables[i].options, file_name(paths[i]), mixed);
    } catch (const Error& error) {
      add_fault(lines, error.what());
    }
  }
}

RunTable joined_table(const std::vector<RunTable>& tables, const std::vector<fs::path>& paths,
                      bool mixed, std::vector<std::string>& warnings) {
  std::string lines;
  check_options(tables, paths, mixed, lines);
  find_missing(tables, lines);
  std::map<std::string, std::vector<FoundRun>> by_id;
  std::vector<std::string> order;
  for (size_t f = 0; f < tables.size(); ++f) {
    for (size_t r = 0; r < tables[f].runs.size(); ++r) {
      std::vector<FoundRun>& found = by_id[tables[f].runs[r].id];
      if (found.empty()) order.push_back(tables[f].runs[r].id);
      found.push_back({f, r, &tables[f].runs[r]});
    }
  }
  find_doubles(by_id, paths, lines);
  if (!lines.empty()) throw Error(ErrorCode::file, "merge: " + lines);

  RunTable whole;
  whole.options = tables.front().options;
  if (const std::string names = joined_names(tables); !names.empty()) {
    whole.options["backend"] = names;
  }
  std::vector<std::vector<size_t>> places(tables.size());
  for (size_t f = 0; f < tables.size(); ++f) places[f].resize(tables[f].runs.size());
  for (const std::string& id : order) {
    MetricRun run = *by_id[id].front().run;
    for (const FoundRun& part : by_id[id]) {
      places[part.file][part.place] = whole.runs.size();
      run.complete = run.complete && part.run->complete;
      run.seconds = std::max(run.seconds, part.run->seconds);
      if (part.run == by_id[id].front().run) continue;
      for (const OrderedJson& one : part.run->refused) run.refused.push_back(one);
    }
    // Its processes are all here: what is joined later asks for none of them.
    run.rank = 0;
    run.ranks = 1;
    run.launch.clear();
    const std::string name = unlike_name(run.name, whole.runs);
    if (name != run.name) {
      warnings.push_back(fmt::format("run {} of {} is called {}: another run has its name",
                                     one_line(run.name), file_name(paths[by_id[id].front().file]),
                                     one_line(name)));
      run.name = name;
    }
    whole.runs.push_back(std::move(run));
  }
  std::vector<MetricSource> sources;
  for (size_t f = 0; f < tables.size(); ++f) {
    for (const MetricGroup& group : tables[f].groups) {
      sources.push_back({file_name(paths[f]), places[f], &group});
    }
  }
  whole.groups = join_groups(sources, whole.runs.size());
  return whole;
}

/// The table that parts are joined to, and what is said of it.
struct WholeMetrics {
  MemoryReservation held;
  RunTable table;
  MetricMerge found;
};

WholeMetrics whole_metrics(const std::vector<fs::path>& parts, bool mixed, bool as_csv,
                           MemoryBudget& budget) {
  int64_t bytes = 0;
  for (const fs::path& part : parts) bytes += static_cast<int64_t>(fs::file_size(part));
  WholeMetrics whole;
  // Each table as it is read, and the whole of them.
  whole.held = budget.reserve(2 * bytes, "the tables");
  const std::vector<RunTable> tables = read_tables(parts);
  whole.table = joined_table(tables, parts, mixed, whole.found.warnings);
  whole.found.runs = std::ssize(whole.table.runs);
  whole.found.groups = std::ssize(whole.table.groups);
  if (as_csv) {
    for (const std::string& name : not_in_csv(whole.table)) {
      whole.found.warnings.push_back(name + " is an array, which a .csv does not hold");
    }
  }
  return whole;
}

}  // namespace

bool holds_metrics(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  return is_metric_journal(path) || is_metric_file(path);
}

MetricMerge merge_metrics(const std::vector<fs::path>& parts, const fs::path& out,
                          const MetricJoin& how, OutputFileOptions options, MemoryBudget& budget) {
  require_ending(out, {".h5", ".csv"});
  const bool as_csv = out.extension() == ".csv";
  options.inputs = parts;
  OutputFile::check_target(out, options);
  const WholeMetrics whole = whole_metrics(parts, how.mixed, as_csv, budget);
  MetricMerge result = whole.found;
  if (how.dry_run) return result;
  OutputFile file(out, options);
  if (as_csv) {
    write_metric_csv(whole.table, file.new_part_path());
  } else {
    write_metric_file(whole.table, file.new_part_path());
  }
  result.bytes_written = static_cast<int64_t>(fs::file_size(file.new_part_path()));
  file.open_new_part(result.bytes_written);
  file.commit_new_part();
  const auto& warnings = file.warnings();
  result.warnings.insert(result.warnings.end(), warnings.begin(), warnings.end());
  return result;
}

MetricMerge join_metrics(const std::vector<fs::path>& parts, const MetricJoin& how,
                         MemoryBudget& budget, const std::function<void(std::string_view)>& put) {
  const WholeMetrics whole = whole_metrics(parts, how.mixed, true, budget);
  if (!how.dry_run) put_metric_csv(whole.table, put);
  return whole.found;
}

}  // namespace attnscope
