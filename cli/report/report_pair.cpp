#include "cli/report/report_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/shell_words.h"
#include "cli/common/unknown_state.h"
#include "cli/report/report_about.h"
#include "cli/report/report_facts.h"
#include "cli/report/report_heads.h"
#include "cli/report/report_looks.h"
#include "cli/report/report_output.h"
#include "cli/report/report_parts.h"
#include "cli/report/report_plan.h"
#include "cli/report/report_watch.h"
#include "cli/report/standing_heads.h"
#include "cli/run/call_heads.h"
#include "cli/run/head_where.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/products/differences/head_difference.h"
#include "io/capture/capture_guard.h"
#include "io/export/format/export_manifest.h"
#include "io/files/output_file.h"
#include "io/metrics/read_table.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

/// Rows of a pair that are compared unless --sample says how many.
constexpr int64_t kComparedRows = 256;

/// One of the two captures: its name and heads.
struct PairSide {
  Capture capture;
  SelectionOptions selection;
  std::vector<SelectedCall> calls;
  std::string name;
};

PairSide open_pair_side(const ReportRequest& o, const std::string& path, const Console& console) {
  CaptureOptions options = o.capture;
  options.capture = path;
  PairSide side{open_capture(options, o.run, console), o.selection, {}, file_name(path)};
  settle_where(side.selection, side.capture, o.run, console, o.dry_run);
  side.calls = select_and_tell(side.capture, side.selection, console);
  return side;
}

/// How two heads of one name differ.
struct PairFound {
  size_t a = 0, b = 0;
  HeadDifference found;
};

class PairReport {
 public:
  PairReport(const ReportRequest& o, const std::array<PairSide, 2>& sides, StreamRun& run,
             const Console& console)
      : o_(o), sides_(sides), run_(run), console_(console), watch_(o, console) {
    run_.stand_under(watch_.stop());
  }

  void plan();
  void write();

 private:
  MeasureMeans means() const {
    return {run_, console_, watch_.stop(), [this] { return watch_.time_left(); }};
  }
  std::vector<SelectedCall> all_calls() const;
  int64_t compared_rows() const { return o_.sample > 0 ? o_.sample : kComparedRows; }
  void begin();
  void measure();
  void compare();
  void compare(size_t a, size_t b);
  OrderedJson diff_facts() const;
  void add_looks();

  const ReportRequest& o_;
  const std::array<PairSide, 2>& sides_;
  StreamRun& run_;
  const Console& console_;
  const ReportWatch watch_;

  int64_t sample_ = 0;
  ReportParts parts_;
  std::vector<MeasuredHead> heads_;  ///< of A, then of B
  MeasuredMemory held_;
  std::vector<ReportHead> names_;
  std::vector<HeadName> not_reached_;
  std::vector<StandingRule> rules_;
  std::vector<PairFound> pairs_;
};

std::vector<SelectedCall> PairReport::all_calls() const {
  std::vector<SelectedCall> calls = sides_[0].calls;
  calls.insert(calls.end(), sides_[1].calls.begin(), sides_[1].calls.end());
  return calls;
}

/// Adds what two captures have alike once, and what they have not with their letters, one below the
/// other.
void add_about(const OrderedJson& a, OrderedJson b, OrderedJson& about) {
  const auto add = [&](const char* letter, OrderedJson line) {
    line["label"] = fmt::format("{}: {}", letter, line["label"].get<std::string>());
    about.push_back(std::move(line));
  };
  for (const OrderedJson& line : a) {
    auto other = std::find(b.begin(), b.end(), line);
    if (other != b.end()) {
      about.push_back(line);
      b.erase(other);
      continue;
    }
    add("A", line);
    other = std::find_if(b.begin(), b.end(), [&](const OrderedJson& each) {
      return each["label"] == line["label"] && std::find(a.begin(), a.end(), each) == a.end();
    });
    if (other == b.end()) continue;
    add("B", *other);
    b.erase(other);
  }
  for (const OrderedJson& line : b) add("B", line);
}

/// What a run would take, which this does not do.
void PairReport::plan() {
  const std::vector<SelectedCall> calls = all_calls();
  sample_ = rows_of_report(o_.sample, calls);
  PassCost cost = cost_of_heads(calls, sample_);
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    cost.add(problem, static_cast<double>(head_count({selected})),
             static_cast<double>(std::min(problem.num_queries(), compared_rows())));
  }
  RunPlan plan = plan_of_passes(run_, o_.run, calls, sample_, cost);
  set_page_bytes(plan, o_.most_bytes(), true);
  print_plan(plan, o_.json);
}

void PairReport::begin() {
  sample_ = rows_of_report(o_.sample, all_calls());
  parts_.facts = first_facts(o_, "pair", sides_[0].name + " and " + sides_[1].name);
  for (const PairSide& side : sides_) {
    const char* const letter = &side == sides_.data() ? "A" : "B";
    parts_.facts["about"].push_back({{"label", letter}, {"text", side.name}, {"how", "told"}});
    if (watch_.time_left()) {
      for (OrderedJson line :
           check_for_report(side.calls, o_.capture, {run_.backend(), run_.budget()}, run_.workers(),
                            watch_.stop())) {
        line["text"] = fmt::format("{}: {}", letter, line["text"].get<std::string>());
        parts_.facts["checks"].push_back(std::move(line));
      }
    }
    for (const std::string& problem : problems_of(side.capture)) {
      parts_.problems.push_back(fmt::format("{}: {}", letter, problem));
    }
    for (const std::string& lack : missing_facts(side.capture, side.calls)) {
      parts_.lacks.push_back(fmt::format("{}: {}", letter, lack));
    }
  }
  add_about(about_capture(sides_[0].capture, sides_[0].calls),
            about_capture(sides_[1].capture, sides_[1].calls), parts_.facts["about"]);
  if (sample_ > 0) parts_.facts["sample"] = {{"rows", sample_}};
  parts_.lacks.emplace_back(
      "of two captures no exact maps, pictures, words over frames and sparsity: the page of each "
      "has them");
}

void PairReport::measure() {
  StatsChoice choice;
  choice.sample = sample_;
  held_ = reserve_heads(run_.budget(), all_calls(), sample_);
  for (int side = 0; side < 2; ++side) {
    const PairSide& of = sides_[static_cast<size_t>(side)];
    MeasuredHeads measured = measure_for_report(means(), choice, of.calls);
    if (!find_own_ways(means(), measured.heads)) {
      parts_.lacks.emplace_back(kOwnWaysLate);
    }
    for (const std::string& problem : measured.problems) {
      parts_.problems.push_back(fmt::format("{}: {}", side == 0 ? "A" : "B",
                                            without_folders(problem, of.capture.path())));
    }
    for (MeasuredHead& head : measured.heads) {
      names_.push_back(
          {head.record.name, std::string(head_class_name(head.record.metrics.head_class)), side});
      heads_.push_back(std::move(head));
    }
    not_reached_.insert(not_reached_.end(), measured.not_reached.begin(),
                        measured.not_reached.end());
  }
  held_.rows = MemoryReservation();
  std::vector<StandingNumbers> numbers;
  for (const MeasuredHead& head : heads_) numbers.push_back({&head.record, head.own_way});
  rules_ = standing_heads(numbers);
}

void PairReport::compare(size_t a, size_t b) {
  const AttentionProblem& problem = *heads_[a].call->problem;
  check_comparable(problem, *heads_[b].call->problem);
  HeadPair pair{heads_[a].task(), heads_[b].task()};
  const std::vector<int64_t> rows = sampled_rows(problem.num_queries(), compared_rows());
  pair.a.row_list = pair.b.row_list = rows;
  const DifferencePlan plan =
      plan_difference(pair, run_.backend(), run_.budget().room(), o_.run.threads);
  StreamControl control;
  control.stop = watch_.stop();
  const auto found = compare_heads(pair, plan, run_.backend(), run_.budget(), control);
  watch_.require_going();
  pairs_.push_back({a, b, summarise_rows(pair, *found, 1)});
}

/// Each head of A with that of B that has its name.
void PairReport::compare() {
  std::map<HeadName, size_t> others;
  for (size_t i = 0; i < heads_.size(); ++i) {
    if (names_[i].side == 1) others[names_[i].name] = i;
  }
  int64_t alone = 0, late = 0;
  for (size_t i = 0; i < heads_.size() && names_[i].side == 0; ++i) {
    const auto other = others.find(names_[i].name);
    if (other == others.end()) {
      ++alone;
    } else if (!watch_.time_left()) {
      ++late;
    } else {
      try {
        compare(i, other->second);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::usage && error.code() != ErrorCode::value) throw;
        parts_.problems.push_back(head_words(names_[i].name) + ": " + error.what());
      }
    }
  }
  if (alone > 0) {
    parts_.lacks.push_back(
        fmt::format("{} of A have no head of their name in B to compare with", heads_text(alone)));
  }
  if (late > 0) {
    parts_.lacks.push_back(
        fmt::format("--budget-time was over: {} of A were not compared", heads_text(late)));
  }
}

OrderedJson PairReport::diff_facts() const {
  const auto number = [](const std::optional<double>& value) {
    return value ? OrderedJson(*value) : OrderedJson();
  };
  OrderedJson facts{
      {"text", fmt::format("Each head of A with the head of B that has its name, over at most {} "
                           "rows: the mean divergence of their rows (js, bits), the mean total "
                           "variation, the mean cosine and the change of entropy (nats).",
                           compared_rows())},
      {"command",
       fmt::format("attnscope diff {} {}", shell_word(sides_[0].name), shell_word(sides_[1].name))},
      {"pairs", OrderedJson::array()},
      {"numbers", OrderedJson::array()}};
  for (const auto& [name, label] : {std::pair("js", "divergence, bits"),
                                    {"total_variation", "total variation"},
                                    {"cosine", "cosine"},
                                    {"entropy_change", "entropy of A − that of B, nats"}}) {
    facts["numbers"].push_back({{"name", name}, {"label", label}, {"decimals", 4}});
  }
  for (const PairFound& pair : pairs_) {
    facts["pairs"].push_back({{"a", pair.a},
                              {"b", pair.b},
                              {"js", number(pair.found.divergence_mean)},
                              {"total_variation", number(pair.found.total_variation)},
                              {"cosine", number(pair.found.cosine_mean)},
                              {"entropy_change", number(pair.found.entropy_change)}});
  }
  return facts;
}

void PairReport::add_looks() {
  for (const size_t place : all_standing(rules_)) {
    if (!watch_.time_left()) {
      parts_.lacks.emplace_back("--budget-time was over before all heads that stand out had maps");
      return;
    }
    const PairSide& side = sides_[static_cast<size_t>(names_[place].side)];
    parts_.looks.push_back(look_at(run_, heads_[place], place, sample_, {}, side.name));
  }
}

void PairReport::write() {
  begin();
  measure();
  compare();
  std::vector<HeadRecord> records;
  for (const MeasuredHead& head : heads_) {
    records.push_back(head.record);
    records.back().arrays.clear();
  }
  add_heads(parts_.facts, names_, columns_of(records), "");
  parts_.facts["not_reached"] = OrderedJson::array();
  for (const HeadName& name : not_reached_) {
    parts_.facts["not_reached"].push_back(head_words(name));
  }
  parts_.facts["stands_out"] = standing_facts(rules_);
  parts_.facts["diff"] = diff_facts();
  if (!heads_.empty()) parts_.maps = small_maps(heads_, parts_.lacks);
  add_looks();
  for (const PairSide& side : sides_) side.capture.require_unchanged();
  ReportAnswer answer{"", OrderedJson::array(), names_, rules_, not_reached_};
  for (size_t i = 0; i < records.size(); ++i) {
    answer.heads.push_back(head_json(records[i]));
    answer.heads.back()["side"] = names_[i].side;
  }
  for (const PairFound& pair : pairs_) {
    OrderedJson& json = answer.pairs.emplace_back(OrderedJson{{"a", pair.a}, {"b", pair.b}});
    json["js"] =
        pair.found.divergence_mean ? OrderedJson(*pair.found.divergence_mean) : OrderedJson();
  }
  watch_.require_going();
  write_report(o_, parts_, answer, console_);
}

}  // namespace

int report_pair(ReportRequest o, const Console& console) {
  for (const std::string& path : {o.capture.capture, o.second}) {
    if (is_number_table(path) || is_export_file(path)) {
      throw usage_error(path +
                        ": a page of two is one of two captures (attnscope diff compares tables "
                        "and exports)");
    }
  }
  const std::array<PairSide, 2> sides{open_pair_side(o, o.capture.capture, console),
                                      open_pair_side(o, o.second, console)};
  std::vector<std::filesystem::path> inputs = guarded_inputs(sides[0].capture);
  const std::vector<std::filesystem::path> more = guarded_inputs(sides[1].capture);
  inputs.insert(inputs.end(), more.begin(), more.end());
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  StreamRun run(o.run, memory_beside(sides[0].capture, o.run), console, "report");
  const MemoryReservation second =
      run.budget().reserve(counted_bytes(sides[1].capture), "the second capture's calls");
  PairReport report(o, sides, run, console);
  if (o.dry_run) {
    report.plan();
  } else {
    report.write();
  }
  return kExitOk;
}

}  // namespace attnscope
