#include "io/plan_parts/part_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "io/capture/capture.h"

namespace attnscope {
namespace {

using Plan = std::pair<std::string, int64_t>;

Plan plan_of_part(const PartFacts& part) {
  return {part.part.plan.plan_hash, part.part.plan.share.count};
}

std::string name_of(const PartFacts& part) { return one_line(part.path.string()); }

/// The plan that most of the parts are of; of as many, the first's.
Plan common_plan(std::span<const PartFacts> parts) {
  std::map<Plan, size_t> counts;
  for (const PartFacts& part : parts) ++counts[plan_of_part(part)];
  Plan plan = plan_of_part(parts.front());
  for (const PartFacts& part : parts) {
    if (counts[plan_of_part(part)] > counts[plan]) plan = plan_of_part(part);
  }
  return plan;
}

void add_line(std::string& lines, const std::string& line) {
  lines += (lines.empty() ? "" : "; ") + line;
}

/// "part 2/7 is missing", "parts 2-4 of 7 are missing".
void add_missing(std::string& lines, const std::vector<int64_t>& missing, int64_t count) {
  if (missing.empty()) return;
  add_line(lines, missing.size() == 1 ? fmt::format("part {}/{} is missing", missing.front(), count)
                                      : fmt::format("parts {} of {} are missing",
                                                    format_index_list(missing), count));
}

void require_one_backend(std::span<const PartFacts> parts) {
  std::map<std::string, const PartFacts*> first;
  for (const PartFacts& part : parts) {
    if (!part.backend.empty()) first.emplace(part.backend, &part);
  }
  if (first.size() < 2) return;
  std::string text;
  for (const auto& [backend, part] : first) {
    text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", name_of(*part), backend);
  }
  throw Error(ErrorCode::file,
              "merge: the parts were computed by several backends, whose bits differ: " + text +
                  " (--mixed-backends joins them all the same; --backend chooses one for all)");
}

}  // namespace

std::vector<size_t> order_of_parts(std::span<const PartFacts> parts, bool mixed) {
  const Plan plan = common_plan(parts);
  std::vector<std::vector<size_t>> found(static_cast<size_t>(plan.second));
  std::string lines;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartFacts& part = parts[i];
    if (plan_of_part(part) == plan) {
      found[static_cast<size_t>(part.part.plan.share.index)].push_back(i);
    } else if (part.part.plan.plan_hash == plan.first) {
      add_line(lines, fmt::format("{} is part {}, and the others are of {}", name_of(part),
                                  part.part.plan.share.text(), plan.second));
    } else {
      add_line(lines, fmt::format("{} is part {} of another plan (plan_hash {}, expected {})",
                                  name_of(part), part.part.plan.share.text(),
                                  one_line(part.part.plan.plan_hash), one_line(plan.first)));
    }
  }
  std::vector<int64_t> missing;
  std::vector<size_t> order;
  for (size_t share = 0; share < found.size(); ++share) {
    if (found[share].empty()) missing.push_back(static_cast<int64_t>(share));
    if (found[share].size() > 1) {
      std::vector<std::string> names;
      for (const size_t i : found[share]) names.push_back(name_of(parts[i]));
      add_line(lines, fmt::format("part {}/{} is there {} times ({})", share, plan.second,
                                  names.size(), fmt::join(names, ", ")));
    }
    if (!found[share].empty()) order.push_back(found[share].front());
  }
  add_missing(lines, missing, plan.second);
  if (!lines.empty()) throw Error(ErrorCode::file, "merge: " + lines);
  int64_t next = 0;
  for (const size_t i : order) {
    const PlanPart& part = parts[i].part.plan;
    if (part.units.begin != next || part.all_units != parts[order.front()].part.plan.all_units) {
      throw file_error(name_of(parts[i]), "part",
                       fmt::format("begins with unit {} (expected {}): the plan was cut in another "
                                   "way than for the parts before it",
                                   part.units.begin, next));
    }
    next = part.units.end;
  }
  if (next != parts[order.front()].part.plan.all_units) {
    throw file_error(name_of(parts[order.back()]), "part",
                     "does not end with the plan's last unit");
  }
  if (!mixed) require_one_backend(parts);
  return order;
}

std::string joined_backends(std::span<const PartFacts> parts) {
  std::set<std::string> names;
  for (const PartFacts& part : parts) {
    if (!part.backend.empty()) names.insert(part.backend);
  }
  return fmt::format("{}", fmt::join(names, " + "));
}

std::string hash_of_whole(std::span<const PartFacts> parts) {
  std::map<int64_t, std::pair<std::string, const PartFacts*>> calls;
  for (const PartFacts& part : parts) {
    for (size_t i = 0; i < part.part.calls.size(); ++i) {
      const std::string& hash = part.part.call_hashes[i];
      const auto [found, is_new] = calls.try_emplace(part.part.calls[i], hash, &part);
      if (is_new || found->second.first == hash) continue;
      throw file_error(name_of(part), "part",
                       fmt::format("was computed from another capture than {}: call {} has another "
                                   "hash there",
                                   name_of(*found->second.second), found->first));
    }
  }
  std::vector<std::string> hashes;
  for (auto& [place, call] : calls) hashes.push_back(std::move(call.first));
  return join_call_hashes(hashes);
}

}  // namespace attnscope
