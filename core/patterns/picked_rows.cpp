#include "core/patterns/picked_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace attnscope {
namespace {

/// Sums are integers of this unit, so that their order does not matter: a row adds 1 at most.
constexpr double kUnit = 0x1p40;

bool are_equal(const TokenBlocks& a, const TokenBlocks& b) {
  return a.lengths == b.lengths && a.exempt == b.exempt && a.of_token == b.of_token;
}

bool share_blocks(const BlockPicks& a, const BlockPicks& b) {
  return are_equal(a.queries, b.queries) && are_equal(a.keys, b.keys);
}

}  // namespace

PickedGroup::PickedGroup(std::span<const Mask> masks, std::vector<size_t> members, bool with_table)
    : masks_(masks), members_(std::move(members)) {
  const auto tokens = static_cast<int64_t>(keys().of_token.size());
  slots_.resize(static_cast<size_t>((tokens + kKeys - 1) / kKeys));
  for (const TokenRun& run : block_runs(keys(), kKeys)) {
    std::vector<Slot>& part = slots_[static_cast<size_t>(run.tokens.begin / kKeys)];
    const auto found = std::find_if(part.begin(), part.end(),
                                    [&](const Slot& slot) { return slot.block == run.block; });
    Slot& slot = found == part.end() ? part.emplace_back(Slot{run.block, {}}) : *found;
    slot.tokens.push_back(run.tokens);
  }
  if (with_table) {
    table_ = std::vector<std::atomic<int64_t>>(queries().lengths.size() * keys().lengths.size());
  }
}

std::vector<PickedGroup> PickedGroup::of(std::span<const Mask> masks, bool with_table) {
  std::vector<std::vector<size_t>> lists;
  for (size_t m = 0; m < masks.size(); ++m) {
    if (masks[m].dropped() == nullptr) continue;
    const BlockPicks& picks = *masks[m].dropped()->picks;
    const auto found = std::find_if(lists.begin(), lists.end(), [&](const auto& list) {
      return share_blocks(*masks[list.front()].dropped()->picks, picks);
    });
    found == lists.end() ? lists.push_back({m}) : found->push_back(m);
  }
  std::vector<PickedGroup> groups;
  groups.reserve(lists.size());
  for (std::vector<size_t>& list : lists) groups.emplace_back(masks, std::move(list), with_table);
  return groups;
}

int64_t PickedGroup::bytes(std::span<const Mask> masks, bool with_table) {
  int64_t bytes = 0;
  for (const Mask& mask : masks) {
    if (mask.dropped() == nullptr) continue;
    const BlockPicks& picks = *mask.dropped()->picks;
    bytes += PickedGroup::bytes(static_cast<int64_t>(picks.keys.of_token.size()),
                                picks.queries.size(), picks.keys.size(), with_table);
  }
  return bytes;
}

int64_t PickedGroup::bytes(int64_t keys, int64_t query_blocks, int64_t key_blocks,
                           bool with_table) {
  return keys * int64_t{sizeof(Slot)} + (with_table ? query_blocks * key_blocks * 8 : 0);
}

int64_t PickedGroup::row_bytes(std::span<const Mask> masks) {
  int64_t bytes = 0;
  for (const Mask& mask : masks) {
    if (mask.dropped() != nullptr) bytes += row_bytes(mask.dropped()->picks->keys.size());
  }
  return bytes;
}

void PickedGroup::add_masses(int64_t query_block, std::span<const double> masses) {
  if (table_.empty()) return;
  std::atomic<int64_t>* const row =
      table_.data() + static_cast<size_t>(query_block) * masses.size();
  for (size_t j = 0; j < masses.size(); ++j) {
    row[j].fetch_add(std::llround(masses[j] * kUnit), std::memory_order_relaxed);
  }
}

std::optional<double> PickedGroup::best_mass(size_t member) const {
  if (table_.empty()) return std::nullopt;
  const BlockPicks& own = picks(member);
  double sum = 0;
  std::vector<int64_t> free;
  for (int64_t i = 0; i < own.queries.size(); ++i) {
    const bool dense = own.queries.exempt[static_cast<size_t>(i)] != 0;
    free.clear();
    int64_t count = 0;
    for (int64_t j = 0; j < own.keys.size(); ++j) {
      const int64_t mass = table_[static_cast<size_t>(i * own.keys.size() + j)].load();
      if (dense || own.keys.exempt[static_cast<size_t>(j)] != 0) {
        sum += static_cast<double>(mass);
      } else {
        free.push_back(mass);
        count += own.row(i)[j] != 0 ? 1 : 0;
      }
    }
    std::partial_sort(free.begin(), free.begin() + count, free.end(), std::greater<>());
    for (int64_t n = 0; n < count; ++n) sum += static_cast<double>(free[static_cast<size_t>(n)]);
  }
  return sum / kUnit;
}

}  // namespace attnscope
