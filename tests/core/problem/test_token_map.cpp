#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/problem/key_segments.h"
#include "core/problem/token_grid.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Segments of these sizes one after the other.
class MapMaker {
 public:
  MapMaker& add(const std::string& name, Modality modality, int64_t count,
                std::array<int64_t, 3> grid = {}) {
    TokenSegment segment;
    segment.name = name;
    segment.modality = modality;
    segment.tokens = {tokens_, tokens_ + count};
    segment.grid = grid;
    tokens_ += count;
    segments.push_back(segment);
    return *this;
  }
  TokenGrid make() const { return TokenGrid::of_segments(segments); }

  std::vector<TokenSegment> segments;

 private:
  int64_t tokens_ = 0;
};

/// [clip, t5, ref1, video, audio, late, tail], with text apart from the first and padding.
MapMaker rich() {
  MapMaker maker;
  maker.add("clip", Modality::text, 4)
      .add("t5", Modality::text, 6)
      .add("ref1", Modality::reference, 12, {1, 3, 4})
      .add("video", Modality::video, 24, {2, 3, 4})
      .add("audio", Modality::audio, 5)
      .add("late", Modality::text, 3)
      .add("tail", Modality::padding, 2);
  maker.segments[1].valid = {4, 6};
  return maker;
}

}  // namespace

TEST_CASE("a token map tells video, text, padding and named segments apart") {
  const TokenGrid map = rich().make();
  CHECK(map.tokens() == 56);
  CHECK(map.has_grid());
  CHECK(map.frames() == 2);
  CHECK(map.video_range() == IndexRange{22, 46});
  CHECK(map.text_range() == IndexRange{0, 10});
  CHECK(map.named_segments() == std::vector<std::string>{"ref1", "audio"});
  CHECK(map.grid_text() == "none");
  CHECK(map.text_text() == "none");
  const auto at = [&](int64_t index, int64_t batch) {
    return static_cast<int>(map.segment(index, batch));
  };
  CHECK(at(0, 0) == 0);
  CHECK(at(7, 0) == 0);
  CHECK(at(8, 0) == 2);  // of two valid words more in the other item
  CHECK(at(8, 1) == 0);
  CHECK(at(10, 0) == 3);
  CHECK(at(22, 0) == 1);
  CHECK(at(46, 0) == 4);
  CHECK(at(51, 0) == 0);
  CHECK(at(55, 0) == 2);
  CHECK(map.coord(23) == LatentCoord{0, 0, 1});
  CHECK_FALSE(map.coord(10));
  CHECK(map.any_coord(15) == LatentCoord{0, 1, 1});
  CHECK(map.index_of({1, 2, 3}) == 45);
  CHECK(map.valid_items() == 2);
  CHECK(map.has_padding());
  CHECK_FALSE(map.same_padding(0, 1));
  CHECK(map.outside_video() == std::vector<IndexRange>{{0, 22}, {46, 56}});
  CHECK(map.place_text(23) == "(0, 0, 1)");
  CHECK(map.place_text(15) == "ref1 (0, 1, 1)");
  CHECK(map.place_text(48) == "audio 2");
  CHECK(map.place_text(8, 0) == "t5 4 padding");
  CHECK(map.place_text(55) == "tail 1");
  CHECK(&map.segment_named("late") == &map.segments()[5]);
  const std::string text = thrown_text(ErrorCode::usage, [&] { map.segment_named("ref2"); });
  CHECK(text ==
        "no segment is called ref2, did you mean ref1? (there are clip, t5, ref1, video, "
        "audio, late, tail)");
  CHECK(map.same_places(map));
  MapMaker other = rich();
  other.segments[1].valid = {1, 1};
  CHECK(map.same_places(other.make()));
  CHECK_FALSE(map == other.make());
  other.segments[4].name = "sound";
  CHECK_FALSE(map.same_places(other.make()));
}

TEST_CASE("the video of a token map is the first grid of video, then of a picture") {
  const auto video = [](const MapMaker& maker) { return maker.make().video_range(); };
  MapMaker maker;
  maker.add("a", Modality::image, 4, {1, 2, 2}).add("b", Modality::video, 3);
  CHECK(video(maker) == IndexRange{0, 4});
  maker.add("c", Modality::video, 8, {2, 2, 2}).add("d", Modality::video, 8, {2, 2, 2});
  CHECK(video(maker) == IndexRange{7, 15});
  CHECK(maker.make().named_segments() == std::vector<std::string>{"a", "b", "d"});
  MapMaker none;
  none.add("other", Modality::other, 9);
  CHECK(none.make().video_range().empty());
  CHECK(none.make().outside_video() == std::vector<IndexRange>{{0, 9}});
  MapMaker words;
  words.add("a", Modality::text, 4).add("b", Modality::text, 5);
  CHECK(words.make().text_text() == "all");
  MapMaker joint;
  joint.add("video", Modality::video, 4, {1, 2, 2})
      .add("a", Modality::text, 3)
      .add("b", Modality::text, 2);
  CHECK(joint.make().text_text() == "5@end");
  CHECK(joint.make().grid_text() == "1x2x2");
}

TEST_CASE("cells in tiles and in a listed order have their places") {
  const std::array<int64_t, 3> grid{3, 5, 4}, tile{2, 2, 3};
  // By the definition: tiles one after the other, cells of a tile one after the other.
  std::vector<LatentCoord> expected;
  for (int64_t t0 = 0; t0 < grid[0]; t0 += tile[0]) {
    for (int64_t y0 = 0; y0 < grid[1]; y0 += tile[1]) {
      for (int64_t x0 = 0; x0 < grid[2]; x0 += tile[2]) {
        for (int64_t t = t0; t < std::min(t0 + tile[0], grid[0]); ++t) {
          for (int64_t y = y0; y < std::min(y0 + tile[1], grid[1]); ++y) {
            for (int64_t x = x0; x < std::min(x0 + tile[2], grid[2]); ++x) {
              expected.push_back({t, y, x});
            }
          }
        }
      }
    }
  }
  TokenSegment segment;
  segment.tokens = {7, 67};
  segment.grid = grid;
  segment.order = CellOrder::tiles;
  segment.tile = tile;
  for (int64_t i = 0; i < 60; ++i) {
    INFO(i);
    CHECK(segment.coord(i) == expected[static_cast<size_t>(i)]);
    CHECK(segment.token_at(expected[static_cast<size_t>(i)]) == i);
  }
  segment.order = CellOrder::listed;
  CHECK_FALSE(segment.coord(0));
  std::vector<int32_t> cells(60);
  std::iota(cells.begin(), cells.end(), 0);
  std::reverse(cells.begin(), cells.end());
  segment.cells = std::make_shared<const std::vector<int32_t>>(cells);
  CHECK(segment.coord(0) == LatentCoord{2, 4, 3});
  CHECK(segment.token_at({2, 4, 3}) == 0);
  segment.name = "video";
  segment.modality = Modality::video;
  segment.tokens = {0, 60};
  // Frames that are not row-major are no frames for whoever takes them as such.
  const TokenGrid map = TokenGrid::of_segments({segment});
  CHECK_FALSE(map.has_grid());
  CHECK(map.video_range() == IndexRange{0, 60});
  CHECK(map.any_coord(0) == LatentCoord{2, 4, 3});
  CHECK(map.place_text(0) == "video (2, 4, 3)");
}

TEST_CASE("places of a line of cells have numbers") {
  MapMaker maker;
  maker.add("video", Modality::video, 4, {1, 2, 2}).add("audio", Modality::audio, 5, {5, 1, 1});
  CHECK(maker.make().place_text(7) == "audio 3");
  CHECK(maker.make().place_text(3) == "(0, 1, 1)");
}

TEST_CASE("token maps without order, room or names are refused") {
  const auto refused = [](std::vector<TokenSegment> segments) {
    return thrown_text(ErrorCode::usage, [&] { TokenGrid::of_segments(std::move(segments)); });
  };
  CHECK_FALSE(refused({}).empty());
  std::vector<TokenSegment> gap = rich().segments;
  gap[2].tokens = {11, 22};
  CHECK(refused(gap).find("segment ref1 does not begin") != std::string::npos);
  MapMaker many;
  for (int i = 0; i < 201; ++i) many.add("s" + std::to_string(i), Modality::other, 1);
  CHECK(refused(many.segments).find("1 to 200 segments (got 201)") != std::string::npos);
}

TEST_CASE("masses of a token map's keys are told apart by segment, padding and frame") {
  const TokenGrid map = rich().make();
  for (const int64_t batch : {0, 1}) {
    const KeySegments parts(map, batch);
    CHECK(parts.frames() == 2);
    CHECK(parts.groups() == 1 + 2 + 5);
    std::vector<int64_t> part_of(56, -1);
    int64_t end = 0;
    for (const KeySegments::Span& span : parts.spans()) {
      CHECK(span.keys.begin == end);
      end = span.keys.end;
      REQUIRE(span.segment < parts.count());
      for (int64_t key = span.keys.begin; key < span.keys.end; ++key) {
        part_of[static_cast<size_t>(key)] = span.segment;
      }
    }
    CHECK(end == 56);
    for (int64_t key = 0; key < 56; ++key) {
      INFO("key " << key << " batch " << batch);
      const int64_t group = group_at(map, key);
      const auto [counts, pads] = parts.parts_of(group);
      const int64_t part = part_of[static_cast<size_t>(key)];
      CHECK((part == counts || part == pads));
      CHECK(parts.is_padding(part) == (map.segment(key, batch) == Segment::padding));
      const size_t number = map.segment_number(key);
      CHECK(segment_groups(map, number).contains(group));
      CHECK(parts.is_text(group) == (map.segments()[number].modality == Modality::text));
      if (const auto place = map.coord(key)) CHECK(group == 1 + place->t);
    }
  }
  // Segments have groups of their own.
  std::vector<bool> taken(8);
  for (size_t i = 0; i < map.segments().size(); ++i) {
    const IndexRange groups = segment_groups(map, i);
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      CHECK_FALSE(taken[static_cast<size_t>(g)]);
      taken[static_cast<size_t>(g)] = true;
    }
  }
}
