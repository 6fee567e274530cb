#include "cli/report/report_about.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/info/info_guesses.h"
#include "cli/report/report_facts.h"
#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/base/selection.h"
#include "io/capture/facts/forward_log.h"
#include "io/check/self_check.h"

namespace attnscope {
namespace {

/// Values of one fact that a page lists.
constexpr size_t kListedValues = 6;
/// Calls whose recorded rows are looked at, and rows of their first head.
constexpr size_t kCheckedCalls = 16;
constexpr int64_t kCheckedRows = 8;

/// One of "recorded", "guessed", "told" and "found" for where a fact came from.
const char* how_known(const CallEntry& call, const char* fact) {
  const auto found = call.facts.find(fact);
  if (found == call.facts.end()) return "found";
  const std::string& origin = found->second.origin;
  if (origin == "recorded") return "recorded";
  return origin.starts_with("option") || origin == "preset" ? "told" : "guessed";
}

/// The values that calls have of a fact, each once, with how it is known.
class FactLines {
 public:
  explicit FactLines(const std::vector<SelectedCall>& calls) : calls_(calls) {}

  void add(const char* label, const char* fact,
           const std::function<std::string(const CallEntry&)>& text) {
    std::vector<std::pair<std::string, std::string>> values;
    for (const SelectedCall& selected : calls_) {
      const std::pair value(text(*selected.call), std::string(how_known(*selected.call, fact)));
      if (value.first.empty() || std::find(values.begin(), values.end(), value) != values.end()) {
        continue;
      }
      values.push_back(value);
    }
    for (size_t i = 0; i < std::min(values.size(), kListedValues); ++i) {
      add_line(label, values[i].first, values[i].second);
    }
    if (values.size() > kListedValues) {
      add_line(label, fmt::format("and {} other values", values.size() - kListedValues), "found");
    }
  }
  void add_line(const char* label, const std::string& text, const std::string& how) {
    json.push_back({{"label", label}, {"text", text}, {"how", how}});
  }

  OrderedJson json = OrderedJson::array();

 private:
  const std::vector<SelectedCall>& calls_;
};

std::string numbers_text(const std::set<int64_t>& values) {
  const std::vector<int64_t> list(values.begin(), values.end());
  return format_index_list(list);
}

/// Steps, layers, branches and how many heads are on the page.
void add_places(FactLines& lines, const std::vector<SelectedCall>& calls) {
  std::set<int64_t> steps, layers;
  std::set<std::string> branches, blocks;
  int64_t heads = 0;
  bool recorded = true;
  for (const SelectedCall& selected : calls) {
    const CallId& id = selected.call->id;
    const Unrecorded& unrecorded = id.place.unrecorded;
    recorded &= !unrecorded.any();
    if (!unrecorded.step) steps.insert(id.step);
    if (!unrecorded.layer && id.layer != kNoLayer) layers.insert(id.layer);
    if (!unrecorded.branch) branches.insert(id.branches.begin(), id.branches.end());
    if (!id.place.block.empty() && id.layer == kNoLayer) blocks.insert(id.place.block);
    heads += static_cast<int64_t>(selected.batch.size() * selected.heads.size());
  }
  const std::string first = calls.empty() ? "recorded" : how_known(*calls.front().call, "step");
  if (!steps.empty()) lines.add_line("steps", numbers_text(steps), first);
  if (!layers.empty()) {
    lines.add_line("layers", numbers_text(layers), how_known(*calls.front().call, "layer"));
  }
  if (!blocks.empty())
    lines.add_line("blocks", fmt::format("{}", fmt::join(blocks, ", ")), "recorded");
  if (!branches.empty()) {
    lines.add_line("branches", fmt::format("{}", fmt::join(branches, ", ")), "recorded");
  }
  lines.add_line("calls", std::to_string(calls.size()), "found");
  lines.add_line("heads", std::to_string(heads), "found");
  if (!recorded) lines.add_line("not recorded", "step, layer or branch of some calls", "found");
}

std::string tokens_line(const CallEntry& call) {
  const AttentionProblem& p = *call.problem;
  return fmt::format("{} queries, {} keys, head dimension {}", p.num_queries(), p.num_keys(),
                     p.head_dim());
}

std::string segments_line(const TokenGrid& tokens) {
  std::string text;
  for (const TokenSegment& segment : tokens.segments()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", segment.name, segment.tokens.size());
  }
  return text;
}

std::string call_words_of(const CallEntry& call) {
  return call_words(call.id.step, call.id.layer,
                    fmt::format("{}", fmt::join(call.id.branches, "+")), kind_name(call.id.kind),
                    call.id.place, ", ");
}

OrderedJson check_line(const OrderedJson& ok, const std::string& text) {
  return {{"ok", ok}, {"text", text}};
}

/// Calls that were looked at, by what came out.
struct CheckTally {
  int64_t agree = 0, nothing = 0;
  double error = 0, tolerance = 0;
  std::string reason, against;
  OrderedJson lines = OrderedJson::array();

  void add(const CallCheck& check) {
    switch (check.verdict) {
      case CheckVerdict::agrees:
        ++agree;
        against = check.against;
        if (check.error >= error) tolerance = check.tolerance;
        error = std::max(error, check.error);
        return;
      case CheckVerdict::nothing:
        ++nothing;
        reason = check.reason;
        return;
      case CheckVerdict::approximates:
        lines.push_back(check_line(
            true,
            fmt::format("{}: its kernel approximates ({}): error {}", call_words_of(*check.call),
                        check.call->approximation, number_words(check.error))));
        return;
      case CheckVerdict::differs:
        lines.push_back(check_line(
            false,
            check.refusal.empty()
                ? fmt::format("{}: recorded {} differ from those of q, k and the facts: error "
                              "{} (tolerance {}); attnscope verify looks for the cause",
                              call_words_of(*check.call), check.against, number_words(check.error),
                              number_words(check.tolerance, 2))
                : fmt::format("{}: {}", call_words_of(*check.call), check.refusal)));
        return;
    }
  }
};

}  // namespace

OrderedJson about_capture(const Capture& capture, const std::vector<SelectedCall>& calls) {
  FactLines lines(calls);
  lines.add("model", "model", [](const CallEntry& call) { return call.model; });
  lines.add("prompt", "prompt", [](const CallEntry& call) { return call.prompt; });
  add_places(lines, calls);
  lines.add("kind", "kind",
            [](const CallEntry& call) { return std::string(kind_name(call.id.kind)); });
  lines.add("tokens", "q", tokens_line);
  lines.add("grid", "grid", [](const CallEntry& call) {
    const TokenGrid& tokens = call.problem->query_tokens();
    return tokens.has_grid() ? fmt::format("{} x {} x {} (frames, rows, columns)", tokens.frames(),
                                           tokens.height(), tokens.width())
                             : std::string();
  });
  lines.add("text", "text", [](const CallEntry& call) {
    const IndexRange text = call.problem->key_tokens().text_range();
    return text.empty() ? std::string()
                        : fmt::format("{} tokens from {} on", text.size(), text.begin);
  });
  lines.add("segments", "queries",
            [](const CallEntry& call) { return segments_line(call.problem->query_tokens()); });
  lines.add("mask", "mask", [](const CallEntry& call) { return call.problem->mask().describe(); });
  lines.add("score", "score", [](const CallEntry& call) { return call.problem->score_words(); });
  lines.add("scale", "scale",
            [](const CallEntry& call) { return call.problem->scales().words(8); });
  lines.add("dtype", "q",
            [](const CallEntry& call) { return std::string(dtype_name(call.recorded_dtype())); });
  lines.add("layout", "layout", [](const CallEntry& call) {
    return std::string(layout_name(call.problem->q().layout()));
  });
  lines.add("state of q and k", "q_state", [](const CallEntry& call) {
    return call.q_state.empty() ? std::string("not recorded") : call.q_state;
  });
  if (!capture.frames().empty()) {
    lines.add_line("frames", fmt::format("{} pictures", capture.frames().size()), "recorded");
  }
  std::set<std::string> guesses;
  for (const SelectedCall& selected : calls) {
    for (const Guess& guess : guesses_of(*selected.call, capture.named_folder())) {
      if (guess.fact != "step" && guess.fact != "layer") guesses.insert(guess_text(guess));
    }
  }
  for (const std::string& guess : guesses) lines.add_line("guessed", guess, "guessed");
  std::set<std::string> unknown(capture.unknown_keys().begin(), capture.unknown_keys().end());
  for (const SelectedCall& selected : calls) {
    unknown.insert(selected.call->unknown_keys.begin(), selected.call->unknown_keys.end());
  }
  for (const std::string& key : unknown) {
    lines.add_line("not understood", without_folders(key, capture.path()), "recorded");
  }
  return std::move(lines.json);
}

OrderedJson check_for_report(const std::vector<SelectedCall>& calls, const CaptureOptions& options,
                             const CheckMeans& means, int threads, const std::stop_token& stop) {
  CheckTally tally;
  if (options.texts.mask || options.score != "softmax") {
    tally.lines.push_back(check_line(nullptr,
                                     "nothing was checked: the mask or the score was told, which "
                                     "asks for another map than was recorded"));
    return std::move(tally.lines);
  }
  const size_t count = std::min(calls.size(), kCheckedCalls);
  for (size_t i = 0; i < count; ++i) {
    const SelectedCall& selected = calls[(2 * i + 1) * calls.size() / (2 * count)];
    try {
      tally.add(check_call(*selected.call,
                           {.heads = 1,
                            .rows = kCheckedRows,
                            .batch_items = selected.batch,
                            .head_numbers = selected.heads},
                           means, threads, stop));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      tally.lines.push_back(check_line(false, call_words_of(*selected.call) + ": " + error.what()));
    }
  }
  if (tally.agree > 0) {
    tally.lines.push_back(check_line(
        true, fmt::format("{} of {} calls that were looked at agree with their recorded {}: "
                          "largest error {} (tolerance {})",
                          tally.agree, count, tally.against, number_words(tally.error, 2),
                          number_words(tally.tolerance, 2))));
  }
  if (tally.nothing > 0) {
    tally.lines.push_back(check_line(
        nullptr, fmt::format("{} of {} calls that were looked at have nothing to check against: {}",
                             tally.nothing, count, tally.reason)));
  }
  return std::move(tally.lines);
}

std::vector<std::string> problems_of(const Capture& capture) {
  std::vector<std::string> problems = capture.warnings();
  for (const Refusal& refusal : refusals(capture.log())) {
    const std::string place = refused_place(*refusal.first);
    problems.push_back(fmt::format("refused when it was recorded: {}{}: {}", refusal.count_text(),
                                   place.empty() ? "" : ", first " + place, refusal.why));
  }
  if (const int64_t partial = capture.log().partial_count(); partial > 0) {
    problems.push_back(
        fmt::format("{} forwards made fewer or other calls than the model has", partial));
  }
  for (std::string& problem : problems) problem = without_folders(problem, capture.path());
  return problems;
}

std::vector<std::string> missing_facts(const Capture& capture,
                                       const std::vector<SelectedCall>& calls) {
  int64_t no_grid = 0, no_text = 0, no_words = 0, not_normalised = 0, with_sinks = 0, no_state = 0;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& p = *selected.call->problem;
    no_grid += p.key_tokens().has_grid() && p.same_tokens() ? 0 : 1;
    const bool has_text = !p.key_tokens().text_range().empty();
    no_text += has_text ? 0 : 1;
    no_words += has_text && selected.call->tokens.empty() ? 1 : 0;
    not_normalised += is_normalised(p.score()) ? 0 : 1;
    with_sinks += p.sinks().is_none() ? 0 : 1;
    no_state += selected.call->q_state.empty() ? 1 : 0;
  }
  std::vector<std::string> lines;
  const auto add = [&](int64_t count, const char* what) {
    if (count == 0) return;
    const bool all = count == std::ssize(calls);
    lines.push_back(all ? std::string(what)
                        : fmt::format("of {} of {} calls: {}", count, calls.size(), what));
  };
  add(no_grid,
      "queries and keys are not the tokens of one known grid: no same_frame_mass, temporal_score "
      "and local_mass (--grid TxHxW tells a grid)");
  add(no_text, "no text among the keys: no text_mass and no words");
  add(no_words, "the text's strings are not recorded: words are numbers");
  add(not_normalised,
      "scores whose rows do not add up to 1: no entropy, no class and no comparison of heads");
  add(with_sinks,
      "sinks have a part of each row: shares are of the whole, entropy is of the mass on keys, and "
      "there is no class and no comparison of heads");
  add(no_state, "what was applied to q and k (norms, RoPE) is not recorded");
  if (capture.frames().empty()) lines.emplace_back("no pictures of the video are recorded");
  return lines;
}

}  // namespace attnscope
