#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "viewer/view/maps/answers.h"

namespace attnscope::test {

/// Wishes by their kinds, which become a list in the order in which a window writes it.
struct WishesByKind {
  std::optional<LineRequest> line, other_line;
  std::vector<TileId> tiles;
  std::vector<HeadId> exact;  ///< heads whose passes are wanted, by one of their tiles
  std::vector<ProbeRequest> probes = {};
  std::vector<HeadId> sketches = {}, exact_sketches = {};
  std::optional<LineRequest> words_line = {};
  std::optional<MassRequest> masses = {};
  std::vector<FrameRequest> frames = {};
  std::vector<DifferenceId> exact_differences = {};
  std::optional<HeadId> tracks = {};             ///< sampled and exact
  std::optional<HeadsCompared> divergence = {};  ///< sampled and exact
  std::optional<MaskRequest> mask = {};

  operator Wishes() const {  // NOLINT(google-explicit-constructor)
    Wishes list;
    const auto put = [&](const Ask& ask, Stage stage = Stage::sampled) {
      Wish& wish = list.emplace_back();
      wish.ask = ask;
      wish.stage = stage;
    };
    const auto add = [&](const auto& asks, Stage stage = Stage::sampled) {
      for (const auto& ask : asks) put(ask, stage);
    };
    const auto add_one = [&](const auto& ask, Stage stage = Stage::sampled) {
      if (ask) put(*ask, stage);
    };
    const auto add_sketches = [&](const std::vector<HeadId>& heads, Stage stage) {
      for (const HeadId& head : heads) put(SketchRequest{head}, stage);
    };
    std::optional<TracksRequest> of_head;
    if (tracks) of_head = {*tracks};
    add(probes);
    add_one(line);
    add_one(other_line);
    add_one(words_line);
    add_one(masses);
    add(tiles);
    add_one(mask);
    add(frames);
    add_one(of_head);
    add_sketches(sketches, Stage::sampled);
    add_one(divergence);
    for (const DifferenceId& each : exact_differences) {
      put(TileId{each.head, each.quantity, 0, 0, 0, each.against}, Stage::exact);
    }
    for (const HeadId& head : exact) {
      const auto is_of = [&](const TileId& id) { return id.head == head && !id.against; };
      const auto tile = std::find_if(tiles.begin(), tiles.end(), is_of);
      put(tile == tiles.end() ? TileId{head} : *tile, Stage::exact);
    }
    add_one(divergence, Stage::exact);
    add_one(of_head, Stage::exact);
    add_sketches(exact_sketches, Stage::exact);
    return list;
  }
};

}  // namespace attnscope::test
