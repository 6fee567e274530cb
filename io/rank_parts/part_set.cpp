#include "io/rank_parts/part_set.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "io/capture/computable.h"
#include "io/capture/rank_folders.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

using RankCallKey = std::tuple<int64_t, int64_t, std::vector<std::string>, CallKind, ModelPlace>;

RankCallKey key_of(const CallEntry& call) {
  return {call.id.step, call.id.layer, call.id.branches, call.id.kind, call.id.place};
}

/// The folders of all ranks of a run, by rank.
std::vector<RankFolder> complete_folders(const fs::path& folder) {
  const std::vector<RankFolder> found = rank_folders(folder);
  if (found.empty()) {
    throw file_error(folder.string(), "",
                     "has no folders rank-0-of-N …, as the recorder writes them where several "
                     "processes run a model");
  }
  const int64_t ranks = found.front().ranks;
  for (const RankFolder& one : found) {
    if (one.ranks == ranks) continue;
    throw file_error(one.path.string(), "",
                     "is of a run of " + std::to_string(one.ranks) + " ranks, " +
                         found.front().path.filename().string() + " of one of " +
                         std::to_string(ranks));
  }
  std::set<int64_t> there;
  for (const RankFolder& one : found) there.insert(one.rank);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (there.count(rank) != 0) continue;
    throw file_error(
        (folder / ("rank-" + std::to_string(rank) + "-of-" + std::to_string(ranks))).string(), "",
        "is missing: ranks 0 to " + std::to_string(ranks - 1) + " are joined together");
  }
  if (there.size() == found.size() && *there.rbegin() < ranks) return found;
  throw file_error(found.back().path.string(), "", "is no rank of " + std::to_string(ranks));
}

/// The part that a call in a rank's folder is; `run`: that of the first.
RankCall rank_call(const CallEntry& call, const RankFolder& folder,
                   const std::optional<RankCall>& first) {
  const std::string file = call.file.string();
  const auto part = part_of(call);
  if (!part) throw file_error(file, "part", "is not stated: which rank's call it is is not known");
  if (part->rank != folder.rank || part->ranks != folder.ranks) {
    throw file_error(file, "part",
                     "is rank " + std::to_string(part->rank) + " of " +
                         std::to_string(part->ranks) + ", but lies in " +
                         folder.path.filename().string());
  }
  if (first && part->run != first->part.run) {
    throw file_error(file, "part",
                     "is of run " + (part->run.empty() ? "(none)" : one_line(part->run)) + ", " +
                         first->call->file.string() + " of run " +
                         (first->part.run.empty() ? "(none)" : one_line(first->part.run)));
  }
  return {&call, *part};
}

std::string call_text(const CallEntry& call) {
  return call_words(call.id.step, call.id.layer, "branch " + branch_of(call.id, 0),
                    "kind " + std::string(kind_name(call.id.kind)), call.id.place, ", ");
}

}  // namespace

PartSet PartSet::open(const fs::path& folder, const FactOverrides& facts,
                      const ReadControl& control) {
  const std::vector<RankFolder> folders = complete_folders(folder);
  PartSet set;
  for (const RankFolder& one : folders) {
    set.captures_.push_back(Capture::open(one.path, facts, control));
    const std::string shaping = shaping_fault(set.captures_.back());
    if (!shaping.empty()) throw Error(ErrorCode::file, shaping);
    if (set.captures_.back().calls_left_out() != 0) {
      throw file_error(one.path.string(), "", set.captures_.back().warnings().front());
    }
  }
  std::map<RankCallKey, std::vector<RankCall>> calls;
  std::optional<RankCall> first;
  for (size_t rank = 0; rank < folders.size(); ++rank) {
    for (const CallEntry& call : set.captures_[rank].calls()) {
      std::vector<RankCall>& parts = calls[key_of(call)];
      parts.push_back(rank_call(call, folders[rank], first));
      if (!first) first = parts.front();
      if (parts.size() == rank + 1) continue;
      throw file_error(call.file.string(), "",
                       call_text(call) + " is not in each of the ranks before it");
    }
  }
  for (auto& [key, parts] : calls) {
    if (parts.size() < folders.size()) {
      throw file_error(parts.back().call->file.string(), "",
                       call_text(*parts.back().call) + " is not in " +
                           folders[parts.size()].path.filename().string());
    }
    set.calls_.push_back(std::move(parts));
  }
  return set;
}

}  // namespace attnscope
