#include "web/engine/page_mask.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/mask/mask_runs.h"

namespace attnscope {
namespace {

class PageMaskTerm : public RunsTerm {
 public:
  explicit PageMaskTerm(PageMask mask) : mask_(std::move(mask)) {}
  std::string describe() const override { return "as recorded"; }
  void check_shape(int64_t, int64_t, int64_t queries, int64_t) const override {
    if (static_cast<int64_t>(mask_.row_lists.size()) != queries) {
      throw usage_error("the page's mask is of another number of queries");
    }
  }

 protected:
  void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const override {
    const auto list = static_cast<size_t>(mask_.row_lists[static_cast<size_t>(query)]);
    const auto first = mask_.runs.begin() + mask_.starts[list];
    const auto last = mask_.runs.begin() + mask_.starts[list + 1];
    auto run = std::upper_bound(first, last, keys.begin,
                                [](int64_t key, const IndexRange& each) { return key < each.end; });
    for (; run != last && run->begin < keys.end; ++run) {
      runs.push_back({std::max(run->begin, keys.begin), std::min(run->end, keys.end)});
    }
  }

 private:
  const PageMask mask_;
};

void check_list(const PageMask& mask, size_t list, int64_t keys) {
  int64_t past = 0;
  for (int32_t i = mask.starts[list]; i < mask.starts[list + 1]; ++i) {
    const IndexRange run = mask.runs[static_cast<size_t>(i)];
    if (run.begin < past || run.end <= run.begin || run.end > keys) {
      throw usage_error("the page's mask has runs of keys out of their order");
    }
    past = run.end;
  }
}

}  // namespace

Mask page_mask(PageMask mask, int64_t keys) {
  const auto lists = static_cast<int64_t>(mask.starts.size()) - 1;
  const bool ascending = std::is_sorted(mask.starts.begin(), mask.starts.end());
  if (lists < 1 || !ascending || mask.starts.front() != 0 ||
      mask.starts.back() != static_cast<int64_t>(mask.runs.size())) {
    throw usage_error("the page's mask is damaged");
  }
  for (size_t list = 0; list + 1 < mask.starts.size(); ++list) check_list(mask, list, keys);
  for (const int32_t list : mask.row_lists) {
    if (list < 0 || list >= lists) throw usage_error("the page's mask is damaged");
  }
  return Mask::term(std::make_shared<PageMaskTerm>(std::move(mask)));
}

}  // namespace attnscope
