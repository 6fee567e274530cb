#include "tests/support/catch.h"
#include "viewer/app/counted_view.h"

using namespace attnscope;

namespace {

using Stage = CountedView::Stage;

CountedView::Key key_of(Stage stage, int tiles) {
  CountedView::Key key;
  key.rect = {0, 100, 0, 100};
  key.stage = stage;
  for (int i = 0; i < tiles; ++i) {
    auto tile = std::make_shared<MapTile>();
    tile->rows = tile->cols = 2;
    tile->max = tile->mean = std::vector<float>(4, 0.5f);
    key.tiles.push_back(std::move(tile));
  }
  return key;
}

}  // namespace

TEST_CASE("colours stand still while a map refines") {
  const CountedView::Key some = key_of(Stage::some, 1), more = key_of(Stage::some, 5);
  CHECK(more.is_counted_by(some));
  CHECK_FALSE(some.is_counted_by(key_of(Stage::some, 0)));
  CHECK(key_of(Stage::all, 9).is_counted_by(key_of(Stage::all, 9)));
  // All of it is there; all of it is exact; an exact tile is another.
  CHECK_FALSE(key_of(Stage::all, 9).is_counted_by(more));
  CHECK_FALSE(key_of(Stage::settled, 9).is_counted_by(key_of(Stage::all, 9)));
  CHECK_FALSE(key_of(Stage::settled, 9).is_counted_by(key_of(Stage::settled, 9)));
  const CountedView::Key settled = key_of(Stage::settled, 9);
  CHECK(settled.is_counted_by(settled));
  // Another view is another matter.
  CountedView::Key moved = some;
  moved.rect.k0 = 1;
  CHECK_FALSE(moved.is_counted_by(some));
  CountedView::Key head = some;
  head.head.head = 1;
  CHECK_FALSE(head.is_counted_by(some));
  CountedView::Key compared = some;
  compared.against = Against{{0, 0, 2}, Difference::absolute};
  CHECK_FALSE(compared.is_counted_by(some));
}
