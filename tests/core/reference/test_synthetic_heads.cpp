#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/exact_math.h"
#include "core/reference/synthetic_heads.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"

using namespace attnscope;

namespace {

/// The numbers that decide a head's class, in double from the bf16 values of Q and K.
struct Scores {
  double largest_column = 0, text = 0, same_position = 0, same_frame = 0, local = 0;
  double position_ratio = 0, frame_ratio = 0;
};

struct Case {
  std::array<int64_t, 3> grid;
  int64_t text;
  TextPlace place;
  int64_t head_dim;
};

std::vector<float> bf16_rows(const SyntheticHead& head, SyntheticHead::Tensor tensor,
                             int64_t tokens, int64_t d) {
  std::vector<float> rows(static_cast<size_t>(tokens * d));
  for (int64_t i = 0; i < tokens; ++i) {
    float* row = rows.data() + i * d;
    head.write_row(tensor, tensor == SyntheticHead::Tensor::q ? 11 : 12, i, row);
    for (int64_t c = 0; c < d; ++c) row[c] = to_float(to_bf16(row[c]));
  }
  return rows;
}

void add_video_row(Scores& s, const TokenGrid& grid, int64_t query, const std::vector<double>& p) {
  const LatentCoord at = *grid.coord(query);
  for (int64_t j = 0; j < grid.tokens(); ++j) {
    const double w = p[static_cast<size_t>(j)];
    const auto key = grid.coord(j);
    if (!key) {
      s.text += w;
      continue;
    }
    const bool cell = key->y == at.y && key->x == at.x;
    if (key->t == at.t) s.same_frame += w;
    if (key->t != at.t && cell) s.same_position += w;
    if (std::abs(key->t - at.t) <= 1 && std::abs(key->y - at.y) <= 2 &&
        std::abs(key->x - at.x) <= 2) {
      s.local += w;
    }
  }
}

/// Over `sampled` evenly spread rows.
Scores score_head(HeadKind kind, const TokenGrid& grid, int64_t d, int64_t sampled) {
  const SyntheticHead head(kind, grid, d);
  const int64_t n = grid.tokens();
  const auto q = bf16_rows(head, SyntheticHead::Tensor::q, n, d);
  const auto k = bf16_rows(head, SyntheticHead::Tensor::k, n, d);
  Scores s;
  std::vector<double> p(static_cast<size_t>(n)), columns(static_cast<size_t>(n));
  double video_rows = 0;
  for (int64_t r = 0; r < sampled; ++r) {
    const int64_t i = (2 * r + 1) * n / (2 * sampled);
    double largest = -1e300;
    for (int64_t j = 0; j < n; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) {
        dot += static_cast<double>(q[static_cast<size_t>(i * d + c)]) *
               static_cast<double>(k[static_cast<size_t>(j * d + c)]);
      }
      p[static_cast<size_t>(j)] = dot / std::sqrt(static_cast<double>(d));
      largest = std::max(largest, p[static_cast<size_t>(j)]);
    }
    double sum = 0;
    for (double& w : p) sum += w = std::exp(w - largest);
    for (int64_t j = 0; j < n; ++j) {
      columns[static_cast<size_t>(j)] += p[static_cast<size_t>(j)] /= sum;
    }
    if (!grid.video_range().contains(i)) continue;
    video_rows += 1;
    add_video_row(s, grid, i, p);
  }
  s.largest_column =
      *std::max_element(columns.begin(), columns.end()) / static_cast<double>(sampled);
  for (double* mean : {&s.text, &s.same_position, &s.same_frame, &s.local}) *mean /= video_rows;
  const auto tokens = static_cast<double>(n);
  s.position_ratio = s.same_position / (static_cast<double>(grid.frames() - 1) / tokens);
  s.frame_ratio = s.same_frame / (static_cast<double>(grid.height() * grid.width()) / tokens);
  return s;
}

/// The class's own threshold is kept by half as much again, and those tested before it are missed
/// by a quarter at least.
void check_class(HeadKind kind, const Scores& s) {
  INFO(head_kind_name(kind) << ": column " << s.largest_column << ", text " << s.text
                            << ", position " << s.same_position << ", frame " << s.same_frame
                            << ", local " << s.local);
  constexpr double kAbove = 1.5, kBelow = 0.75;
  const bool sink = kind == HeadKind::sink;
  CHECK((sink ? s.largest_column >= kAbove * 0.10 : s.largest_column <= kBelow * 0.10));
  if (sink) return;
  CHECK((kind == HeadKind::text ? s.text >= kAbove * 0.25 : s.text <= kBelow * 0.25));
  if (kind == HeadKind::text) return;
  if (kind == HeadKind::temporal) {
    CHECK(s.same_position >= kAbove * 0.15);
    CHECK(s.position_ratio > kAbove * s.frame_ratio);
    return;
  }
  CHECK(s.same_position <= kBelow * 0.15);
  CHECK(
      (kind == HeadKind::spatial ? s.same_frame >= kAbove * 0.40 : s.same_frame <= kBelow * 0.40));
  if (kind == HeadKind::spatial) return;
  CHECK((kind == HeadKind::local ? s.local >= kAbove * 0.40 : s.local <= kBelow * 0.40));
}

void check_grid(const Case& c, int64_t sampled, int least_kinds) {
  const int64_t tokens = c.grid[0] * c.grid[1] * c.grid[2] + c.text;
  const TokenGrid grid = TokenGrid::video(tokens, c.grid, c.text, c.place);
  INFO("grid " << grid.grid_text() << ", text " << grid.text_text() << ", d " << c.head_dim);
  int kinds = 0;
  for (const HeadKind kind : head_kinds()) {
    if (head_kind_obstacle(kind, grid)) continue;
    ++kinds;
    check_class(
        kind, score_head(kind, grid, c.head_dim, sampled < 0 ? tokens : std::min(sampled, tokens)));
  }
  CHECK(kinds >= least_kinds);
}

}  // namespace

TEST_CASE("synthetic heads have their class on small grids, over all rows") {
  const int64_t rows = attnscope::test::sanitized() ? 64 : -1;
  check_grid({{5, 12, 20}, 16, TextPlace::start, 48}, rows, 6);
  check_grid({{6, 9, 8}, 40, TextPlace::end, 64}, rows, 6);
  check_grid({{5, 8, 8}, 0, TextPlace::none, 40}, rows, 5);
  check_grid({{5, 8, 8}, 1, TextPlace::start, 40}, rows, 5);
  check_grid({{2, 6, 6}, 64, TextPlace::start, 40}, rows, 5);
  check_grid({{1, 12, 12}, 20, TextPlace::start, 40}, rows, 3);
  check_grid({{17, 8, 9}, 24, TextPlace::end, 128}, rows, 6);
}

TEST_CASE("synthetic heads have their class at the size of cogvideox-5b") {
  check_grid({{13, 30, 45}, 226, TextPlace::start, 64}, attnscope::test::sanitized() ? 16 : 64, 6);
}

TEST_CASE("synthetic heads have their class at the size of hunyuanvideo", "[.][large]") {
  check_grid({{33, 45, 80}, 256, TextPlace::end, 128}, 64, 6);
}

TEST_CASE("synthetic heads refuse what cannot hold them") {
  const auto message = [](HeadKind kind, std::array<int64_t, 3> grid, int64_t text, int64_t d) {
    const int64_t tokens = grid[0] * grid[1] * grid[2] + text;
    try {
      SyntheticHead(
          kind,
          TokenGrid::video(tokens, grid, text, text == 0 ? TextPlace::none : TextPlace::start), d);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message(HeadKind::temporal, {1, 20, 20}, 0, 64) ==
        "a temporal head needs at least 2 frames (got 1), grid 1x20x20, text none");
  CHECK(message(HeadKind::text, {2, 20, 20}, 3, 64) ==
        "a text head needs at least 16 text tokens (got 3), grid 2x20x20, text 3@start");
  CHECK(message(HeadKind::sink, {1, 7, 9}, 0, 64) ==
        "a sink head needs at least 64 video tokens (got 63), grid 1x7x9, text none");
  CHECK(message(HeadKind::temporal, {13, 30, 45}, 226, 32) ==
        "a temporal head on the grid 13x30x45 needs a head_dim of 34 (got 32)");
  CHECK(message(HeadKind::temporal, {13, 30, 45}, 226, 34).empty());
  CHECK(message(HeadKind::spatial, {1, 4, 5000}, 0, 64) ==
        "grid 1x4x5000: an axis is at most 4096 long here");
}

TEST_CASE("exact_turn and exact_log agree with the C library's functions") {
  constexpr double kPi = 3.14159265358979323846;
  for (const int octave : {1, 2, 3, 7, 13}) {
    for (int64_t step = -70; step < 9000; step += 7) {
      const double turn = static_cast<double>(step & ((int64_t{1} << octave) - 1));
      const double angle = 2 * kPi * turn / static_cast<double>(int64_t{1} << octave);
      const CosSin got = exact_turn(step, octave);
      INFO(step << " of 2^" << octave);
      REQUIRE(std::abs(got.cos - std::cos(angle)) < 2e-15);
      REQUIRE(std::abs(got.sin - std::sin(angle)) < 2e-15);
    }
  }
  for (double x = 1e-9; x < 1e12; x *= 1.37) {
    REQUIRE(std::abs(exact_log(x) - std::log(x)) <= 1e-14 * std::max(1.0, std::abs(std::log(x))));
  }
  CHECK(exact_log(1) == 0);
}
