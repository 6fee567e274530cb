#include "tests/support/catch.h"
#include "viewer/view/row/film_content.h"
#include "viewer/view/row/film_player.h"

using namespace attnscope;

TEST_CASE("a player goes on by time, and is never in a hurry") {
  FilmPlayer player;
  CHECK(player.advance(10) == 0);
  CHECK(player.wait(10) < 0);
  player.start(10, 4);
  CHECK(player.playing());
  CHECK(player.wait(10) == Approx(0.25));
  CHECK(player.advance(10.2) == 0);
  CHECK(player.advance(10.25) == 1);
  CHECK(player.advance(10.3) == 0);
  // It was late by a second.
  CHECK(player.advance(11.55) == 5);
  CHECK(player.wait(11.55) == Approx(0.2));
  player.stop();
  CHECK(player.advance(20) == 0);
}

TEST_CASE("a film ends, or begins again") {
  CHECK(film_place(3, 1, 7, true).moment == 4);
  CHECK(film_place(6, 1, 7, true).moment == 0);
  CHECK(film_place(6, 9, 7, true).moment == 1);
  CHECK(film_place(6, 9, 7, true).goes_on);
  CHECK(film_place(5, 1, 7, false).moment == 6);
  CHECK(film_place(5, 1, 7, false).goes_on);
  CHECK(film_place(6, 1, 7, false).moment == 6);
  CHECK_FALSE(film_place(6, 1, 7, false).goes_on);
  CHECK_FALSE(film_place(0, 1, 0, true).goes_on);
}

TEST_CASE("a line's film has the numbers of its video, masked ones told") {
  const TokenGrid grid = TokenGrid::video(10, {2, 2, 2}, 2, TextPlace::start);
  MapLine line;
  line.values = {9, 9, 1, 2, 3, 4, 5, 6, 7, 8};
  line.masked = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  const std::vector<int64_t> pictures{0, 1, 1};
  const FilmContent film = film_content(line, grid, true, pictures, FilmTime::linear);
  CHECK(film.moments.size() == 3);
  CHECK(film.has_pictures);
  CHECK(film.numbers_at(0, 2)[2] == 6);
  CHECK(std::isinf(film.numbers_at(0, 2)[1]));
  CHECK(film.numbers_at(1, 1)[0] == Approx(1 + 4 * 2.0 / 3));
  CHECK(film.clamped_moment(99) == 2);
  // Half of 34: 8 + 7 + 6.
  CHECK(film.outlined(1) == 6);
  CHECK(film.outlined(10) == 60);
  CHECK(film_rate({}, film) == kVideoRate);
  FilmLook slow;
  slow.rate = 3;
  CHECK(film_rate(slow, film) == 3);
  FilmLook look;
  CHECK(over_text(look, film).empty());
  look.over = true;
  look.mode = FilmMode::outline;
  CHECK(over_text(look, film).find("half of the film's weight") != std::string::npos);
  CHECK_FALSE(film_time_text(film.time).empty());
  // Pictures are of the video alone.
  const FilmContent other = film_content(line, grid, false, pictures, FilmTime::linear);
  CHECK_FALSE(other.has_pictures);
  CHECK(other.moments.size() == 2);
  CHECK(other.time == FilmTime::latent);
  CHECK(over_text(look, other).empty());
}

TEST_CASE("a film of a difference outlines by size, and evicted cells go with their frames") {
  const TokenGrid grid = TokenGrid::video(10, {2, 2, 2}, 2, TextPlace::start);
  MapLine line;
  line.values = {9, 9, -7, 2, 1, 0, 3, -8, 1, 2};
  const std::vector<int64_t> pictures{0, 1, 1};
  const std::vector<uint8_t> evicted{0, 0, 0, 1, 0, 0, 0, 0, 0, 1};
  const FilmContent film = film_content(line, grid, true, pictures, FilmTime::linear, evicted,
                                        Difference::signed_difference);
  // The tenth of eight cells: the one that is largest, of whatever sign.
  CHECK(film.outlined(1) == 8);
  CHECK(film.outlined(2) == 16);
  FilmLook look;
  look.over = true;
  look.mode = FilmMode::outline;
  CHECK(over_text(look, film) == "outlined: the tenth of the cells that differs most");
  CHECK(film.evicted_at(0) == std::vector<uint8_t>{0, 1, 0, 0});
  CHECK(film.evicted_at(2) == std::vector<uint8_t>{0, 0, 0, 1});
  // Two thirds of the way to the second frame.
  CHECK(film.evicted_at(1) == std::vector<uint8_t>{0, 0, 0, 1});
  const FilmContent whole = film_content(line, grid, true, pictures, FilmTime::linear);
  CHECK(whole.evicted_at(0).empty());
}
