#include "core/products/query_mean.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

/// The facts that the members of one average share; −1 where they may differ.
using GroupKey =
    std::tuple<int64_t, int64_t, int64_t, std::string, int64_t, std::string, ModelPlace>;

GroupKey group_of(const MeanAxes& axes, const QueryVolume& v) {
  return {axes.steps ? -1 : v.step, axes.layers ? -1 : v.layer, axes.heads ? -1 : v.head, v.kind,
          v.batch, v.branch,
          // Blocks are layers by other names.
          axes.layers ? ModelPlace{"", v.place.slot, v.place.chunk, {}, v.place.forward} : v.place};
}

/// The volumes' numbers, group by group, each group where its first member stands.
std::vector<std::vector<size_t>> group_volumes(const MeanAxes& axes, const QueryVolumes& volumes) {
  std::vector<std::vector<size_t>> groups;
  std::map<GroupKey, size_t> known;
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    const auto [entry, isnew] = known.emplace(group_of(axes, volumes.volumes[i]), groups.size());
    if (isnew) groups.emplace_back();
    groups[entry->second].push_back(i);
  }
  return groups;
}

std::string label_of(const MeanAxes& axes, const QueryVolume& v, size_t count) {
  // The facts that are averaged over are left out as if nobody had recorded them.
  ModelPlace place = v.place;
  place.unrecorded.step |= axes.steps;
  place.unrecorded.layer |= axes.layers;
  if (axes.layers) place.block.clear();
  std::string text = call_words(v.step, v.layer, v.branch, v.kind, place) + " batch " +
                     std::to_string(v.batch) + " ";
  if (!axes.heads) text += "head " + std::to_string(v.head) + " ";
  return text + "mean over " + axes.text() + " (" + std::to_string(count) + ")";
}

/// Of the cells, those that were evicted for both; an empty list has none.
void keep_common(std::vector<uint8_t>& evicted, const std::vector<uint8_t>& other) {
  if (other.empty()) evicted.clear();
  for (size_t cell = 0; cell < evicted.size(); ++cell) evicted[cell] &= other[cell];
}

QueryVolume merge(const MeanAxes& axes, const QueryVolumes& volumes,
                  const std::vector<size_t>& members) {
  QueryVolume merged = volumes.volumes[members.front()];
  merged.label = label_of(axes, merged, members.size());
  merged.averaged = static_cast<int64_t>(members.size());
  if (axes.steps) {
    merged.step = -1;
    merged.place.unrecorded.step = false;
  }
  if (axes.layers) {
    merged.layer = -1;
    merged.place.unrecorded.layer = false;
    merged.place.block.clear();
  }
  if (axes.heads) merged.head = -1;
  for (size_t i : members) {
    const QueryVolume& member = volumes.volumes[i];
    if (member.query != merged.query) merged.query.reset();
    // The lists 0 are empty.
    if (member.tokens != merged.tokens) merged.tokens = 0;
    if (member.chosen != merged.chosen) merged.chosen = 0;
    keep_common(merged.evicted, member.evicted);
  }
  return merged;
}

}  // namespace

std::string MeanAxes::text() const {
  std::string text;
  const auto add = [&](bool chosen, const char* name) {
    if (chosen) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(heads, "heads");
  add(layers, "layers");
  add(steps, "steps");
  return text.empty() ? "none" : text;
}

std::vector<std::string> mean_axis_names() { return {"heads", "layers", "steps", "all"}; }

MeanAxes parse_mean_axes(std::span<const std::string> names) {
  MeanAxes axes;
  const std::vector<std::string> known = mean_axis_names();
  for (const std::string& name : names) {
    const bool all = name == "all";
    axes.heads |= all || name == "heads";
    axes.layers |= all || name == "layers";
    axes.steps |= all || name == "steps";
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw unknown_name("--mean", name, known);
  }
  return axes;
}

QueryVolumes averages_of(const MeanAxes& axes, QueryVolumes volumes) {
  if (!axes.any()) return volumes;
  std::vector<QueryVolume> merged;
  for (const std::vector<size_t>& members : group_volumes(axes, volumes)) {
    merged.push_back(merge(axes, volumes, members));
  }
  volumes.volumes = std::move(merged);
  return volumes;
}

void average_volumes(const MeanAxes& axes, QueryVolumes& volumes,
                     std::vector<std::vector<float>>& values, MemoryBudget& budget) {
  const size_t tokens = values.front().size();
  const MemoryReservation reserved = budget.reserve(
      static_cast<int64_t>(tokens * (sizeof(double) + sizeof(float))), "the mean of the volumes");
  std::vector<std::vector<float>> means;
  for (const std::vector<size_t>& members : group_volumes(axes, volumes)) {
    std::vector<double> sums(tokens, 0.0);
    for (size_t i : members) {
      for (size_t j = 0; j < tokens; ++j) sums[j] += values[i][j];
    }
    for (size_t i : members) std::vector<float>().swap(values[i]);
    std::vector<float>& mean = means.emplace_back(tokens);
    for (size_t j = 0; j < tokens; ++j) {
      mean[j] = static_cast<float>(sums[j] / static_cast<double>(members.size()));
    }
  }
  volumes = averages_of(axes, std::move(volumes));
  values = std::move(means);
}

}  // namespace attnscope
