#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/problem/head_name.h"
#include "io/lab/edit_plan.h"
#include "io/lab/edit_target.h"

namespace attnscope {

/// What an edit does to a head in one forward.
struct EditNumbers {
  HeadName head;
  std::string edit;  ///< "sol:tau=1"; "dense" or "none" leave nothing out
  double tiles = 1;  ///< share of the blocks that a kernel visits
  std::optional<double> output_error = {}, recall = {}, recall_p05 = {};
  int64_t queries = 0, keys = 0;  ///< of the call
  std::string capture = {};       ///< which of several captures: forwards of two are two
};

/// Whose heads share an edit.
enum class EditScope : uint8_t {
  head,   ///< one head of a layer
  layer,  ///< all heads of an attention of a layer
  model,  ///< all of a kind and slot; what lies outside the main stack is chosen for by itself
  step    ///< one head in one step
};

/// "head", "layer", "model" or "step". Throws Error(usage).
EditScope parse_edit_scope(std::string_view text, std::string_view option = "--per");

/// For each scope the edit that visits the fewest blocks in the mean of those that keep the target
/// over all rows of the scope; of equal ones that with the better mean, then the one measured
/// first; dense where none keeps it or none visits less. Branches and batch items share a choice.
/// Scopes of `step` that follow each other in the measured steps with one choice are a range, from
/// the first to the last of these, with the steps between; steps in no range stay dense. Heads of
/// one layer with one choice are one scope.
///
/// `hold_out`: as many forwards (step, branch, batch item, of one capture) of each scope, spread
/// evenly over those that it was measured in, are not looked at; PlanScope::found has what the
/// choice keeps of them. The plan's capture and hash are the caller's to fill in.
///
/// Throws Error(usage), naming the head, where a row lacks the target's number, a head was measured
/// under one edit and not under another, or twice, calls of a scope have different sizes, or no
/// forward would be left to look at.
EditPlan choose_edits(std::span<const EditNumbers> rows, const EditTarget& target, EditScope per,
                      int64_t hold_out);

}  // namespace attnscope
