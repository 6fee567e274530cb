#pragma once

#include <string>
#include <vector>

#include "io/lab/edit_choice.h"
#include "tests/support/helpers.h"

namespace attnscope::lab_tests {

/// Where a row is measured; the rest of its name is that of Wan's self attention.
struct At {
  int64_t step = 0, layer = 0, head = 0;
  std::string branch = "cond";
};

inline HeadName name_at(const At& at) {
  HeadName name;
  name.step = at.step;
  name.layer = at.layer;
  name.branch = at.branch;
  name.kind = "self";
  name.head = at.head;
  name.place.block = "blocks." + std::to_string(at.layer);
  name.place.slot = "attn1";
  return name;
}

inline EditNumbers row(const At& at, const std::string& edit, double tiles,
                       std::optional<double> error, std::optional<double> recall = 0.9) {
  return {name_at(at), edit, tiles, error, recall, recall, 64, 64};
}

/// The message of the Error that `call` throws; empty where it throws none.
template <typename Call>
std::string refusal(const Call& call) {
  const auto error = test::error_of(call);
  return error ? error->what() : "";
}

}  // namespace attnscope::lab_tests
