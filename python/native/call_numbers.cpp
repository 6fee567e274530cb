#include "python/native/call_numbers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "cli/common/cache_option.h"
#include "cli/run/kept_numbers.h"
#include "cli/run/stats_jobs.h"
#include "core/base/error.h"
#include "core/heads/head_record_sink.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/scored_blocks.h"
#include "core/problem/signed_weights.h"
#include "core/stream/logit_check.h"
#include "io/masks/mask_choice.h"
#include "python/native/opened_capture.h"

namespace attnscope {
namespace {

using Words = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int64_t whole_number(const Words& words, const char* name, int64_t otherwise, int64_t least) {
  const auto found = words.find(name);
  if (found == words.end()) return otherwise;
  int64_t value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  if (error != std::errc() || stop != end || value < least) {
    throw usage_error(std::string(name) + " " + one_line(found->second) +
                      ": expected a whole number of at least " + std::to_string(least));
  }
  return value;
}

std::vector<HeadTask> tasks_of(std::span<const ReductionJob> jobs) {
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : jobs) tasks.push_back(job.task);
  return tasks;
}

std::vector<HeadRecord> measure(const StatsJobs& s, const StatsOptions& o, EngineRun& run) {
  if (s.jobs.empty()) return {};
  const std::vector<HeadTask> tasks = tasks_of(s.jobs);
  run.check_values(tasks);
  check_logits(tasks, run.backend(), run.budget(), run.watch().stop());
  std::vector<HeadRecord> records;
  const StatsChoice choice = o.choice();
  HeadRecordSink sink(s.jobs, {choice.arrays, choice.thresholds, s.tokens},
                      [&](HeadRecord record) { records.push_back(std::move(record)); });
  run.reduce(s.jobs, sink, HeadRecordSink::head_bytes(choice.arrays, s.jobs));
  sort_records(records, HeadOrder::parse(o.sort));
  return records;
}

}  // namespace

HeadRecords settle_where(SelectionOptions& selection, const StatsOptions& numbers,
                         const Capture& capture, EngineRun& run) {
  if (!asks_for_numbers(selection)) return {};
  WhereQuestion question(selection, capture);
  if (const std::vector<SelectedCall> calls = question.open_calls(); !calls.empty()) {
    StatsOptions own = numbers;
    own.extras.clear();
    const StatsChoice choice = own.choice();
    KeptNumbers kept(cache_folders(selection.cache, capture), calls,
                     capture.call_hashes(calls, false, run.watch().stop()), choice, run.backend());
    const HeadRecords known = kept.load();
    HeadRecords fresh;
    for (HeadRecord& record : measure(question.ask(known, choice), own, run)) {
      const HeadName name = record.name;
      fresh.emplace(name, std::move(record));
    }
    capture.require_unchanged();
    question.add(fresh);
    // Who asks again computes again where nothing can be written.
    if (kept.enabled()) kept.store(known, fresh);
  }
  selection.holding = std::make_shared<const std::set<HeadName>>(question.holding());
  return question.records();
}

std::vector<HeadRecord> measure_capture(const Capture& capture, const StatsOptions& asked,
                                        EngineRun& run) {
  StatsOptions o = asked;
  HeadRecords known = settle_where(o.selection, o, capture, run);
  if (!o.extras.empty()) known.clear();
  StatsJobs jobs = make_stats_jobs(o.choice(), capture.select(parse_selection(o.selection)));
  std::vector<int64_t> there;
  for (size_t i = 0; i < jobs.jobs.size(); ++i) {
    const HeadTask& task = jobs.jobs[i].task;
    if (known.count(head_name(task.problem->id(), task.batch, task.head)) != 0) {
      there.push_back(static_cast<int64_t>(i));
    }
  }
  drop_jobs(jobs, there);
  std::vector<HeadRecord> records = measure(jobs, o, run);
  for (auto& [name, record] : known) records.push_back(std::move(record));
  sort_records(records, HeadOrder::parse(o.sort));
  if (o.top && *o.top < std::ssize(records)) records.erase(records.begin() + *o.top, records.end());
  capture.require_unchanged();
  return records;
}

std::vector<HeadRecord> measure_call(const CallHandle& call, std::span<const HeadPlace> heads,
                                     const StatsOptions& o, EngineRun& run) {
  std::map<int64_t, std::vector<int64_t>> items;
  for (const HeadPlace& place : heads) items[place.batch].push_back(place.head);
  std::vector<SelectedCall> calls;
  for (auto& [batch, numbers] : items) calls.push_back({call.entry.get(), {batch}, numbers});
  return measure(make_stats_jobs(o.choice(), std::move(calls)), o, run);
}

StatsOptions stats_options_of_words(const std::map<std::string, std::string>& words) {
  StatsOptions o;
  Words selection;
  for (const auto& [name, value] : words) {
    if (name == "exact") {
      o.exact = value == "yes";
    } else if (name == "threshold") {
      o.thresholds = split(value);
    } else if (name == "with") {
      o.extras = split(value);
    } else if (name == "sort") {
      o.sort = value;
    } else if (name != "sample" && name != "band" && name != "top") {
      selection[name] = value;
    }
  }
  o.sample = whole_number(words, "sample", 0, 1);
  o.band = whole_number(words, "band", -1, 0);
  if (words.count("top") != 0) o.top = whole_number(words, "top", 0, 1);
  o.selection = selection_of_words(selection);
  check_measure(o);
  return o;
}

void check_measure(const StatsOptions& options) {
  StatsOptions o = options;
  o.json = true;  // Arrays have a place to go.
  check_stats_options(o);
  parse_thresholds(o);
}

std::vector<MaskQuality> measure_masks_of(const CallHandle& call, const HeadPlace& place,
                                          const MaskWords& words, EngineRun& run,
                                          std::vector<std::string>* others) {
  const AttentionProblem& problem = call.problem();
  require_one_sign(problem, "a share that a mask keeps");
  if (!is_normalised(problem.score())) {
    throw usage_error("mask: rows of sigmoid scores do not sum to 1, so no share of them is kept");
  }
  const std::vector<HeadTask> tasks = whole_heads(call, std::span(&place, 1));
  run.check_values(tasks);
  const SelectedHead head{place.batch, place.head, {&place.head, 1}};
  std::vector<MaskChoice> choices;
  int64_t bytes = 0, scores = 0;
  for (const std::string& text : words.masks) {
    BlockSize block;
    if (words.block > 0) block.told = words.block;
    choices.push_back(
        MaskChoice::parse(text, block, run.budget(), words.lab ? "--edit" : "--mask"));
    choices.back().check(problem, head.selected, {run.backend(), run.budget()});
    const std::string other = choices.back().other_head(problem, head);
    if (others != nullptr && !other.empty()) {
      others->push_back("mask " + one_line(text) + ": is the mask of " + other);
    }
    bytes += choices.back().bytes(problem);
    if (words.lab)
      scores = std::max(scores, choices.back().least_build_bytes(problem, run.backend()));
  }
  const MemoryReservation reserved = run.budget().reserve(bytes + scores, "the masks of a head");
  ScoreKeeper keeper;
  const MaskResources resources{run.backend(), run.budget(), run.watch().stop(),
                                words.lab ? &keeper : nullptr};
  const MaskMeasurement how{run.backend(), run.budget(), run.watch().stop(), words.exact};
  const auto progress = [&](double share) { run.watch().progress(share); };
  std::vector<MeasuredEdit> edits;
  for (const MaskChoice& choice : choices) {
    edits.push_back({choice.build(problem, head, resources), choice.own_block()});
  }
  if (words.lab) return measure_edits(tasks.front(), edits, how, progress);
  std::vector<Mask> masks;
  for (const MeasuredEdit& edit : edits) masks.push_back(edit.mask);
  return measure_masks(tasks.front(), masks, how, progress);
}

}  // namespace attnscope
