#include <cmath>
#include <vector>

#include "core/problem/rope.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// q · k after both were turned as tokens i and j.
double turned_product(const HeadRotation& rotation, std::vector<float> q, std::vector<float> k,
                      int64_t i, int64_t j) {
  rotation.apply(i, q.data());
  rotation.apply(j, k.data());
  double sum = 0;
  for (size_t c = 0; c < q.size(); ++c) sum += double{q[c]} * double{k[c]};
  return sum;
}

std::vector<float> ramp(int64_t count, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(std::sin(step * static_cast<float>(i + 1)) + 0.5f);
  }
  return values;
}

}  // namespace

TEST_CASE("a rotation depends on the distance alone and keeps lengths") {
  const TokenGrid with_text = TokenGrid::video(6 + 5 * 5 * 6, {5, 5, 6}, 6, TextPlace::start);
  const TokenGrid bare = TokenGrid::video(5 * 5 * 6, {5, 5, 6}, 0, TextPlace::none);
  const auto q = ramp(64, 0.3f), k = ramp(64, 0.7f);
  std::vector<float> learnt;
  for (int i = 0; i < 3 * 2 * 32; ++i) learnt.push_back(0.001f * static_cast<float>(i % 37));
  std::vector<RopeVariant> variants(rope_variants().begin(), rope_variants().end());
  variants.push_back({"mochi", RopeFamily::mochi, {}});
  for (const RopeVariant& variant : variants) {
    INFO(variant.text);
    const TokenGrid& grid = variant.family == RopeFamily::minimax_h3 ? bare : with_text;
    const auto rotation =
        HeadRotation::make(variant.family, grid, {64, 2, 1, variant.numbers, learnt});
    REQUIRE(rotation);
    // The first frame is shorter than the others (ltx2).
    const int64_t a = grid.index_of({1, 1, 2}), b = grid.index_of({3, 3, 1});
    const int64_t c = grid.index_of({2, 2, 4}), d = grid.index_of({4, 4, 3});
    CHECK(turned_product(*rotation, q, k, a, b) ==
          Approx(turned_product(*rotation, q, k, c, d)).margin(1e-3));
    CHECK(turned_product(*rotation, q, k, a, b) !=
          Approx(turned_product(*rotation, q, k, a, d)).margin(1e-3));
    CHECK(turned_product(*rotation, q, q, b, b) ==
          Approx(turned_product(*rotation, q, q, a, a)).epsilon(1e-5));
    auto row = q;
    rotation->apply(b, row.data());
    rotation->undo(b, row.data());
    for (size_t i = 0; i < row.size(); ++i) CHECK(row[i] == Approx(q[i]).margin(1e-5));
  }
}

TEST_CASE("video rotations leave text alone") {
  const TokenGrid grid = TokenGrid::video(6 + 4 * 5 * 6, {4, 5, 6}, 6, TextPlace::start);
  const auto rotation = HeadRotation::make(RopeFamily::hunyuan, grid, {128, 1, 0, 0});
  REQUIRE(rotation);
  auto row = ramp(128, 0.2f);
  rotation->apply(3, row.data());
  CHECK(row == ramp(128, 0.2f));
}

TEST_CASE("angles are those of the families' definitions") {
  const TokenGrid grid = TokenGrid::video(4 * 5 * 6, {4, 5, 6}, 0, TextPlace::none);
  const auto angle = [&](RopeFamily family, int64_t d, int64_t channel, int64_t other) {
    const auto rotation = HeadRotation::make(family, grid, {d, 1, 0, 0});
    REQUIRE(rotation);
    std::vector<float> row(static_cast<size_t>(d));
    row[static_cast<size_t>(channel)] = 1;
    rotation->apply(grid.index_of({3, 2, 1}), row.data());
    return std::atan2(double{row[static_cast<size_t>(other)]},
                      double{row[static_cast<size_t>(channel)]});
  };
  // Channel 2 is the second pair of the t band; 16 channels of 64, base 10000.
  CHECK(angle(RopeFamily::cogvideox, 64, 2, 3) == Approx(3 * std::pow(10000, -2.0 / 16)));
  CHECK(angle(RopeFamily::cogvideox, 64, 16, 17) == Approx(2));
  CHECK(angle(RopeFamily::cogvideox, 64, 42, 43) == Approx(std::pow(10000, -2.0 / 24)));
  CHECK(angle(RopeFamily::hunyuan, 128, 2, 3) == Approx(3 * std::pow(256, -2.0 / 16)));
  CHECK(angle(RopeFamily::flux, 128, 74, 75) == Approx(std::pow(10000, -2.0 / 56)));
  CHECK(angle(RopeFamily::wan, 128, 44, 45) == Approx(2));
  CHECK(angle(RopeFamily::wan, 128, 88, 89) == Approx(std::pow(10000, -2.0 / 42)));
  CHECK(angle(RopeFamily::llama, 64, 31, 63) ==
        Approx(103 * std::pow(10000, -62.0 / 64)).margin(1e-6));
  // ltx: 60 channels in turns of t, y, x; the first pair that turns is t's, at position
  // 3 * 0.016, angle π/2 · (2 · 0.048 − 1).
  CHECK(angle(RopeFamily::ltx, 60, 0, 1) ==
        Approx(std::acos(-1.0) / 2 * (2 * 3 * 8.0 / 25 / 20 - 1)));
}

namespace {

/// Channels that one axis turns: where the token stands on it, and the band's base.
struct Band {
  double position;
  int64_t width;
  double base;
};

/// A row turned in double as the definition of rotary embedding says.
std::vector<double> plain_turn(const std::vector<float>& row, const std::vector<Band>& bands,
                               bool halves) {
  std::vector<double> turned(row.begin(), row.end());
  size_t half = 0, pair = 0;
  for (const Band& band : bands) half += static_cast<size_t>(band.width / 2);
  for (const Band& band : bands) {
    for (int64_t i = 0; i < band.width / 2; ++i, ++pair) {
      const double angle =
          band.position / std::pow(band.base, static_cast<double>(2 * i) / double(band.width));
      const size_t a = halves ? pair : 2 * pair, b = halves ? pair + half : 2 * pair + 1;
      turned[a] = row[a] * std::cos(angle) - row[b] * std::sin(angle);
      turned[b] = row[a] * std::sin(angle) + row[b] * std::cos(angle);
    }
  }
  return turned;
}

struct Defined {
  RopeFamily family;
  RopeNumbers numbers;
  int64_t head_dim;
  bool halves;
  std::vector<Band> cell;  ///< at t, y, x = 2, 3, 6
  std::vector<Band> text;  ///< token 4 of 9; empty: not turned
};

void check_row(const HeadRotation& rotation, int64_t token, const std::vector<Band>& bands,
               const Defined& defined) {
  const auto before = ramp(defined.head_dim, 0.37f);
  auto row = before;
  rotation.apply(token, row.data());
  const auto expected = plain_turn(before, bands, defined.halves);
  for (size_t i = 0; i < row.size(); ++i) CHECK(row[i] == Approx(expected[i]).margin(1e-6));
}

}  // namespace

TEST_CASE("bands, bases and places are those of today's models") {
  const double spatial = 10000 * std::pow(3, 42.0 / 40);
  const std::vector<Defined> families{
      {RopeFamily::cosmos,
       {.fps = 16, .scale = {1, 3, 3}},
       128,
       true,
       {{2 * 24.0 / 16, 44, 10000}, {3, 42, spatial}, {6, 42, spatial}},
       {}},
      {RopeFamily::cosmos,
       {.scale = {2, 1, 1}},
       128,
       true,
       {{2, 44, 10000 * std::pow(2, 44.0 / 42)}, {3, 42, 10000}, {6, 42, 10000}},
       {}},
      {RopeFamily::kandinsky5,
       {},
       64,
       false,
       {{2, 16, 10000}, {3 / 3.16, 24, 10000}, {6 / 3.16, 24, 10000}},
       {}},
      {RopeFamily::kandinsky5,
       {.scale = {1, 2, 2}},
       64,
       false,
       {{2, 16, 10000}, {1.5, 24, 10000}, {3, 24, 10000}},
       {}},
      {RopeFamily::hunyuan_image, {}, 128, false, {{3, 64, 256}, {6, 64, 256}}, {}},
      {RopeFamily::krea2, {}, 128, false, {{2, 32, 1000}, {3, 48, 1000}, {6, 48, 1000}}, {}},
      // Text at 1 to 9, the cells after it.
      {RopeFamily::z_image,
       {},
       128,
       false,
       {{2 + 10, 32, 256}, {3, 48, 256}, {6, 48, 256}},
       {{5, 32, 256}}},
      // Rows from -2, columns from -4 on; text from 3 on.
      {RopeFamily::qwen_image,
       {},
       128,
       false,
       {{2, 16, 10000}, {1, 56, 10000}, {2, 56, 10000}},
       {{7, 16, 10000}, {7, 56, 10000}, {7, 56, 10000}}},
      {RopeFamily::flux2,
       {},
       128,
       false,
       {{2, 32, 2000}, {3, 32, 2000}, {6, 32, 2000}},
       {{0, 96, 1}, {4, 32, 2000}}},
      {RopeFamily::llama,
       {.base = 5e5},
       64,
       true,
       {{9 + 2 * 28 + 3 * 7 + 6, 64, 5e5}},
       {{4, 64, 5e5}}},
  };
  const TokenGrid grid = TokenGrid::video(9 + 3 * 4 * 7, {3, 4, 7}, 9, TextPlace::start);
  for (const Defined& defined : families) {
    INFO(rope_name(defined.family));
    const auto rotation =
        HeadRotation::make(defined.family, grid, {defined.head_dim, 1, 0, defined.numbers});
    REQUIRE(rotation);
    check_row(*rotation, grid.index_of({2, 3, 6}), defined.cell, defined);
    check_row(*rotation, 4, defined.text, defined);
  }
}

TEST_CASE("the last quarter of minimax-h3's channels is not turned") {
  const TokenGrid grid = TokenGrid::video(3 * 4 * 7, {3, 4, 7}, 0, TextPlace::none);
  const auto rotation = HeadRotation::make(RopeFamily::minimax_h3, grid, {128, 1, 0});
  REQUIRE(rotation);
  check_row(*rotation, grid.index_of({2, 3, 6}), {{2, 32, 10000}, {3, 32, 10000}, {6, 32, 10000}},
            {RopeFamily::minimax_h3, {}, 128, true, {}, {}});
}

TEST_CASE("minimax-h3 turns every token by the positions that its caller tells") {
  const TokenGrid grid = TokenGrid::video(5 + 2 * 2 * 3, {2, 2, 3}, 5, TextPlace::start);
  auto positions = std::make_shared<TokenPositions>();
  positions->axes = 3;
  // Words along t, frames 5/3 and 20/3 apart, rows and columns centred.
  for (int64_t token = 0; token < 17; ++token) {
    const auto coord = grid.coord(token);
    const double t = coord ? 5 + 5.0 / 3 * static_cast<double>(coord->t) : double(token);
    const double y = coord ? 1.3 * static_cast<double>(coord->y) - 0.4 : 0;
    const double x = coord ? 1.3 * static_cast<double>(coord->x) - 1.7 : 0;
    for (const double place : {t, y, x}) positions->values.push_back(static_cast<float>(place));
  }
  HeadRotation::Shape shape{128, 1, 0};
  CHECK_FALSE(HeadRotation::make(RopeFamily::minimax_h3, grid, shape));
  shape.positions = positions;
  const auto rotation = HeadRotation::make(RopeFamily::minimax_h3, grid, shape);
  REQUIRE(rotation);
  for (const int64_t token : {4, 5, 16}) {
    std::vector<Band> bands;
    for (size_t axis = 0; axis < 3; ++axis) {
      const double place = positions->values[static_cast<size_t>(3 * token) + axis];
      bands.push_back({place, 32, 10000});
    }
    check_row(*rotation, token, bands, {RopeFamily::minimax_h3, {}, 128, true, {}, {}});
  }
  auto row = ramp(128, 0.3f);
  rotation->apply(16, row.data());
  rotation->undo(16, row.data());
  for (size_t i = 0; i < row.size(); ++i) CHECK(row[i] == Approx(ramp(128, 0.3f)[i]).margin(1e-5));
  // No grid is needed; other families count cells.
  CHECK(HeadRotation::make(RopeFamily::minimax_h3, TokenGrid::unknown(17), shape));
  CHECK_FALSE(HeadRotation::make(RopeFamily::wan, TokenGrid::unknown(17), shape));
  CHECK(HeadRotation::obstacle(RopeFamily::minimax_h3, TokenGrid::unknown(18), shape)
            .value_or("")
            .find("[18, 3]") != std::string::npos);
}

TEST_CASE("kandinsky5 halves the places of videos of 480 to 854 pixels") {
  const TokenGrid grid = TokenGrid::video(30 * 53, {1, 30, 53}, 0, TextPlace::none);
  const auto rotation = HeadRotation::make(RopeFamily::kandinsky5, grid, {64, 1, 0});
  REQUIRE(rotation);
  check_row(*rotation, grid.index_of({0, 7, 9}),
            {{0, 16, 10000}, {3.5, 24, 10000}, {4.5, 24, 10000}},
            {RopeFamily::kandinsky5, {}, 64, false, {}, {}});
}

TEST_CASE("ltx2 turns halves of a head by the middles of cells") {
  const TokenGrid grid = TokenGrid::video(3 * 4 * 7, {3, 4, 7}, 0, TextPlace::none);
  for (const int64_t t : {0, 2}) {
    for (const int64_t head : {0, 1}) {
      const auto rotation = HeadRotation::make(RopeFamily::ltx2, grid, {64, 2, head, {.fps = 30}});
      REQUIRE(rotation);
      const auto before = ramp(64, 0.37f);
      auto row = before;
      rotation->apply(grid.index_of({t, 3, 6}), row.data());
      // 64 pairs of both heads: the first still, then 21 turns of t, y, x.
      const double frames = t == 0 ? 0.5 : 8 * 2 - 3;
      const double share[] = {frames / 30 / 20, 32 * 3.5 / 2048, 32 * 6.5 / 2048};
      for (int64_t i = 0; i < 32; ++i) {
        const int64_t pair = head * 32 + i - 1;
        const double frequency =
            pair < 0 ? 0 : std::acos(-1.0) / 2 * std::pow(10000, double(pair / 3) / 20);
        const double angle = pair < 0 ? 0 : frequency * (2 * share[pair % 3] - 1);
        const auto a = static_cast<size_t>(i), b = static_cast<size_t>(i + 32);
        CHECK(row[a] ==
              Approx(before[a] * std::cos(angle) - before[b] * std::sin(angle)).margin(1e-6));
        CHECK(row[b] ==
              Approx(before[a] * std::sin(angle) + before[b] * std::cos(angle)).margin(1e-6));
      }
    }
  }
}

TEST_CASE("a video that begins within a stream is turned by the stream's frames") {
  TokenSegment part;
  part.name = "video", part.modality = Modality::video, part.tokens = {0, 2 * 5 * 6};
  part.grid = {2, 5, 6}, part.first_frame = 3;
  const TokenGrid grid = TokenGrid::of_segments({part});
  const TokenGrid stream = TokenGrid::video(5 * 5 * 6, {5, 5, 6}, 0, TextPlace::none);
  std::vector<float> learnt;
  for (int i = 0; i < 3 * 2 * 32; ++i) learnt.push_back(0.01f * static_cast<float>(i % 37));
  std::vector<RopeVariant> variants(rope_variants().begin(), rope_variants().end());
  variants.push_back({"mochi", RopeFamily::mochi, {}});
  for (const RopeVariant& variant : variants) {
    INFO(variant.text);
    const HeadRotation::Shape shape{64, 2, 1, variant.numbers, learnt};
    const auto of_part = HeadRotation::make(variant.family, grid, shape);
    const auto of_stream = HeadRotation::make(variant.family, stream, shape);
    REQUIRE((of_part && of_stream));
    auto row = ramp(64, 0.3f), expected = row;
    of_part->apply(grid.index_of({1, 2, 4}), row.data());
    // Lines count the tokens of the sequence, whatever they show.
    const bool line = variant.family == RopeFamily::gptj || variant.family == RopeFamily::llama;
    of_stream->apply(line ? grid.index_of({1, 2, 4}) : stream.index_of({4, 2, 4}), expected.data());
    for (size_t i = 0; i < row.size(); ++i) CHECK(row[i] == Approx(expected[i]).margin(1e-5));
  }
}

TEST_CASE("families that do not suit give nothing") {
  CHECK_FALSE(HeadRotation::make(RopeFamily::wan, TokenGrid::unknown(24), {64, 1, 0, 0}));
  const TokenGrid grid = TokenGrid::video(24, {2, 3, 4}, 0, TextPlace::none);
  CHECK_FALSE(HeadRotation::make(RopeFamily::hunyuan, grid, {24, 1, 0, 0}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::llama, grid, {7, 1, 0, 0}));
  for (RopeFamily family : rope_families()) CHECK(parse_rope(rope_name(family)) == family);
  CHECK_FALSE(parse_rope("cogvideo"));
  CHECK_FALSE(HeadRotation::make(RopeFamily::cosmos, grid, {128, 1, 0}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::flux2, grid, {44, 1, 0}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::wan, grid, {128, 1, 0, {.base = 500}}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::ltx, grid, {128, 1, 0, {.fps = 24}}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::flux2, grid, {128, 1, 0, {.scale = {1, 1, 1}}}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::mochi, grid, {64, 1, 0, 0}));
}

TEST_CASE("tokens whose places only the model's caller knows are refused") {
  const auto obstacle = [](RopeFamily family, const TokenGrid& tokens) {
    return HeadRotation::obstacle(family, tokens, {128, 1, 0}).value_or("");
  };
  const TokenGrid with_text = TokenGrid::video(27, {2, 3, 4}, 3, TextPlace::end);
  CHECK(obstacle(RopeFamily::minimax_h3, with_text).find("text") != std::string::npos);
  CHECK(obstacle(RopeFamily::z_image, with_text).empty());
  TokenGrid two_lengths = with_text;
  two_lengths.set_text_valid({2, 3});
  CHECK(obstacle(RopeFamily::z_image, two_lengths).find("length") != std::string::npos);
  CHECK(obstacle(RopeFamily::flux2, two_lengths).empty());
  TokenSegment video, reference, sound, tail;
  video.name = "video", video.modality = Modality::video, video.tokens = {0, 24};
  video.grid = {2, 3, 4};
  reference.name = "ref1", reference.modality = Modality::reference, reference.tokens = {24, 36};
  reference.grid = {1, 3, 4};
  sound.name = "sound", sound.modality = Modality::audio, sound.tokens = {24, 30};
  tail.name = "tail", tail.modality = Modality::padding, tail.tokens = {24, 30};
  const TokenGrid referring = TokenGrid::of_segments({video, reference});
  CHECK(obstacle(RopeFamily::flux, referring).find("ref1") != std::string::npos);
  CHECK(obstacle(RopeFamily::wan, TokenGrid::of_segments({video, sound})).empty());
  CHECK(obstacle(RopeFamily::qwen_image, TokenGrid::of_segments({video, sound})).find("sound") !=
        std::string::npos);
  CHECK(obstacle(RopeFamily::qwen_image, TokenGrid::of_segments({video, tail})).empty());
}

TEST_CASE("ltx2-audio turns halves by seconds alone") {
  TokenSegment audio;
  audio.name = "audio", audio.modality = Modality::audio, audio.tokens = {0, 9};
  const TokenGrid sound = TokenGrid::of_segments({audio});
  const TokenGrid video = TokenGrid::video(3 * 4 * 7, {3, 4, 7}, 0, TextPlace::none);
  const auto check = [](const TokenGrid& tokens, int64_t token, double seconds) {
    for (const int64_t head : {0, 1}) {
      const auto rotation = HeadRotation::make(RopeFamily::ltx2_audio, tokens, {64, 2, head});
      REQUIRE(rotation);
      const auto before = ramp(64, 0.37f);
      auto row = before;
      rotation->apply(token, row.data());
      for (int64_t i = 0; i < 32; ++i) {
        const double frequency = std::acos(-1.0) / 2 * std::pow(10000, double(head * 32 + i) / 63);
        const double angle = frequency * (2 * seconds / 20 - 1);
        const auto a = static_cast<size_t>(i), b = static_cast<size_t>(i + 32);
        CHECK(row[a] ==
              Approx(before[a] * std::cos(angle) - before[b] * std::sin(angle)).margin(1e-5));
        CHECK(row[b] ==
              Approx(before[a] * std::sin(angle) + before[b] * std::cos(angle)).margin(1e-5));
      }
    }
  };
  // The first latent is the first hop of 10 ms, the others 4 hops each.
  check(sound, 0, 0.005);
  check(sound, 3, 0.01 * (9 + 13) / 2);
  check(TokenGrid::unknown(9), 3, 0.01 * (9 + 13) / 2);
  check(video, video.index_of({2, 1, 5}), (9 + 17) / 2.0 / 24);
  TokenSegment text = audio;
  text.name = "text", text.modality = Modality::text, text.tokens = {9, 12};
  const TokenGrid both = TokenGrid::of_segments({audio, text});
  CHECK(HeadRotation::obstacle(RopeFamily::ltx2_audio, both, {64, 2, 0}) ==
        "the positions of text are not known to it");
}
