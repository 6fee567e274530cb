#include "cli/serve/first_look.h"

#include <algorithm>

#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// The map's part of a window of 1280 × 800 pixels, about. Another one's tiles come of the same
/// rows.
constexpr PaneSize kUsualPane{900, 700};

}  // namespace

FirstLook::FirstLook(TileSource& tiles, const RemoteHello& hello) : tiles_(tiles) {
  // Exports are read as fast as they are asked for, and logits have another scale to begin with.
  if (!hello.computed || hello.calls.empty() || !hello.calls.front().weights) return;
  ViewState state;
  const MapGeometry geometry = tiles.geometry(state.head);
  state.rect = fit_rect(geometry.rows, geometry.cols);
  for (const TileId& id : wanted_tiles(state, geometry, kUsualPane)) wishes_.push_back({id});
  waiting_ = true;
  tiles_.want(wishes_);
}

void FirstLook::look() {
  if (!waiting_) return;
  const bool all = std::all_of(wishes_.begin(), wishes_.end(),
                               [&](const Wish& wish) { return is_there(tiles_.find(wish.ask)); });
  const bool failed = std::any_of(wishes_.begin(), wishes_.end(), [&](const Wish& wish) {
    return !tiles_.problem(wish.ask).empty();
  });
  if (!all && !failed && tiles_.status().problem.empty()) return;
  waiting_ = false;
  tiles_.want({});
}

}  // namespace attnscope
