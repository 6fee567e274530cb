#include "viewer/app/counted_view.h"

#include <chrono>
#include <utility>

namespace attnscope {
namespace {

/// Does a piece of work beside the window's thread; what it throws comes out of the future. In a
/// browser, where the window has one thread, it is done at once.
template <class Work>
auto aside(Work work) {
#ifdef __EMSCRIPTEN__
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  task();
  return result;
#else
  return std::async(std::launch::async, std::move(work));
#endif
}

}  // namespace

bool CountedView::Key::is_counted_by(const Key& other) const {
  const bool same_view = head == other.head && against == other.against && rect == other.rect &&
                         pool == other.pool && quantity == other.quantity && stage == other.stage;
  if (!same_view) return false;
  return tiles == other.tiles || (stage != Stage::settled && !other.tiles.empty());
}

void CountedView::take(Key key, bool moved, const std::function<void()>& wake) {
  if (counting_.valid() &&
      counting_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    histogram_ = counting_.get();
    key_ = std::move(counting_key_);
  }
  stale_ = !key.is_counted_by(key_);
  if (!stale_ || counting_.valid() || moved) return;
  // The first tiles are counted at once, so that the first picture has its colours.
  if (histogram_.empty() && key.tiles.size() <= 2) {
    histogram_ = ValueHistogram::of(key.tiles, key.rect, key.pool);
    key_ = std::move(key);
    stale_ = false;
    return;
  }
  counting_key_ = key;
  counting_ = aside([key = std::move(key), wake] {
    ValueHistogram counted = ValueHistogram::of(key.tiles, key.rect, key.pool);
    wake();
    return counted;
  });
}

}  // namespace attnscope
