#include "cli/report/report_sparsity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "cli/report/sparsity_facts.h"
#include "cli/run/call_heads.h"
#include "core/base/error.h"
#include "core/patterns/build_mask.h"
#include "core/patterns/mask_measurement.h"

namespace attnscope {
namespace {

constexpr std::array<double, 3> kKept{0.1, 0.2, 0.3};
/// Blocks of this size unless a row has fewer than so many of them.
constexpr int64_t kLargestBlock = 128, kSmallestBlock = 16, kLeastBlocks = 10;

int64_t block_of(const AttentionProblem& problem) {
  int64_t block = kLargestBlock;
  while (block > kSmallestBlock && problem.num_keys() < kLeastBlocks * block) block /= 2;
  return block;
}

/// The heads of the records, in their order; without a call where they are not of the selection.
std::vector<CallHead> heads_of(const ReportWork& work) {
  const std::map<HeadName, CallHead> all = heads_by_name(work.calls);
  std::vector<CallHead> heads;
  for (const HeadRecord& record : work.records) {
    const auto there = all.find(record.name);
    heads.push_back(there == all.end() ? CallHead() : there->second);
  }
  return heads;
}

/// What masks of the shares of kKept keep of one head.
struct KeptShare {
  double density = 0, blocks = 0, entries = 0;
};
using KeptShares = std::array<KeptShare, kKept.size()>;

/// Nothing where the head has no row that sees a key.
std::optional<KeptShares> measure_kept(const CallHead& head, ReportWork& work) {
  const AttentionProblem& problem = *head.call->problem;
  MemoryBudget& budget = work.run.budget();
  std::vector<MaskPattern> patterns(kKept.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < kKept.size(); ++i) {
    patterns[i].kind = PatternKind::topk;
    patterns[i].block = block_of(problem);
    patterns[i].keep = kKept[i];
    patterns[i].text = fmt::format("topk:block={},keep={}", patterns[i].block, kKept[i]);
    bytes += mask_bytes(patterns[i], problem);
  }
  const MemoryReservation reserved = budget.reserve(bytes, "the masks of a head");
  std::vector<Mask> masks;
  for (const MaskPattern& pattern : patterns) {
    masks.push_back(build_mask(pattern, problem, head.batch, head.head,
                               {work.run.backend(), budget, work.stop}));
  }
  const HeadTask task{
      &problem, head.batch, head.head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
  MaskMeasurement how{work.run.backend(), budget, work.stop};
  how.outputs = false;
  const std::vector<MaskQuality> found = sample_masks(task, masks, how);
  KeptShares shares;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (!found[i].recall || !found[i].effective_oracle_recall) return std::nullopt;
    shares[i] = {found[i].density, *found[i].recall, *found[i].effective_oracle_recall};
  }
  return shares;
}

/// Mean and worst of some heads' recalls.
class RecallSummary {
 public:
  void add(double recall, size_t head) {
    sum_ += recall;
    ++count_;
    if (count_ == 1 || recall < worst_) {
      worst_ = recall;
      worst_head_ = head;
    }
  }
  double mean() const { return sum_ / count_; }
  OrderedJson json() const {
    return {{"recall", mean()}, {"worst", worst_}, {"worst_head", worst_head_}};
  }

 private:
  double sum_ = 0, count_ = 0, worst_ = 0;
  size_t worst_head_ = 0;
};

/// `kept` and `kept_by_layer`, of heads chosen and measured a layer's after the other.
class KeptMasks {
 public:
  KeptMasks(ReportWork& work, const std::vector<CallHead>& heads)
      : work_(work), heads_(heads), layers_(heads_by_layer(work.records)) {
    for (const LayerHeads& layer : layers_) candidates_.push_back(widest_first(layer));
    choose();
  }

  /// Heads whose masks can be measured; of these those that are.
  size_t candidates() const { return count(candidates_); }
  size_t chosen() const { return count(chosen_); }
  const std::map<size_t, KeptShares>& shares() const { return shares_; }

  /// Measures them, the first of each layer before the second of any. False: time was over before
  /// all were.
  bool measure() {
    size_t most = 0;
    for (const std::vector<size_t>& layer : chosen_) most = std::max(most, layer.size());
    for (size_t rank = 0; rank < most; ++rank) {
      for (const std::vector<size_t>& layer : chosen_) {
        if (rank >= layer.size()) continue;
        if (!work_.time_left()) return false;
        if (const auto kept = measure_kept(heads_[layer[rank]], work_)) {
          shares_[layer[rank]] = *kept;
        }
      }
    }
    return true;
  }

  void add_to(OrderedJson& facts) const {
    OrderedJson& kept = facts["kept"] = OrderedJson::array();
    for (size_t i = 0; i < kKept.size(); ++i) {
      RecallSummary blocks, entries, density;
      for (const auto& [head, shares] : shares_) {
        blocks.add(shares[i].blocks, head);
        entries.add(shares[i].entries, head);
        density.add(shares[i].density, head);
      }
      kept.push_back({{"keep", kKept[i]},
                      {"density", density.mean()},
                      {"blocks", blocks.json()},
                      {"entries", entries.json()}});
    }
    OrderedJson& by_layer = facts["kept_by_layer"] = OrderedJson::array();
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (OrderedJson line = layer_json(l); !line.is_null()) by_layer.push_back(std::move(line));
    }
  }

  /// "blocks of 128 × 128 tokens", "blocks of 16 × 16 to 128 × 128 tokens".
  std::string blocks_text() const {
    const std::set<int64_t> sizes = block_sizes();
    const std::string least = fmt::format("{0} \u00d7 {0}", *sizes.begin());
    if (sizes.size() == 1) return fmt::format("blocks of {} tokens", least);
    return fmt::format("blocks of {} to {} \u00d7 {} tokens", least, *sizes.rbegin(),
                       *sizes.rbegin());
  }
  int64_t largest_block() const { return *block_sizes().rbegin(); }

 private:
  static size_t count(const std::vector<std::vector<size_t>>& lists) {
    size_t sum = 0;
    for (const std::vector<size_t>& list : lists) sum += list.size();
    return sum;
  }

  /// The heads of a layer whose masks can be measured: those that need most keys for 90 % first.
  std::vector<size_t> widest_first(const LayerHeads& layer) const {
    std::vector<size_t> heads;
    for (const size_t place : layer.heads) {
      const CallEntry* call = heads_[place].call;
      if (call != nullptr && is_normalised(call->problem->score())) heads.push_back(place);
    }
    std::sort(heads.begin(), heads.end(), [&](size_t a, size_t b) {
      const double keys_a = work_.records[a].metrics.keys_for_90.value.value_or(-1);
      const double keys_b = work_.records[b].metrics.keys_for_90.value.value_or(-1);
      return keys_a != keys_b ? keys_a > keys_b : work_.records[a].name < work_.records[b].name;
    });
    return heads;
  }

  double entries_of(size_t place) const {
    const AttentionProblem& problem = *heads_[place].call->problem;
    return static_cast<double>(std::min(problem.num_queries(), MaskMeasurement::kSampledRows)) *
           static_cast<double>(problem.num_keys());
  }

  /// All heads, or the most a layer that cost no more than kMaskEntries, but two.
  void choose() {
    size_t most = 0;
    for (const std::vector<size_t>& layer : candidates_) most = std::max(most, layer.size());
    const auto take = [&](size_t a_layer) {
      chosen_.clear();
      double entries = 0;
      for (const std::vector<size_t>& layer : candidates_) {
        std::vector<size_t>& chosen = chosen_.emplace_back();
        for (const size_t i : spread_places(layer.size(), a_layer)) {
          chosen.push_back(layer[i]);
          entries += entries_of(layer[i]);
        }
      }
      return entries;
    };
    if (work_.sample == 0) {
      take(std::max<size_t>(most, 1));
      return;
    }
    size_t a_layer = std::max<size_t>(most, 1);
    while (take(a_layer) > kMaskEntries && a_layer > 2) --a_layer;
  }

  OrderedJson layer_json(size_t l) const {
    OrderedJson keep = OrderedJson::array(), blocks = keep, entries = keep;
    size_t measured = 0;
    for (size_t i = 0; i < kKept.size(); ++i) {
      RecallSummary of_blocks, of_entries;
      measured = 0;
      for (const size_t place : chosen_[l]) {
        const auto there = shares_.find(place);
        if (there == shares_.end()) continue;
        of_blocks.add(there->second[i].blocks, place);
        of_entries.add(there->second[i].entries, place);
        ++measured;
      }
      if (measured == 0) return {};
      keep.push_back(kKept[i]);
      blocks.push_back(of_blocks.mean());
      entries.push_back(of_entries.mean());
    }
    return {{"layer", layers_[l].layer ? OrderedJson(*layers_[l].layer) : OrderedJson()},
            {"name", layers_[l].name},
            {"heads", measured},
            {"keep", std::move(keep)},
            {"blocks", std::move(blocks)},
            {"entries", std::move(entries)}};
  }

  std::set<int64_t> block_sizes() const {
    std::set<int64_t> sizes;
    for (const auto& [place, shares] : shares_)
      sizes.insert(block_of(*heads_[place].call->problem));
    return sizes;
  }

  ReportWork& work_;
  const std::vector<CallHead>& heads_;
  const std::vector<LayerHeads> layers_;
  std::vector<std::vector<size_t>> candidates_, chosen_;  ///< [layers], the widest head first
  std::map<size_t, KeptShares> shares_;                   ///< by the head's place
};

/// Adds a part, or says that it is not there.
void add_part(const char* name, OrderedJson part, const char* lack, OrderedJson& facts,
              std::vector<std::string>& lacks) {
  if (part.is_null()) {
    lacks.emplace_back(lack);
  } else {
    facts[name] = std::move(part);
  }
}

constexpr const char* kNoCurves =
    "no curves of keys and mass: no head's keys were counted (scores that are not normalised, or "
    "all rows masked)";
constexpr const char* kNoSinks = "no sinks: no head has columns of which the mass is known";
constexpr const char* kNoPadding = "no mass on padding: nothing says which of the text is padding";
constexpr const char* kNoFrames =
    "no masses from frame to frame: no head's queries and keys are of the same parts";

std::string curves_text() {
  return "How many of a row's largest weights hold a share of it: mean over rows, then over the "
         "heads of a layer, as a share of the keys that a row may see. ";
}

/// Adds `kept` and `kept_by_layer`; returns what the section's text says of them.
std::string add_kept(ReportWork& work, const std::vector<CallHead>& heads, OrderedJson& facts,
                     std::vector<std::string>& lacks) {
  KeptMasks masks(work, heads);
  const auto lack = [&](std::string_view why) {
    lacks.push_back(fmt::format("not what sparse masks keep: {}", why));
    return std::string();
  };
  if (masks.candidates() == 0) {
    return lack("rows of scores that are not normalised have no share to be kept");
  }
  try {
    if (!masks.measure()) {
      lacks.push_back(
          fmt::format("what sparse masks keep is of {} heads, {} more had no time left "
                      "(--budget-time)",
                      masks.shares().size(), masks.chosen() - masks.shares().size()));
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource) throw;
    if (masks.shares().empty()) return lack(error.what());
    lacks.push_back(fmt::format("what sparse masks keep is of {} heads alone: {}",
                                masks.shares().size(), error.what()));
  }
  if (masks.shares().empty()) return lack("no head was measured");
  masks.add_to(facts);
  facts["command"] = fmt::format("attnscope mask {} --mask topk:block={},keep={}", work.input_word,
                                 masks.largest_block(), kKept.front());
  std::string text = fmt::format(
      "What 10, 20 and 30 % keep of a row, mean over up to {} spread rows of {} of {} heads: the "
      "key blocks of largest mean query times mean key ({}; rows and keys that are not video are "
      "kept, and count in the density), and as many single entries, chosen best. ",
      MaskMeasurement::kSampledRows, masks.shares().size(), work.records.size(),
      masks.blocks_text());
  if (masks.chosen() < masks.candidates()) {
    text += "Heads were taken evenly from those of a layer in the order of their keys for 90 %. ";
  }
  return text;
}

}  // namespace

std::vector<size_t> spread_places(size_t heads, size_t count) {
  std::vector<size_t> places;
  if (count >= heads) count = heads;
  for (size_t i = 0; i < count; ++i) {
    places.push_back(count == 1 ? 0 : i * (heads - 1) / (count - 1));
  }
  return places;
}

std::optional<ReportSection> sparsity_section(ReportWork& work, std::vector<std::string>& lacks) {
  if (work.run.is_plan_only()) return std::nullopt;
  const std::vector<CallHead> heads = heads_of(work);
  ReportSection section;
  OrderedJson& facts = section.facts = OrderedJson{{"text", ""}, {"command", ""}};
  facts["command"] = fmt::format("attnscope stats {} --curve", work.input_word);
  SeenKeys seen;
  OrderedJson curves = sparsity_curves(work.records, [&](const HeadRecord& record) {
    const CallHead& head = heads[static_cast<size_t>(&record - work.records.data())];
    return head.call == nullptr ? std::nullopt : seen.of(head);
  });
  std::string text = curves.is_null() ? "" : curves_text();
  const bool any_curve = !curves.is_null();
  if (!curves.is_null()) facts["ticks"] = density_ticks(curves);
  add_part("curves", std::move(curves), kNoCurves, facts, lacks);
  text += add_kept(work, heads, facts, lacks);
  OrderedJson sinks = sparsity_sinks(work.records);
  if (!any_curve && !facts.contains("kept") && sinks.is_null()) return std::nullopt;
  add_part("sinks", std::move(sinks), kNoSinks, facts, lacks);
  OrderedJson padding = sparsity_padding(work.records);
  if (padding.is_null()) lacks.emplace_back(kNoPadding);
  facts["padding"] = std::move(padding);
  std::vector<HeadTokens> tokens;
  for (const CallHead& head : heads) {
    if (head.call == nullptr) {
      tokens.emplace_back();
    } else {
      tokens.push_back({&head.call->problem->query_tokens(), &head.call->problem->key_tokens()});
    }
  }
  add_part("frames", sparsity_frames(work.records, tokens), kNoFrames, facts, lacks);
  facts["text"] = std::move(text);
  return section;
}

std::optional<ReportSection> sparsity_of_records(std::span<const HeadRecord> records,
                                                 std::vector<std::string>& lacks) {
  ReportSection section;
  OrderedJson& facts = section.facts = OrderedJson{{"text", ""}};
  OrderedJson curves =
      sparsity_curves(records, [](const HeadRecord&) { return std::optional<double>(); });
  OrderedJson sinks = sparsity_sinks(records);
  if (curves.is_null() && sinks.is_null()) {
    lacks.emplace_back(kNoCurves);
    lacks.emplace_back(kNoSinks);
    return std::nullopt;
  }
  if (!curves.is_null()) {
    facts["text"] =
        "How many of a row's largest weights hold a share of it: mean over rows, then over the "
        "heads of a layer, in keys: a table does not say how many a row may see.";
  }
  if (!curves.is_null()) facts["ticks"] = density_ticks(curves);
  add_part("curves", std::move(curves), kNoCurves, facts, lacks);
  lacks.emplace_back("not what sparse masks keep: they are measured on a capture");
  add_part("sinks", std::move(sinks), kNoSinks, facts, lacks);
  OrderedJson padding = sparsity_padding(records);
  if (padding.is_null()) lacks.emplace_back(kNoPadding);
  facts["padding"] = std::move(padding);
  lacks.emplace_back("no masses from frame to frame: a table does not say which tokens are which");
  return section;
}

}  // namespace attnscope
