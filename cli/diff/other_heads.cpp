#include "cli/diff/other_heads.h"

#include <algorithm>
#include <charconv>

#include "cli/common/head_table.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

int64_t whole_number(const std::string& text, const char* option) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end) return value;
  throw usage_error(std::string(option) + " " + one_line(text) + ": expected a whole number");
}

/// The name of B's head. A branch is that of its batch item, so that naming one leaves the item
/// open.
HeadName name_of_other(HeadName name, const OtherValues& other) {
  const auto number = [](const std::string& text, const char* option, int64_t& value) {
    if (!text.empty()) value = whole_number(text, option);
  };
  number(other.step, "--b-step", name.step);
  number(other.layer, "--b-layer", name.layer);
  number(other.chunk, "--b-chunk", name.place.chunk);
  number(other.batch, "--b-batch", name.batch);
  number(other.head, "--b-head", name.head);
  if (!other.branch.empty()) name.branch = other.branch;
  if (!other.block.empty()) name.place.block = other.block;
  if (!other.slot.empty()) name.place.slot = other.slot;
  return name;
}

/// True of a head of B that has the wanted name. --b-layer alone leaves the block open, --b-block
/// alone the layer, --b-branch the batch item, --b-batch the branch, and --b-slot the kind.
bool is_meant(const HeadName& candidate, const HeadName& wanted, const OtherValues& other) {
  const bool free_item = !other.branch.empty() && other.batch.empty();
  const bool free_branch = other.branch.empty() && !other.batch.empty();
  const bool free_block = !other.layer.empty() && other.block.empty();
  const bool free_layer = other.layer.empty() && !other.block.empty();
  const bool free_kind = !other.slot.empty();
  return candidate.step == wanted.step && candidate.head == wanted.head &&
         candidate.place.chunk == wanted.place.chunk && candidate.place.slot == wanted.place.slot &&
         (free_layer || candidate.layer == wanted.layer) &&
         (free_block || candidate.place.block == wanted.place.block) &&
         (free_kind || candidate.kind == wanted.kind) &&
         (free_item || candidate.batch == wanted.batch) &&
         (free_branch || candidate.branch == wanted.branch);
}

}  // namespace

bool OtherValues::any() const {
  for (const std::string* value : {&step, &layer, &chunk, &branch, &block, &slot, &batch, &head}) {
    if (!value->empty()) return true;
  }
  return false;
}

OtherHeads::OtherHeads(const std::vector<HeadName>& heads, std::string where)
    : where_(std::move(where)) {
  for (const HeadName& head : heads) heads_[key_of(head)].push_back(head);
  for (auto& [key, list] : heads_) std::sort(list.begin(), list.end());
}

OtherHeads::Key OtherHeads::key_of(const HeadName& name) {
  return {name.step, name.head, name.place.chunk, name.place.slot};
}

const HeadName& OtherHeads::find(const HeadName& a, const OtherValues& other) const {
  const HeadName wanted = name_of_other(a, other);
  const auto found = heads_.find(key_of(wanted));
  if (found != heads_.end()) {
    for (const HeadName& candidate : found->second) {
      if (is_meant(candidate, wanted, other)) return candidate;
    }
  }
  throw usage_error(where_ + ": has no " + head_label(wanted) + " to compare with " +
                    head_label(a) + "; select heads that both have");
}

std::vector<std::pair<HeadName, HeadName>> pair_heads(const std::vector<HeadName>& selected,
                                                      const OtherHeads& others,
                                                      const OtherValues& other, bool same_side) {
  std::vector<std::pair<HeadName, HeadName>> pairs;
  for (const HeadName& a : selected) {
    const HeadName& b = others.find(a, other);
    if (same_side && a == b) {
      throw usage_error(head_label(a) +
                        " would be compared with itself; give a second capture, or what is "
                        "other of side B: --b-step, --b-layer, --b-branch, --b-head ...");
    }
    pairs.emplace_back(a, b);
  }
  return pairs;
}

}  // namespace attnscope
