#include "cli/report/standing_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/base/number_words.h"

namespace attnscope {
namespace {

constexpr size_t kStandingHeads = 3;

using NumberOf = std::function<std::optional<double>(const StandingNumbers&)>;
using SentenceOf = std::function<std::string(const StandingNumbers&, double)>;

std::string percent(double share) { return share_words(share, 2); }

/// Weights of scores that are not normalised are no shares of a row.
bool has_shares(const StandingNumbers& head) {
  return head.record->metrics.head_class != HeadClass::undefined;
}

/// `where`: "on the text".
std::string mass_sentence(const StandingNumbers& head, std::string_view where, double mass) {
  if (has_shares(head)) return fmt::format("{} of a row's mass lies {}.", percent(mass), where);
  return fmt::format("A row's weights {} add up to {}.", where, number_words(mass));
}
constexpr std::string_view kOnText = "on the text";
constexpr std::string_view kOwnFrame = "in the query's own frame";
constexpr std::string_view kOwnPlace = "around the query's own place in all frames together";

std::optional<double> sinks_mass(const StandingNumbers& head) {
  const HeadMetrics& metrics = head.record->metrics;
  if (metrics.sinks.empty()) return metrics.sink_mass;
  double sum = 0;
  for (const Sink& sink : metrics.sinks) sum += sink.mass;
  return sum;
}

std::string key_words(const Sink& sink) {
  if (sink.token) return fmt::format("text {} “{}”", sink.text_index.value_or(0), *sink.token);
  if (sink.text_index) return fmt::format("text {}", *sink.text_index);
  if (sink.place) {
    return fmt::format("({}, {}, {})", sink.place->t, sink.place->y, sink.place->x);
  }
  return fmt::format("key {}", sink.key);
}

std::string sink_sentence(const StandingNumbers& head, double mass) {
  const std::vector<Sink>& sinks = head.record->metrics.sinks;
  if (!has_shares(head)) return mass_sentence(head, "on its heaviest keys", mass);
  if (sinks.empty()) return fmt::format("Its heaviest key draws {} of all mass.", percent(mass));
  return fmt::format("{} keys draw {} of the mass of all rows; the heaviest is {} with {}.",
                     sinks.size(), percent(mass), key_words(sinks.front()),
                     percent(sinks.front().mass));
}

bool comes_before(const StandingNumbers& a, const StandingNumbers& b) {
  const HeadName &x = a.record->name, &y = b.record->name;
  return std::pair(x.layer, x.head) < std::pair(y.layer, y.head);
}

StandingRule make_rule(std::span<const StandingNumbers> heads, std::string name, std::string title,
                       std::string text, const NumberOf& number, const SentenceOf& sentence) {
  StandingRule rule{std::move(name), std::move(title), std::move(text), {}};
  for (size_t i = 0; i < heads.size(); ++i) {
    const std::optional<double> value = number(heads[i]);
    if (value && *value > 0) rule.heads.push_back({i, *value, {}});
  }
  std::stable_sort(rule.heads.begin(), rule.heads.end(),
                   [&](const StandingRule::Head& a, const StandingRule::Head& b) {
                     if (a.value != b.value) return a.value > b.value;
                     return comes_before(heads[a.head], heads[b.head]);
                   });
  rule.heads.resize(std::min(rule.heads.size(), kStandingHeads));
  for (StandingRule::Head& head : rule.heads) head.text = sentence(heads[head.head], head.value);
  return rule;
}

}  // namespace

std::vector<StandingRule> standing_heads(std::span<const StandingNumbers> heads) {
  std::vector<StandingRule> rules;
  const auto add = [&](const char* name, const char* title, const char* text,
                       const NumberOf& number, const SentenceOf& sentence) {
    StandingRule rule = make_rule(heads, name, title, text, number, sentence);
    if (!rule.heads.empty()) rules.push_back(std::move(rule));
  };
  add(
      "temporal_score", "follows its place through the frames",
      "the heads that follow a place through the frames most (temporal_score)",
      [](const StandingNumbers& h) { return h.record->metrics.temporal_score.value; },
      [](const StandingNumbers& h, double value) { return mass_sentence(h, kOwnPlace, value); });
  add(
      "text_mass", "looks at the text", "the heads that look at the text most (text_mass)",
      [](const StandingNumbers& h) { return h.record->metrics.text_mass.value; },
      [](const StandingNumbers& h, double value) { return mass_sentence(h, kOnText, value); });
  add("sink_mass", "few keys draw it",
      "the heads of which few keys draw most (the mass of the five columns in sinks)", sinks_mass,
      sink_sentence);
  add(
      "own_way", "goes its own way",
      "the heads that are most unlike the others of their call (mean Jensen-Shannon divergence of "
      "64 rows in runs of keys, bits)",
      [](const StandingNumbers& h) { return h.own_way; },
      [](const StandingNumbers&, double value) {
        return fmt::format("Its rows are {:.3f} bits from those of the other heads on average.",
                           value);
      });
  return rules;
}

std::vector<size_t> all_standing(std::span<const StandingRule> rules) {
  std::set<size_t> heads;
  for (const StandingRule& rule : rules) {
    for (const StandingRule::Head& head : rule.heads) heads.insert(head.head);
  }
  return {heads.begin(), heads.end()};
}

std::vector<std::string> head_sentences(const StandingNumbers& head, int64_t keys) {
  const HeadMetrics& m = head.record->metrics;
  std::vector<std::string> lines;
  if (m.keys_for_50.value && m.keys_for_95.value) {
    lines.push_back(fmt::format("Half of a row's mass lies on {:.1f} keys, 95 % on {:.1f}{}.",
                                *m.keys_for_50.value, *m.keys_for_95.value,
                                keys > 0 ? fmt::format(" of {}", keys) : ""));
  }
  for (const auto& [where, mass] :
       {std::pair(kOwnFrame, m.same_frame_mass.value), std::pair(kOnText, m.text_mass.value),
        std::pair(kOwnPlace, m.temporal_score.value)}) {
    if (mass) lines.push_back(mass_sentence(head, where, *mass));
  }
  if (const auto mass = sinks_mass(head); mass && *mass > 0) {
    lines.push_back(sink_sentence(head, *mass));
  }
  if (head.own_way) {
    lines.push_back(fmt::format(
        "Its rows are {:.3f} bits from those of the other heads of its call on average.",
        *head.own_way));
  }
  if (m.masked_rows > 0) {
    lines.push_back(
        fmt::format("{} of {} rows have no key that the mask leaves.", m.masked_rows, m.rows));
  }
  return lines;
}

}  // namespace attnscope
