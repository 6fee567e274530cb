#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// The edit that leaves attention as it is.
inline constexpr const char* kDenseEdit = "dense";

/// The target's number over the forwards that were looked at.
struct TargetNumbers {
  double mean = 0, worst = 0;  ///< worst: of one head in one forward
  int64_t forwards = 0;
  friend bool operator==(const TargetNumbers&, const TargetNumbers&) = default;
};

/// Heads that share an edit. A value.
struct PlanScope {
  std::optional<std::array<int64_t, 2>> steps = {};  ///< from the first to the last; nothing: all
  std::optional<std::vector<int64_t>> layers = {};   ///< nothing: all, or those of `block`
  std::string kind;
  std::string block = {}, slot = {};  ///< empty: any
  std::optional<std::vector<int64_t>> heads = {};
  std::string edit = kDenseEdit;
  double tiles = 1;  ///< mean share of the blocks that a kernel visits
  TargetNumbers promised = {};
  std::optional<TargetNumbers> found = {};  ///< over the forwards that were held out
  int64_t queries = 0, keys = 0;            ///< of each call

  bool holds(const HeadName& head) const;
  /// "steps 0-9 layer 3 self heads 0, 2".
  std::string describe() const;
  friend bool operator==(const PlanScope&, const PlanScope&) = default;
};

/// Which edit each head gets: that of the first scope that holds it, otherwise none. A value.
struct EditPlan {
  std::string capture = {}, capture_hash = {};
  std::string target = {};              ///< as parse_target() reads it
  std::vector<std::string> among = {};  ///< edits that were measured
  int64_t hold_out = 0;
  std::vector<PlanScope> scopes = {};

  friend bool operator==(const EditPlan&, const EditPlan&) = default;
};

/// The plan as the text of a file, "attnscope-edits/1".
std::string edit_plan_text(const EditPlan& plan);

/// Reads back what edit_plan_text() wrote; `file` is how messages name it. Throws Error(file) with
/// file, place, what was expected and what is there; members that the format does not have and
/// other versions are refused.
EditPlan parse_edit_plan(std::string_view text, const std::string& file);
/// As parse_edit_plan(), of a file of at most 256 MiB.
EditPlan read_edit_plan(const std::filesystem::path& path);

/// The first scope that holds the head; null: it stays dense. Borrows the plan. A step or layer
/// that nobody recorded counts as 0.
const PlanScope* scope_of(const EditPlan& plan, const HeadName& head);

/// Throws Error(usage) where the plan has an edit for that head, chosen for calls of other numbers
/// of tokens. `name` is how messages name the plan.
void check_shapes(const EditPlan& plan, const HeadName& head, int64_t queries, int64_t keys,
                  std::string_view name);

}  // namespace attnscope
