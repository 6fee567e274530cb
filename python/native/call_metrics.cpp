#include "python/native/call_metrics.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "io/metrics/measured_call.h"

namespace attnscope {
namespace {

/// The branches of a call, each with its batch items, in their order.
std::vector<std::pair<std::string, std::vector<int64_t>>> branches_of(const CallEntry& call) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> branches;
  for (int64_t item = 0; item < call.problem->batch(); ++item) {
    const std::string& branch = branch_of(call.id, item);
    const auto found = std::find_if(branches.begin(), branches.end(),
                                    [&](const auto& known) { return known.first == branch; });
    if (found == branches.end()) {
      branches.push_back({branch, {item}});
    } else {
      found->second.push_back(item);
    }
  }
  return branches;
}

}  // namespace

std::vector<MetricGroup> measure_metrics(const CallHandle& call, const MetricWords& words,
                                         EngineRun& run) {
  std::vector<MetricGroup> groups;
  for (auto& [branch, items] : branches_of(*call.entry)) {
    MeasuredCall measured;
    measured.call = call.entry.get();
    measured.branch = branch;
    measured.backend = run.backend().name_for(call.problem());
    measured.heads.resize(static_cast<size_t>(call.problem().num_heads()));
    std::iota(measured.heads.begin(), measured.heads.end(), 0);
    measured.batch = std::move(items);
    std::vector<HeadPlace> places;
    for (const int64_t b : measured.batch) {
      for (const int64_t h : measured.heads) places.push_back({b, h});
    }
    if (words.with_stats) measured.records = measure_call(call, places, words.stats, run);
    for (const int64_t side : words.blocks) {
      measured.pooled.push_back({side, pooled_of(call, places, side, run)});
    }
    if (!words.masks.masks.empty()) {
      measured.masks = words.masks.masks;
      for (const HeadPlace& place : places) {
        measured.mask_quality.push_back(measure_masks_of(call, place, words.masks, run));
      }
    }
    groups.push_back(group_of_measured(measured));
  }
  return groups;
}

}  // namespace attnscope
