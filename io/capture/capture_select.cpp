#include "io/capture/capture.h"

#include <algorithm>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Adds a batch item with these heads to those of its call that have the same.
void add_item(const CallEntry& call, int64_t item, std::vector<int64_t> heads,
              std::vector<SelectedCall>& selected) {
  for (auto same = selected.rbegin(); same != selected.rend() && same->call == &call; ++same) {
    if (same->heads != heads) continue;
    same->batch.push_back(item);
    return;
  }
  selected.push_back({&call, {item}, std::move(heads)});
}

}  // namespace

std::vector<SelectedCall> Capture::select(const CallSelection& selection,
                                          std::vector<std::string>* missing) const {
  HeadChoice choice(selection, "this capture");
  for (const CallEntry& call : calls_) {
    for (int64_t item = 0; item < call.problem->batch(); ++item) {
      choice.add(head_name(call.id, item, 0), call.problem->num_heads());
    }
  }
  choice.resolve();
  std::vector<SelectedCall> selected;
  for (const CallEntry& call : calls_) {
    for (int64_t item = 0; item < call.problem->batch(); ++item) {
      HeadName name = head_name(call.id, item, 0);
      if (!choice.takes_call(name)) continue;
      std::vector<int64_t> heads;
      for (; name.head < call.problem->num_heads(); ++name.head) {
        if (choice.takes(name)) heads.push_back(name.head);
      }
      if (!heads.empty()) add_item(call, item, std::move(heads), selected);
    }
  }
  if (selected.empty()) throw choice.nothing_left();
  if (missing != nullptr) *missing = choice.missing();
  return selected;
}

}  // namespace attnscope
