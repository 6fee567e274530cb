#include "cli/info/info_forwards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/selection.h"

namespace attnscope {
namespace {

/// More lines than these say how many are left out.
constexpr size_t kMostLines = 8;

using Forwards = std::vector<const ForwardRecord*>;

/// True where all have the number, and it is one for all (`alike`) or another for each.
template <class Number>
bool all_have(const Forwards& forwards, bool alike, std::optional<Number> ForwardRecord::*member) {
  std::set<Number> values;
  for (const ForwardRecord* record : forwards) {
    if (!(record->*member)) return false;
    values.insert(*(record->*member));
  }
  return values.size() == (alike ? 1 : forwards.size());
}

/// ", equal latents", ", other latents"; empty where it is not known.
std::string content_text(const Forwards& forwards, const char* name,
                         std::optional<int64_t> ForwardRecord::*member) {
  if (all_have(forwards, true, member)) return fmt::format(", equal {}", name);
  if (all_have(forwards, false, member)) return fmt::format(", other {}", name);
  return "";
}

/// The facts that the forwards of one step share, and how their branches could be told.
std::string kind_text(const Forwards& forwards) {
  std::set<std::string> branches;
  bool told = true;
  for (const ForwardRecord* record : forwards) {
    told &= !record->branches.empty();
    branches.insert(fmt::format("{}", fmt::join(record->branches, "+")));
  }
  const std::string names =
      told ? fmt::format("branch{} {}", branches.size() == 1 ? "" : "es", fmt::join(branches, ", "))
           : "";
  if (forwards.size() < 2) return told ? ": " + names : ": nothing tells its branch";
  std::string text;
  if (all_have(forwards, true, &ForwardRecord::timestep)) {
    text = " at the same timestep";
  } else if (all_have(forwards, false, &ForwardRecord::timestep)) {
    text = " at other timesteps";
  }
  text += content_text(forwards, "latents", &ForwardRecord::latents);
  text += content_text(forwards, "text", &ForwardRecord::text);
  if (told) return text + ": " + names;
  const bool guided = all_have(forwards, true, &ForwardRecord::latents) &&
                      all_have(forwards, false, &ForwardRecord::text);
  if (!guided) return text + ": nothing tells their branches";
  return text + fmt::format(": {} branches; nothing tells which",
                            forwards.size() == 2 ? "two" : std::to_string(forwards.size()));
}

std::string chosen_text(const Forwards& forwards) {
  const auto chosen = std::count_if(forwards.begin(), forwards.end(),
                                    [](const ForwardRecord* record) { return record->chosen; });
  if (chosen == static_cast<int64_t>(forwards.size())) return "";
  return chosen == 0 ? " (not chosen)" : fmt::format(" ({} chosen)", chosen);
}

/// Forwards of one model whose steps are all of one kind.
struct ForwardKind {
  std::string of, text;
  size_t a_step = 0;
  std::vector<int64_t> steps;
};

std::string model_text(const ForwardRecord& record) {
  return record.transformer + (record.context.empty() ? "" : " in " + record.context);
}

std::string kind_line(const ForwardKind& kind) {
  const std::string count =
      fmt::format("{} forward{} a step", kind.a_step, kind.a_step == 1 ? "" : "s");
  return fmt::format("forwards: {} of {}, step{} {}{}", count, kind.of,
                     kind.steps.size() == 1 ? "" : "s", format_index_list(kind.steps), kind.text);
}

std::vector<std::string> kind_lines(const ForwardLog& log) {
  std::map<std::pair<std::string, std::optional<int64_t>>, Forwards> of_step;
  for (const ForwardRecord& record : log.forwards) {
    of_step[{model_text(record), record.step}].push_back(&record);
  }
  std::vector<std::string> lines;
  std::vector<ForwardKind> kinds;
  for (const auto& entry : of_step) {
    const std::string& of = entry.first.first;
    const std::optional<int64_t>& step = entry.first.second;
    const Forwards& forwards = entry.second;
    if (!step) {
      lines.push_back(fmt::format("forwards: {} of {}: nothing tells their steps{}",
                                  forwards.size(), of, chosen_text(forwards)));
      continue;
    }
    const std::string text = kind_text(forwards) + chosen_text(forwards);
    auto known = std::find_if(kinds.begin(), kinds.end(), [&](const ForwardKind& kind) {
      return kind.of == of && kind.text == text && kind.a_step == forwards.size();
    });
    if (known == kinds.end()) known = kinds.insert(known, {of, text, forwards.size(), {}});
    known->steps.push_back(*step);
  }
  for (const ForwardKind& kind : kinds) lines.push_back(kind_line(kind));
  return lines;
}

void add_limited(std::vector<std::string>& lines, std::vector<std::string> more, const char* what) {
  const size_t left_out = more.size() > kMostLines ? more.size() - kMostLines : 0;
  more.resize(more.size() - left_out);
  lines.insert(lines.end(), more.begin(), more.end());
  if (left_out > 0) lines.push_back(fmt::format("{}: {} more (--json has all)", what, left_out));
}

}  // namespace

std::vector<std::string> forward_lines(const ForwardLog& log) {
  std::vector<std::string> lines;
  add_limited(lines, kind_lines(log), "forwards");
  std::vector<int64_t> partial;
  for (const ForwardRecord& record : log.forwards) {
    if (record.partial) partial.push_back(record.forward);
  }
  std::sort(partial.begin(), partial.end());
  if (!partial.empty()) {
    lines.push_back(fmt::format("partial: forward{} {}: fewer or other calls than the model has",
                                partial.size() == 1 ? "" : "s", format_index_list(partial)));
  }
  std::vector<std::string> refused;
  for (const Refusal& refusal : refusals(log)) {
    refused.push_back(fmt::format("refused: {}: {}", refusal.count_text(), refusal.why));
  }
  add_limited(lines, std::move(refused), "refused");
  return lines;
}

}  // namespace attnscope
