#include "cli/verify/verify_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "cli/common/left_out_names.h"
#include "cli/run/call_heads.h"
#include "cli/run/head_where.h"
#include "cli/run/run_backend.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/capture/computable.h"
#include "io/check/self_check.h"
#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// A search costs as much as hundreds of checks: the first calls that differ tell enough.
constexpr int kMostSearches = 3;

struct Report {
  std::string path;
  int64_t calls_left_out = 0;  ///< that cannot be read
  std::vector<CallCheck> checks;
  ForwardLog log = {};
  int64_t count(CheckVerdict verdict) const {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const CallCheck& check) { return check.verdict == verdict; });
  }
  /// Calls that recorded something to compare with.
  int64_t checked() const {
    return static_cast<int64_t>(checks.size()) - count(CheckVerdict::nothing);
  }
  /// Null where nothing was checked.
  std::optional<bool> good() const {
    if (count(CheckVerdict::differs) > 0 || calls_left_out > 0) return false;
    if (!log.refused.empty() || log.partial_count() > 0) return false;
    return checked() > 0 ? std::optional(true) : std::nullopt;
  }
};

int exit_code(const Report& report, bool strict) {
  return report.good().value_or(!strict) ? kExitOk : kExitDifference;
}

std::string branch_names(const CallEntry& call) {
  return fmt::format("{}", fmt::join(call.id.branches, "+"));
}

std::string call_name(const CallEntry& call) {
  return call_words(call.id.step, call.id.layer, branch_names(call), kind_name(call.id.kind),
                    call.id.place, ", ");
}

OrderedJson check_json(const CallCheck& check) {
  const CallId& id = check.call->id;
  OrderedJson json;
  json["file"] = check.call->file.string();
  const Unrecorded& unrecorded = id.place.unrecorded;
  const bool no_layer = unrecorded.layer || id.layer == kNoLayer;
  json["step"] = unrecorded.step ? OrderedJson() : OrderedJson(id.step);
  json["layer"] = no_layer ? OrderedJson() : OrderedJson(id.layer);
  add_place(json, id.place);
  json["branch"] = unrecorded.branch ? OrderedJson() : OrderedJson(branch_names(*check.call));
  json["kind"] = kind_name(id.kind);
  json["verdict"] = verdict_name(check.verdict);
  json["against"] = check.against.empty() ? OrderedJson() : OrderedJson(check.against);
  const bool compared = check.verdict != CheckVerdict::nothing;
  json["error"] = compared ? OrderedJson(check.error) : OrderedJson();
  json["tolerance"] = compared ? OrderedJson(check.tolerance) : OrderedJson();
  if (compared) {
    json["heads"] = check.heads_checked;
    json["heads_differing"] = check.heads_differing;
    json["rows"] = check.rows_checked;
    json["worst"] = {{"batch", check.batch}, {"head", check.head}, {"row", check.row}};
  }
  if (!check.head_errors.empty()) {
    json["approximation"] = check.call->approximation;
    OrderedJson& heads = json["head_errors"] = OrderedJson::array();
    for (const CallCheck::HeadError& e : check.head_errors) {
      OrderedJson& head = heads.emplace_back(name_json(head_name(id, e.batch, e.head)));
      head["mean"] = e.mean;
      head["worst"] = e.worst;
    }
  }
  json["culprit"] = check.suspect ? OrderedJson(check.suspect->culprit) : OrderedJson();
  json["explanation"] =
      check.suspect ? OrderedJson(check.suspect->explanation) : OrderedJson(check.reason);
  return json;
}

/// How far a kernel that approximates is from exact attention: no alarm, a measurement.
void print_approximation(const CallCheck& check) {
  double sum = 0;
  const CallCheck::HeadError* worst = &check.head_errors.front();
  for (const CallCheck::HeadError& e : check.head_errors) {
    sum += e.mean;
    if (e.mean > worst->mean) worst = &e;
  }
  fmt::print(
      "approximates: {}: {}: mean error {:.3g} over {} heads; worst: batch item {}, head {}: mean "
      "{:.3g}, a row {:.3g}\n",
      call_name(*check.call), one_line(check.call->approximation),
      sum / static_cast<double>(check.head_errors.size()), check.head_errors.size(), worst->batch,
      worst->head, worst->mean, worst->worst);
}

/// Adds what was refused, and the forwards that lack calls.
void add_log(OrderedJson& json, const ForwardLog& log) {
  ForwardLog refused;
  refused.refused_json = log.refused_json;
  add_forward_log(json, refused);
  if (log.partial_count() == 0) return;
  OrderedJson& partial = json["partial_forwards"] = OrderedJson::array();
  for (const OrderedJson& entry : OrderedJson::parse(log.forwards_json)) {
    if (entry.value("partial", false)) partial.push_back(entry);
  }
}

/// Says what the recorder refused, reason by reason, and which forwards lack calls.
void print_log(const ForwardLog& log) {
  for (const Refusal& refusal : refusals(log)) {
    const std::string place = refused_place(*refusal.first);
    const bool several = refusal.calls + refusal.forwards > 1;
    fmt::print("refused: {}{}: {}\n", refusal.count_text(),
               place.empty() ? "" : (several ? ", first " : ", ") + place, one_line(refusal.why));
  }
  for (const ForwardRecord& record : log.forwards) {
    if (!record.partial) continue;
    fmt::print("partial: forward {} of {}{}{}: fewer or other calls than the model has\n",
               record.forward, one_line(record.transformer),
               record.step ? fmt::format(", step {}", *record.step) : "",
               record.calls ? fmt::format(", {} recorded", *record.calls) : "");
  }
}

void print_report(const Report& report, const VerifyCaptureRequest& request) {
  if (request.json) {
    OrderedJson json;
    json["format"] = "attnscope-verify/1";
    json["file"] = report.path;
    const std::optional<bool> good = report.good();
    json["good"] = good ? OrderedJson(*good) : OrderedJson();
    json["checked"] = report.checked();
    add_left_out(json, request.capture);
    json["calls"] = OrderedJson::array();
    for (const CallCheck& check : report.checks) json["calls"].push_back(check_json(check));
    add_log(json, report.log);
    print_json(json, true);
    return;
  }
  print_log(report.log);
  const CallCheck* worst = nullptr;
  std::set<std::string> reasons;
  for (const CallCheck& check : report.checks) {
    if (check.verdict == CheckVerdict::nothing) reasons.insert(check.reason);
    if (check.verdict == CheckVerdict::agrees && (worst == nullptr || check.error > worst->error)) {
      worst = &check;
    }
    if (check.verdict == CheckVerdict::approximates) print_approximation(check);
    if (check.verdict != CheckVerdict::differs) continue;
    fmt::print(
        "differs: {}: {} of {} heads; worst: batch item {}, head {}, row {}: error {:.3g} "
        "(tolerance {:.2g})\n",
        call_name(*check.call), check.heads_differing, check.heads_checked, check.batch, check.head,
        check.row, check.error, check.tolerance);
    if (check.suspect) {
      fmt::print("  {}: {}\n", check.suspect->culprit, one_line(check.suspect->explanation));
    }
  }
  for (const std::string& reason : reasons) {
    fmt::print("{}nothing recorded to check against: {} of {} calls: {}\n",
               report.checked() == 0 ? "nothing was checked: " : "",
               std::count_if(report.checks.begin(), report.checks.end(),
                             [&](const CallCheck& check) { return check.reason == reason; }),
               report.checks.size(), one_line(reason));
  }
  if (worst != nullptr) {
    fmt::print(
        "agrees: {} of {} calls; {} {} of {} heads each; largest error {:.2g} (tolerance {:.2g})\n",
        report.count(CheckVerdict::agrees), report.checks.size(), worst->rows_checked,
        worst->against == "LSE" ? "LSEs" : "output rows", worst->heads_checked, worst->error,
        worst->tolerance);
  }
}

Report check_all(const Capture& capture, const VerifyCaptureRequest& request,
                 const CheckMeans& means, const Console& console, std::stop_token stop) {
  std::vector<std::string> missing;
  const auto selected = capture.select(parse_selection(request.selection), &missing);
  for (const std::string& line : missing) console.warn("warning: " + line);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Report report{capture.path().string(), capture.calls_left_out(), {}, capture.log()};
  Progress progress(
      console, "verify", static_cast<int64_t>(selected.size()),
      static_cast<double>(head_count(selected)) / static_cast<double>(selected.size()), "heads");
  int searches = 0;
  for (const SelectedCall& s : selected) {
    CallCheck check = check_call(*s.call, {.batch_items = s.batch, .head_numbers = s.heads}, means,
                                 request.run.threads > 0 ? request.run.threads : cores, stop);
    if (check.verdict == CheckVerdict::differs) {
      check.suspect = searches < kMostSearches
                          ? find_culprit(check, capture, stop)
                          : Suspect{"unknown", "not searched; see the first calls that differ", 0};
      ++searches;
    }
    report.checks.push_back(std::move(check));
    progress.update(static_cast<int64_t>(report.checks.size()));
  }
  return report;
}

/// A capture that does not open as it is recorded, but does, and agrees, with heads and tokens
/// exchanged.
std::optional<Report> check_exchanged(const VerifyCaptureRequest& request, const CheckMeans& means,
                                      const Console& console, const std::string& complaint,
                                      std::stop_token stop) {
  if (request.capture.texts.layout || request.capture.capture.empty()) return std::nullopt;
  for (const char* layout : {"bshd", "bhsd", "shd", "hsd"}) {
    FactOverrides overrides = fact_overrides(request.capture);
    overrides.layout = layout;
    std::optional<Capture> capture;
    try {
      capture.emplace(Capture::open(request.capture.capture, overrides,
                                    read_control(request.capture, request.run, console)));
      require_computable(*capture);
    } catch (const Error&) {
      continue;
    }
    Report report = check_all(*capture, request, means, console, stop);
    if (report.count(CheckVerdict::agrees) == 0 || report.count(CheckVerdict::differs) > 0) {
      continue;
    }
    for (CallCheck& check : report.checks) {
      if (check.verdict != CheckVerdict::agrees) continue;
      check.verdict = CheckVerdict::differs;
      check.heads_differing = check.heads_checked;
      check.suspect = Suspect{
          "layout",
          fmt::format("as recorded it does not open ({}); with layout {} it does, and agrees "
                      "(--layout {})",
                      complaint, layout, layout),
          check.error};
    }
    capture->require_unchanged();
    print_report(report, request);
    return report;
  }
  return std::nullopt;
}

}  // namespace

int verify_capture(VerifyCaptureRequest request, const Console& console) {
  const auto score = parse_score(request.capture.score);
  if (score && !is_softmax(*score)) {
    throw usage_error("--score " + request.capture.score +
                      ": recorded outputs are a softmax's; verify has no other score");
  }
  std::optional<InterruptWatch> interrupts(std::in_place, console);
  const RunBackend backend = make_run_backend(request.run, console);
  MemoryBudget budget(memory_limit(request.run));
  const CheckMeans means{*backend, budget};
  std::optional<Capture> capture;
  try {
    capture.emplace(open_capture(request.capture, request.run, console));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    if (check_exchanged(request, means, console, error.what(), interrupts->token())) {
      return kExitDifference;
    }
    throw;
  }
  const MemoryReservation held = budget.reserve(counted_bytes(*capture), "the capture's calls");
  if (asks_for_numbers(request.selection)) {
    // It watches for itself.
    interrupts.reset();
    settle_where(request.selection, *capture, request.run, console);
    interrupts.emplace(console);
  }
  const Report report = check_all(*capture, request, means, console, interrupts->token());
  capture->require_unchanged();
  print_report(report, request);
  return exit_code(report, request.strict);
}

}  // namespace attnscope
