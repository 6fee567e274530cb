#include "io/capture/call_entry.h"

namespace attnscope {
namespace {

/// The list of a batch item, where one list may serve all.
template <typename T>
const T& of_item(const std::vector<T>& lists, int64_t item) {
  return lists[lists.size() == 1 ? 0 : static_cast<size_t>(item)];
}

}  // namespace

std::span<const std::string> tokens_of_item(const std::vector<std::vector<std::string>>& lists,
                                            int64_t item) {
  if (lists.empty()) return {};
  return of_item(lists, item);
}

const std::string& branch_of(const CallId& id, int64_t item) { return of_item(id.branches, item); }

}  // namespace attnscope
