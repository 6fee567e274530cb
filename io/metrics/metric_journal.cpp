#include "io/metrics/metric_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/export/format/export_manifest.h"
#include "io/files/built_output.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/leftovers.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_line.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kMetricsDurableWithin{1'000};

/// The content of a journal.
struct JournalTable {
  OrderedJson options;
  std::vector<MetricRun> runs;
  std::vector<std::pair<size_t, MetricGroup>> groups;  ///< with their runs
  int64_t bytes = 0;                                   ///< of what is whole
  LineSums sums;                                       ///< of its lines
  bool is_summed = true;                               ///< not of older versions
};

/// Advice to a run that finds a journal which it cannot go on with; mere readers get none.
constexpr std::string_view kForceAdvice = "force=True gives it up";

std::string with_advice(std::string_view text, std::string_view advice) {
  return advice.empty() ? std::string(text) : fmt::format("{} ({})", text, advice);
}

[[noreturn]] void fail_journal(const fs::path& path, std::string_view advice) {
  throw file_error(path.string(), "", with_advice("is no journal of metrics", advice));
}

/// Takes a line behind the first; false where it is none.
bool take_record(const std::string& line, JournalTable& table) {
  try {
    const OrderedJson json = OrderedJson::parse(line);
    if (json.contains("run")) {
      table.runs.push_back(MetricRun::parse(json.at("run")));
    } else if (json.contains("end")) {
      table.runs.at(table.runs.size() - 1) = MetricRun::parse(json.at("end"));
    } else {
      if (table.runs.empty()) return false;
      table.groups.emplace_back(table.runs.size() - 1, parse_group_line(json.at("group")));
    }
    return true;
  } catch (const OrderedJson::exception&) {
    return false;
  } catch (const std::out_of_range&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

/// Takes the `number`-th line, from 1 on.
void take_line(const std::string& line, int64_t number, const fs::path& path,
               std::string_view advice, JournalTable& table) {
  if (number == 1) {
    const OrderedJson json = OrderedJson::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("options") || !json["options"].is_object()) {
      fail_journal(path, advice);
    }
    table.options = json["options"];
  } else if (!take_record(line, table)) {
    throw file_error(path.string(), fmt::format("line {}", number),
                     with_advice("is damaged: it is no part of a journal of metrics", advice));
  }
}

/// Reads the lines that were written to their end; what is behind them was cut off.
JournalTable read_journal(const fs::path& path, std::string_view advice) {
  std::string text = read_file_text(path);
  // A run may have been killed before its first line was written.
  if (!kMetricList.starts_with(text.substr(0, kMetricList.size()))) fail_journal(path, advice);
  JournalTable table;
  table.is_summed = !text.starts_with(std::string(kMetricList) + R"(1")");
  if (table.is_summed) {
    SummedLineReader lines(path, std::move(text));
    while (const auto line = lines.next(advice)) {
      take_line(*line, lines.sums().lines(), path, advice, table);
      table.bytes = lines.bytes();
    }
    table.sums = lines.sums();
    return table;
  }
  std::istringstream file(std::move(text));
  std::string line;
  for (int64_t number = 1; std::getline(file, line) && !file.eof(); ++number) {
    take_line(line, number, path, advice, table);
    table.bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return table;
}

/// Leaves out the runs that have no group.
void drop_empty_runs(JournalTable& table) {
  std::vector<size_t> places(table.runs.size());
  std::vector<MetricRun> kept;
  for (size_t r = 0; r < table.runs.size(); ++r) {
    places[r] = kept.size();
    const bool is_used = std::any_of(table.groups.begin(), table.groups.end(),
                                     [&](const auto& group) { return group.first == r; });
    if (is_used) kept.push_back(std::move(table.runs[r]));
  }
  table.runs = std::move(kept);
  for (auto& [run, group] : table.groups) run = places[run];
}

/// True where a table has all of the runs that a journal left: the run that left it was killed when
/// the table had just got its name.
bool is_in(const std::vector<MetricRun>& table, const std::vector<MetricRun>& left) {
  return !left.empty() && std::all_of(left.begin(), left.end(), [&](const MetricRun& run) {
    return std::any_of(table.begin(), table.end(), [&](const MetricRun& there) {
      return there.id == run.id && there.name == run.name && there.rank == run.rank;
    });
  });
}

std::vector<MetricSource> sources_of(const JournalTable& journal, size_t before,
                                     const std::string& where) {
  std::vector<MetricSource> sources;
  for (const auto& [run, group] : journal.groups) {
    sources.push_back({where, {before + run}, &group});
  }
  return sources;
}

}  // namespace

bool is_metric_journal(const fs::path& path) {
  return beginning_of_file(path, kMetricList.size()) == kMetricList;
}

RunTable read_metric_journal(const fs::path& path) {
  JournalTable journal = read_journal(path, "");
  drop_empty_runs(journal);
  RunTable table;
  table.options = std::move(journal.options);
  table.groups = join_groups(sources_of(journal, 0, path.string()), journal.runs.size());
  table.runs = std::move(journal.runs);
  return table;
}

MetricJournal::MetricJournal(fs::path out, OrderedJson options, bool force)
    : options_(std::move(options)),
      file_(std::move(out), {.force = true, .resumable = true, .resume = !force}) {
  // OUT may be there, and its name is taken with force; what somebody else left beside it is not.
  if (!force) refuse_foreign_leftovers(file_.out());
  take_up(force);
  sync_.emplace([this] { file_.sync_data(); }, kMetricsDurableWithin);
}

MetricJournal::~MetricJournal() {
  sync_.reset();
  if (groups_ > 0) return;
  try {
    file_.remove_partial();
  } catch (const std::exception&) {
    // A journal that stays says that nothing was measured.
  }
}

void MetricJournal::take_up(bool force) {
  std::error_code none;
  if (!force && fs::exists(file_.out(), none)) {
    if (!is_hdf5_file(file_.out()) || !is_metric_file(file_.out())) {
      throw file_error(file_.out().string(), "",
                       "exists and holds no metrics of runs (force=True replaces it)");
    }
    known_ = read_metric_file(file_.out(), MetricPart::shapes);
    expect_options(options_, known_.options, file_.out().string(), false);
    has_table_ = true;
  }
  if (!force && fs::exists(file_.part_path(), none)) {
    const std::string part = file_.part_path().string();
    JournalTable left = read_journal(file_.part_path(), kForceAdvice);
    drop_empty_runs(left);
    if (left.bytes > 0 && !is_in(known_.runs, left.runs)) {
      if (!left.is_summed) {
        throw file_error(part, "",
                         "was left by an older version of attnscope (attnscope merge makes a table "
                         "of it, force=True gives it up)");
      }
      expect_options(options_, left.options, part, false);
      for (const MetricRun& run : left.runs) known_.runs.push_back(run);
      for (const auto& [run, group] : left.groups) know(group, part);
      groups_ = std::ssize(left.groups);
      if (groups_ > 0) {
        notes_.push_back(fmt::format("{}: {} calls of a run that was cut off are kept", part,
                                     left.groups.size()));
      }
      size_ = left.bytes;
      sums_ = left.sums;
      file_.reopen_part();
      file_.data().truncate(size_);
      return;
    }
  }
  file_.remove_partial();
  file_.create_part();
  write_line(
      {{"format", "attnscope-metrics-part/2"}, {"version", version()}, {"options", options_}});
}

/// Notes the group's shape. Throws where it does not fit.
void MetricJournal::know(const MetricGroup& group, const std::string& where) {
  const auto found =
      std::find_if(known_.groups.begin(), known_.groups.end(),
                   [&](const MetricGroup& other) { return group_key(other) == group_key(group); });
  if (found != known_.groups.end()) return expect_group_fits(*found, group, where);
  MetricGroup& shape = known_.groups.emplace_back(group);
  for (MetricVariable& variable : shape.variables) {
    std::visit([](auto& list) { list = {}; }, variable.values);
  }
}

void MetricJournal::write_line(const OrderedJson& json) {
  const std::string line =
      sums_.add(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  file_.write_at(std::as_bytes(std::span(line)), size_);
  size_ += static_cast<int64_t>(line.size());
}

std::string MetricJournal::begin(MetricRun run) {
  run.name = unlike_name(run.name, known_.runs);
  write_line({{"run", run.json()}});
  known_.runs.push_back(run);
  run_ = std::move(run);
  return run_->name;
}

void MetricJournal::append(const MetricGroup& group) {
  if (!run_) throw usage_error(file_.out().string() + ": no run has begun");
  know(group, file_.out().string());
  write_line({{"group", group_line(group)}});
  ++groups_;
  file_.keep_partial();
  sync_->wrote();
}

void MetricJournal::finish(const MetricRun& ended, MemoryBudget& budget) {
  if (run_) write_line({{"end", ended.json()}});
  if (groups_ == 0) return;
  sync_->flush();
  std::error_code none;
  const int64_t table_bytes =
      has_table_ ? static_cast<int64_t>(fs::file_size(file_.out(), none)) : 0;
  // As they are read, and the whole of them.
  const MemoryReservation reserved = budget.reserve(2 * (size_ + table_bytes), "the table");
  JournalTable journal = read_journal(file_.part_path(), kForceAdvice);
  drop_empty_runs(journal);
  RunTable table;
  if (has_table_) table = read_metric_file(file_.out(), MetricPart::everything);
  table.options = options_;
  const size_t before = table.runs.size();
  std::vector<MetricSource> sources;
  std::vector<size_t> old(before);
  for (size_t r = 0; r < before; ++r) old[r] = r;
  for (const MetricGroup& group : table.groups) {
    sources.push_back({file_.out().string(), old, &group});
  }
  for (MetricSource& source : sources_of(journal, before, file_.part_path().string())) {
    sources.push_back(std::move(source));
  }
  table.runs.insert(table.runs.end(), journal.runs.begin(), journal.runs.end());
  std::vector<MetricGroup> whole = join_groups(sources, table.runs.size());
  table.groups = std::move(whole);
  commit_built(file_, [&](const fs::path& path) {
    write_metric_file(table, path);
    sync_.reset();
  });
}

}  // namespace attnscope
