#include "cli/report/report_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/shell_words.h"
#include "cli/common/unknown_state.h"
#include "cli/report/report_about.h"
#include "cli/report/report_heads.h"
#include "cli/report/report_looks.h"
#include "cli/report/report_output.h"
#include "cli/report/report_parts.h"
#include "cli/report/report_plan.h"
#include "cli/report/report_sparsity.h"
#include "cli/report/report_watch.h"
#include "cli/report/report_words.h"
#include "cli/report/report_work.h"
#include "cli/report/standing_heads.h"
#include "cli/run/call_heads.h"
#include "cli/run/head_where.h"
#include "cli/run/run_steps.h"
#include "core/base/error.h"
#include "io/capture/capture_guard.h"
#include "io/files/output_file.h"
#include "io/results/head_json.h"
#include "web/figure/head/figure_refusal.h"

namespace attnscope {
namespace {

/// The page of one capture on its way.
class CaptureReport {
 public:
  CaptureReport(const ReportRequest& o, const Capture& capture, StreamRun& run,
                const std::vector<SelectedCall>& calls, const Console& console)
      : o_(o),
        capture_(capture),
        run_(run),
        calls_(calls),
        console_(console),
        input_(file_name(capture.path())),
        sample_(rows_of_report(o.sample, calls)),
        watch_(o, console) {
    run_.stand_under(watch_.stop());
  }

  void plan();
  void write();

 private:
  StatsChoice choice() const {
    StatsChoice choice;
    choice.sample = sample_;
    return choice;
  }
  int64_t expected_bytes() const;
  MeasureMeans means() const {
    return {run_, console_, watch_.stop(), [this] { return watch_.time_left(); }};
  }
  void begin();
  void measure();
  void add_sections();
  void add_looks(const std::vector<int64_t>& pictures);
  void add_measured_sections(const std::vector<int64_t>& pictures);
  void add_figures();
  std::string hash() const;
  std::string figure_title(const MeasuredHead& head) const;

  const ReportRequest& o_;
  const Capture& capture_;
  StreamRun& run_;
  const std::vector<SelectedCall>& calls_;
  const Console& console_;
  const std::string input_;
  const int64_t sample_;
  const ReportWatch watch_;

  ReportParts parts_;
  MeasuredMemory held_;
  MeasuredHeads measured_;
  std::vector<HeadRecord> records_;
  std::vector<ReportHead> heads_;
  std::vector<StandingRule> rules_;
};

int64_t CaptureReport::expected_bytes() const {
  const int64_t heads = head_count(calls_);
  constexpr int64_t kFactBytes = 1 << 10;
  const int64_t maps = encoded_bytes(heads * kSmallMapCells * kSmallMapCells) + heads * kFactBytes;
  const int64_t looks = std::min(heads, kMostLooks) * encoded_bytes(2 * kLookCells * kLookCells);
  return std::min(o_.most_bytes(), report_frame_bytes(true) + maps + looks + o_.most_bytes() / 4);
}

/// What a run would take, which this does not do.
void CaptureReport::plan() {
  PassCost cost = cost_of_heads(calls_, sample_);
  cost.add(cost_of_sections(calls_, sample_, o_.most_bytes() / 5));
  RunPlan plan = plan_of_passes(run_, o_.run, calls_, sample_, cost);
  set_page_bytes(plan, expected_bytes(), true);
  print_plan(plan, o_.json);
}

void CaptureReport::begin() {
  const std::string& model = capture_.model();
  parts_.facts = first_facts(o_, "capture", model.empty() ? input_ : model);
  parts_.facts["about"] = about_capture(capture_, calls_);
  if (sample_ > 0) parts_.facts["sample"] = {{"rows", sample_}};
  parts_.problems = problems_of(capture_);
  parts_.lacks = missing_facts(capture_, calls_);
  if (sample_ > 0 && o_.sample == 0) {
    parts_.lacks.push_back(fmt::format(
        "numbers and maps are from {} evenly spread rows of each head, for all rows would take "
        "more than {}FLOP (--sample N takes other numbers of rows)",
        sample_, format_count(kSoonFlops)));
  }
}

void CaptureReport::measure() {
  held_ = reserve_heads(run_.budget(), calls_, sample_);
  measured_ = measure_for_report(means(), choice(), calls_);
  held_.rows = MemoryReservation();
  for (const std::string& problem : measured_.problems) {
    parts_.problems.push_back(without_folders(problem, capture_.path()));
  }
  if (!find_own_ways(means(), measured_.heads)) {
    parts_.lacks.push_back(
        "--budget-time was over before all heads were compared with the others "
        "of their call");
  }
  for (const MeasuredHead& head : measured_.heads) {
    records_.push_back(head.record);
    heads_.push_back(
        {head.record.name, std::string(head_class_name(head.record.metrics.head_class)), 0});
  }
  std::vector<StandingNumbers> numbers;
  for (const MeasuredHead& head : measured_.heads) numbers.push_back({&head.record, head.own_way});
  rules_ = standing_heads(numbers);
}

void CaptureReport::add_sections() {
  std::string command = "attnscope stats " + shell_word(input_) + selection_words(o_.selection);
  if (sample_ > 0) command += fmt::format(" --sample {}", sample_);
  add_heads(parts_.facts, heads_, columns_of(records_), command);
  parts_.facts["not_reached"] = OrderedJson::array();
  for (const HeadName& name : measured_.not_reached) {
    parts_.facts["not_reached"].push_back(head_words(name));
  }
  if (!measured_.not_reached.empty()) {
    parts_.lacks.push_back(fmt::format("--budget-time was over: {} were not reached",
                                       heads_text(std::ssize(measured_.not_reached))));
  }
  parts_.facts["stands_out"] = standing_facts(rules_);
  if (!measured_.heads.empty()) parts_.maps = small_maps(measured_.heads, parts_.lacks);
  parts_.pictures = read_pictures(capture_, run_.budget(), parts_.problems);
}

/// Words over the frames, and how few keys would do.
void CaptureReport::add_measured_sections(const std::vector<int64_t>& pictures) {
  if (!watch_.time_left()) {
    parts_.lacks.emplace_back("--budget-time was over: no words over the frames, no sparsity");
    return;
  }
  ReportWork work{run_,         capture_,
                  calls_,       records_,
                  sample_,      [this] { return watch_.time_left(); },
                  pictures,     shell_word(input_),
                  watch_.stop()};
  parts_.words = words_section(work, parts_.lacks);
  parts_.sparsity = sparsity_section(work, parts_.lacks);
}

void CaptureReport::add_looks(const std::vector<int64_t>& pictures) {
  const std::vector<size_t> places = all_standing(rules_);
  for (const size_t place : places) {
    if (!watch_.time_left()) {
      parts_.lacks.push_back(fmt::format(
          "--budget-time was over: {} of the {} heads that stand out have no larger map",
          places.size() - parts_.looks.size(), places.size()));
      return;
    }
    parts_.looks.push_back(look_at(run_, measured_.heads[place], place, sample_, pictures, input_));
  }
}

std::string CaptureReport::figure_title(const MeasuredHead& head) const {
  const std::string& model = head.call->model;
  return fmt::format("{}, {}", model.empty() ? input_ : model, head_words(head.record.name));
}

/// Figures in the order of the page, while they fit into a fifth of --max-size and what is left of
/// it.
void CaptureReport::add_figures() {
  const int64_t frame = report_frame_bytes(true) - report_frame_bytes(false);
  const int64_t most =
      std::min(o_.most_bytes() / 5, o_.most_bytes() - parts_.bytes() - frame - (4 << 10));
  int64_t used = 0;
  size_t tried = 0;
  std::string why;
  for (const ReportLook& look : parts_.looks) {
    if (tried++ == kMostFigures) break;
    if (!watch_.time_left()) {
      why = "--budget-time was over";
      break;
    }
    const MeasuredHead& head = measured_.heads[look.head];
    try {
      auto figure = make_held_figure(run_, head, look.head, most - used, parts_.figures.empty(),
                                     input_, figure_title(head));
      if (!figure) {
        why = fmt::format("figures take at most a fifth of {}", o_.size_option());
        break;
      }
      used += figure->bytes;
      if (figure->stride > 1) {
        parts_.lacks.push_back(
            fmt::format("the exact map of {} has one query and one key in {}, to fit {}",
                        head_words(head.record.name), figure->stride, o_.size_option()));
      }
      parts_.figures.push_back(std::move(figure));
    } catch (const FigureRefusal& refusal) {
      parts_.lacks.push_back(
          fmt::format("no exact map of {}: {}", head_words(head.record.name), refusal.what()));
    }
  }
  if (!why.empty()) {
    const size_t there = parts_.figures.size();
    parts_.lacks.push_back((there == 0
                                ? "no exact maps: "
                                : fmt::format("exact maps of {} alone: ", heads_text(there))) +
                           why);
  }
}

std::string CaptureReport::hash() const {
  return capture_.content_hash(calls_, false, watch_.stop());
}

void CaptureReport::write() {
  console_.say(fmt::format("report of {}: {}{}", input_, heads_text(head_count(calls_)),
                           sample_ > 0 ? fmt::format(", {} rows of each", sample_) : ""));
  begin();
  if (watch_.time_left()) {
    parts_.facts["checks"] = check_for_report(calls_, o_.capture, {run_.backend(), run_.budget()},
                                              run_.workers(), watch_.stop());
  }
  measure();
  add_sections();
  const std::vector<int64_t> pictures = places_of_pictures(parts_.pictures);
  add_looks(pictures);
  add_measured_sections(pictures);
  std::string digest;
  if (watch_.time_left()) digest = hash();
  if (!digest.empty()) parts_.facts["capture_hash"] = digest;
  fit_page(parts_, o_.most_bytes(), o_.size_option());
  add_figures();
  capture_.require_unchanged();
  ReportAnswer answer{digest, OrderedJson::array(), heads_, rules_, measured_.not_reached};
  if (o_.json) {
    for (HeadRecord& record : records_) {
      record.arrays.clear();
      answer.heads.push_back(head_json(record));
    }
  }
  watch_.require_going();
  write_report(o_, parts_, answer, console_);
}

}  // namespace

int report_capture(ReportRequest o, const Console& console) {
  const Capture capture = open_capture(o.capture, o.run, console);
  StreamRun run(o.run, memory_beside(capture, o.run), console, "report");
  settle_where(o.selection, capture, o.run, console, o.dry_run);
  const std::vector<SelectedCall> calls = select_and_tell(capture, o.selection, console);
  OutputFile::check_target(o.out, {.force = o.force, .inputs = guarded_inputs(capture)});
  CaptureReport report(o, capture, run, calls, console);
  if (o.dry_run) {
    report.plan();
  } else {
    report.write();
  }
  return kExitOk;
}

}  // namespace attnscope
