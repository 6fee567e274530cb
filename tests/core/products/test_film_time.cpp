#include <limits>

#include "core/products/film_time.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

constexpr float kMaskedCell = -std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("in latent time each latent frame has the middle one of its pictures") {
  const std::vector<int64_t> pictures{0, 1, 1, 1, 1, 3, 9};
  const auto moments = film_moments(4, pictures, FilmTime::latent);
  REQUIRE(moments.size() == 4);
  CHECK(moments[0] == FilmMoment{0, 0, 0, 0});
  CHECK(moments[1] == FilmMoment{1, 1, 0, 2});
  CHECK(moments[2] == FilmMoment{2, 2, 0, -1});
  CHECK(moments[3] == FilmMoment{3, 3, 0, 5});
  CHECK(moment_name(moments[3], 3, FilmTime::latent) == "t3");
}

TEST_CASE("resampled, each picture is a moment") {
  const std::vector<int64_t> pictures{0, 1, 1, 1, 1, 2, 2, 2, 2};
  const auto nearest = film_moments(3, pictures, FilmTime::nearest);
  REQUIRE(nearest.size() == 9);
  CHECK(nearest[4] == FilmMoment{1, 1, 0, 4});
  CHECK(moment_name(nearest[4], 4, FilmTime::nearest) == "frame 4");
  const auto linear = film_moments(3, pictures, FilmTime::linear);
  REQUIRE(linear.size() == 9);
  // Middles: 0, 2.5 and 6.5.
  CHECK(linear[0] == FilmMoment{0, 0, 0, 0});
  CHECK(linear[1].t == 0);
  CHECK(linear[1].next == 1);
  CHECK(linear[1].part == Approx(0.4));
  CHECK(linear[4].part == Approx(1.5 / 4));
  CHECK(linear[4].next == 2);
  CHECK(linear[8] == FilmMoment{2, 2, 0, 8});
  CHECK(linear[8].picture == 8);
  // Listed in any order, they play by latent frame.
  const auto mixed = film_moments(2, std::vector<int64_t>{1, 0}, FilmTime::nearest);
  CHECK(mixed[0] == FilmMoment{0, 0, 0, 1});
}

TEST_CASE("a film without pictures has its latent frames") {
  for (const FilmTime time : {FilmTime::latent, FilmTime::nearest, FilmTime::linear}) {
    const auto moments = film_moments(2, {}, time);
    REQUIRE(moments.size() == 2);
    CHECK(moments[1] == FilmMoment{1, 1, 0, -1});
  }
}

TEST_CASE("numbers between two latent frames lie between theirs; masked ones stay so") {
  const std::vector<float> film{0, 2, kMaskedCell, 4, 6, 1};
  CHECK(moment_numbers(film, 3, {1, 1, 0, 0}) == std::vector<float>{4, 6, 1});
  const auto early = moment_numbers(film, 3, {0, 1, 0.25, 0});
  CHECK(early[0] == 1);
  CHECK(early[1] == 3);
  CHECK(early[2] == kMaskedCell);
  CHECK(moment_numbers(film, 3, {0, 1, 0.75, 0})[2] == 1);
}

TEST_CASE("volumes of latent frames become a film of moments") {
  QueryVolumes volumes;
  volumes.grid = {3, 1, 2};
  QueryVolume volume;
  volume.video = {1, 2, 3, 4, 5, kMaskedCell};
  volume.evicted = {0, 0, 0, 1, 0, 0};
  volume.query = {1, 0, 1};
  volumes.volumes.push_back(volume);
  const std::vector<FilmMoment> moments{
      {0, 0, 0, 0}, {0, 1, 0.25, 1}, {1, 1, 0, 2}, {1, 2, 0.75, 3}};
  const QueryVolumes film = volumes_at(volumes, moments);
  CHECK(film.grid == std::array<int64_t, 3>{4, 1, 2});
  const QueryVolume& shown = film.volumes.front();
  CHECK(shown.video == std::vector<float>{1, 2, 1.5, 2.5, 3, 4, 4.5, kMaskedCell});
  CHECK(shown.evicted == std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 0, 0});
  CHECK(shown.query == std::array<int64_t, 3>{2, 0, 1});
  // A frame that no moment is of has no query to outline.
  CHECK_FALSE(volumes_at(volumes, std::span(moments).first(1)).volumes.front().query);
}
