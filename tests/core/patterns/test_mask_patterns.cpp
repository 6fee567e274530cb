#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/mask/mask_cover.h"
#include "core/mask/mask_union.h"
#include "core/patterns/build_mask.h"
#include "core/problem/attention_problem.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

struct Grid {
  std::array<int64_t, 3> extent;
  int64_t text = 0;
  TextPlace place = TextPlace::none;
  int64_t tokens() const { return text + extent[0] * extent[1] * extent[2]; }
};

const std::vector<Grid> kGrids{{{3, 5, 4}, 7, TextPlace::start},
                               {{5, 3, 7}, 4, TextPlace::end},
                               {{9, 4, 4}, 0, TextPlace::none}};

std::vector<float> random_values(uint64_t seed, int64_t count) {
  std::mt19937_64 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(pick(random, -1000, 1000)) / 500.0f;
  return values;
}

constexpr int64_t kHeadDim = 4;

AttentionProblem problem_on(const Grid& grid, const Mask& own = {}) {
  const int64_t n = grid.tokens();
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(
      make_tensor("q", DType::f32, {1, 2, n, kHeadDim}, random_values(1, 2 * n * kHeadDim)),
      Layout::bhsd);
  parts.k =
      HeadTensor(make_tensor("k", DType::f32, {1, 1, n, kHeadDim}, random_values(2, n * kHeadDim)),
                 Layout::bhsd);
  parts.query_tokens = parts.key_tokens = TokenGrid::video(n, grid.extent, grid.text, grid.place);
  parts.mask = own;
  parts.id.kind = grid.text > 0 ? CallKind::joint : CallKind::self;
  parts.name = "test";
  return AttentionProblem::make(std::move(parts));
}

/// The built mask, [queries, keys], 1 = kept.
std::vector<uint8_t> bits_of(const Mask& mask, const AttentionProblem& problem, int64_t head = 0) {
  std::vector<uint8_t> bits;
  std::vector<float> row(static_cast<size_t>(problem.num_keys()));
  for (int64_t i = 0; i < problem.num_queries(); ++i) {
    mask.fill_bias(0, head, {&i, 1}, {0, problem.num_keys()}, row.data(), problem.num_keys());
    for (float bias : row) bits.push_back(bias > kMasked ? 1 : 0);
  }
  return bits;
}

Mask built(const std::string& text, const AttentionProblem& problem, int64_t head = 0) {
  const FakeBackend backend;
  MemoryBudget budget(1 << 20);
  return build_mask(parse_mask_pattern(text, "--mask"), problem, 0, head, {backend, budget});
}

/// True where the classes and biases of random rectangles are those of the bits; a rectangle may
/// always be classified as mixed.
bool rectangles_agree(const Mask& mask, const std::vector<uint8_t>& bits, int64_t n) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 400; ++round) {
    const auto range = [&] {
      const int64_t size = pick(random, 1, round % 2 == 0 ? 6 : n);
      const int64_t begin = pick(random, 0, n - size);
      return IndexRange{begin, begin + size};
    };
    const IndexRange queries = range(), keys = range();
    bool any_kept = false, any_masked = false;
    std::vector<int64_t> rows;
    for (int64_t i = queries.begin; i < queries.end; ++i) {
      rows.push_back(i);
      for (int64_t j = keys.begin; j < keys.end; ++j) {
        (bits[static_cast<size_t>(i * n + j)] != 0 ? any_kept : any_masked) = true;
      }
    }
    const TileClass said = mask.classify(0, 0, queries, keys);
    if (said == TileClass::empty && any_kept) return false;
    if (said == TileClass::full && any_masked) return false;
    std::vector<float> out(static_cast<size_t>(queries.size() * keys.size()));
    mask.fill_bias(0, 0, rows, keys, out.data(), keys.size());
    for (int64_t r = 0; r < queries.size(); ++r) {
      for (int64_t c = 0; c < keys.size(); ++c) {
        const bool kept = bits[static_cast<size_t>((queries.begin + r) * n + keys.begin + c)] != 0;
        const float bias = out[static_cast<size_t>(r * keys.size() + c)];
        if (bias != (kept ? 0 : kMasked)) return false;
      }
    }
  }
  return true;
}

using Rule = std::function<bool(LatentCoord query, LatentCoord key)>;

/// Compares a pattern with its rule on video pairs; text rows are kept, text keys as told.
void check_pattern(const std::string& text, const Grid& grid, const Rule& rule,
                   bool keep_text = true) {
  INFO(text << " on " << grid.extent[0] << "x" << grid.extent[1] << "x" << grid.extent[2]);
  const AttentionProblem problem = problem_on(grid);
  const Mask mask = built(text, problem);
  const TokenGrid& tokens = problem.key_tokens();
  const int64_t n = grid.tokens();
  std::vector<uint8_t> expected;
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const auto query = tokens.coord(i), key = tokens.coord(j);
      const bool bit = !query || (key ? rule(*query, *key) : keep_text);
      expected.push_back(bit ? 1 : 0);
      kept += expected.back();
    }
  }
  CHECK(kept > n);
  CHECK(kept < n * n);
  CHECK(bits_of(mask, problem) == expected);
  CHECK(rectangles_agree(mask, expected, n));
}

/// Words, a reference picture, a video of 3x2x2, sound, and more words.
AttentionProblem problem_of_segments() {
  const auto part = [](const std::string& name, Modality modality, int64_t begin, int64_t count) {
    TokenSegment segment;
    segment.name = name;
    segment.modality = modality;
    segment.tokens = {begin, begin + count};
    return segment;
  };
  std::vector<TokenSegment> segments{
      part("words", Modality::text, 0, 3), part("picture", Modality::reference, 3, 4),
      part("video", Modality::video, 7, 12), part("sound", Modality::audio, 19, 2),
      part("more", Modality::text, 21, 2)};
  segments[1].grid = {1, 2, 2};
  segments[2].grid = {3, 2, 2};
  AttentionProblem::Parts parts;
  parts.q = parts.k = HeadTensor(
      make_tensor("q", DType::f32, {1, 1, 23, kHeadDim}, random_values(5, 23 * kHeadDim)),
      Layout::bhsd);
  parts.query_tokens = parts.key_tokens = TokenGrid::of_segments(std::move(segments));
  parts.id.kind = CallKind::joint;
  parts.name = "test";
  return AttentionProblem::make(std::move(parts));
}

int64_t distance(int64_t a, int64_t b) { return std::abs(a - b); }

}  // namespace

TEST_CASE("text=drop drops text alone: references and sound stay") {
  const AttentionProblem problem = problem_of_segments();
  const auto is_video = [](int64_t i) { return i >= 7 && i < 19; };
  const auto is_text = [](int64_t i) { return i < 3 || i >= 21; };
  for (const bool keep : {true, false}) {
    // Blocks of one token, all of them: the blocks hold text keys, too.
    for (const char* const pattern : {"spatial", "topk:block=1,keep=1"}) {
      INFO(pattern << " " << keep);
      const bool all = pattern[0] == 't';
      const std::string drop = all ? ",text=drop" : ":text=drop";
      const auto bits = bits_of(built(pattern + (keep ? "" : drop), problem), problem);
      for (int64_t i = 0; i < 23; ++i) {
        for (int64_t j = 0; j < 23; ++j) {
          bool kept = !is_video(i) || !is_video(j) || all || (i - 7) / 4 == (j - 7) / 4;
          if (!keep && is_video(i) && is_text(j)) kept = false;
          INFO(i << " " << j);
          CHECK((bits[static_cast<size_t>(i * 23 + j)] != 0) == kept);
        }
      }
    }
  }
}

TEST_CASE("the blocks that a pattern is made of") {
  const auto own = [](const char* text) { return parse_mask_pattern(text, "--mask").own_block(); };
  CHECK(own("topk:block=64,keep=0.1") == 64);
  CHECK(own("topp") == 128);
  CHECK(own("block_causal:48") == 48);
  CHECK(own("radial:block=32") == 32);
  for (const char* const text : {"none", "causal", "window:9", "spatial", "temporal", "tiles"}) {
    CHECK(own(text) == std::nullopt);
  }
}

TEST_CASE("patterns on the token grid keep what their definitions say") {
  for (const Grid& grid : kGrids) {
    const auto [frames, height, width] = grid.extent;
    const Rule own_frame = [](LatentCoord q, LatentCoord k) { return q.t == k.t; };
    check_pattern("spatial", grid, own_frame);
    check_pattern("spatial:text=drop", grid, own_frame, false);
    check_pattern("spatial:frames=1", grid,
                  [](LatentCoord q, LatentCoord k) { return distance(q.t, k.t) <= 1; });
    for (const int64_t band : {int64_t{0}, int64_t{1}}) {
      check_pattern("temporal:band=" + std::to_string(band), grid,
                    [band](LatentCoord q, LatentCoord k) {
                      return distance(q.y, k.y) <= band && distance(q.x, k.x) <= band;
                    });
    }
    const auto tile_reach = [](int64_t q, int64_t k, int64_t size, int64_t window, int64_t extent) {
      const int64_t tiles = (extent + size - 1) / size;
      int64_t first = q / size - window / 2;
      if (first + window > tiles) first = tiles - window;
      if (first < 0) first = 0;
      return k / size >= first && k / size < first + window;
    };
    check_pattern("tiles:size=2x2x3,window=1x2x1", grid, [&](LatentCoord q, LatentCoord k) {
      return tile_reach(q.t, k.t, 2, 1, frames) && tile_reach(q.y, k.y, 2, 2, height) &&
             tile_reach(q.x, k.x, 3, 1, width);
    });
    check_pattern("natten:2x3x3", grid, [&](LatentCoord q, LatentCoord k) {
      return tile_reach(q.t, k.t, 1, 2, frames) && tile_reach(q.y, k.y, 1, 3, height) &&
             tile_reach(q.x, k.x, 1, 3, width);
    });
    check_pattern(
        "natten:1x3x3,causal=t,text=drop", grid,
        [&](LatentCoord q, LatentCoord k) {
          return q.t == k.t && tile_reach(q.y, k.y, 1, 3, height) &&
                 tile_reach(q.x, k.x, 1, 3, width);
        },
        false);
    check_pattern("tiles:size=1x2x2,window=3x9x1", grid, [&](LatentCoord q, LatentCoord k) {
      return tile_reach(q.t, k.t, 1, 3, frames) && tile_reach(q.x, k.x, 2, 1, width);
    });
  }
}

TEST_CASE("the radial pattern keeps what its definition says") {
  for (const Grid& grid : kGrids) {
    const int64_t cells = grid.extent[1] * grid.extent[2];
    const int64_t width = grid.extent[2];
    const auto rule = [&](int64_t block, double decay, int64_t sink) -> Rule {
      return [=](LatentCoord q, LatentCoord k) {
        if (k.t < sink) return true;
        const int64_t d = distance(q.t, k.t);
        double length = 1;
        for (int64_t s = cells; s > 0; s /= 2) length *= 2;
        for (int64_t s = d; s > 0; s /= 2) length /= 2;
        if (length < static_cast<double>(block)) {
          if (d % static_cast<int64_t>(static_cast<double>(block) / length) != 0) return false;
        }
        const double reach = d == 0   ? static_cast<double>(cells)
                             : d == 1 ? static_cast<double>(cells / 2)
                                      : std::max(decay * length, static_cast<double>(block));
        return static_cast<double>(distance(q.y * width + q.x, k.y * width + k.x)) <= reach;
      };
    };
    check_pattern("radial:block=2", grid, rule(2, 1, 0));
    check_pattern("radial:block=6,decay=0.25", grid, rule(6, 0.25, 0));
    check_pattern("radial:block=9,decay=0.5,sink=1", grid, rule(9, 0.5, 1));
    check_pattern("radial:block=9,text=drop", grid, rule(9, 1, 0), false);
  }
}

TEST_CASE("the default band of temporal is no denser than a frame") {
  CHECK(comparable_band(TokenGrid::video(1008, {7, 12, 12}, 0, TextPlace::none)) == 1);
  CHECK(comparable_band(TokenGrid::video(13 * 30 * 45, {13, 30, 45}, 0, TextPlace::none)) == 4);
  CHECK(comparable_band(TokenGrid::video(9 * 16, {9, 4, 4}, 0, TextPlace::none)) == 0);
  const Grid grid{{1, 9, 9}, 0, TextPlace::none};
  check_pattern("temporal:band=1", grid, [](LatentCoord q, LatentCoord k) {
    return distance(q.y, k.y) <= 1 && distance(q.x, k.x) <= 1;
  });
}

TEST_CASE("patterns of plain sequences need no grid") {
  AttentionProblem problem = problem_on({{2, 3, 3}, 0, TextPlace::none});
  const int64_t n = problem.num_keys();
  const auto causal = bits_of(built("causal", problem), problem);
  const auto window = bits_of(built("window:3", problem), problem);
  const auto named = bits_of(built("window:reach=3", problem), problem);
  CHECK(window == named);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      REQUIRE((causal[static_cast<size_t>(i * n + j)] != 0) == (j <= i));
      REQUIRE((window[static_cast<size_t>(i * n + j)] != 0) == (std::abs(i - j) <= 3));
    }
  }
  CHECK(built("none", problem).is_none());
}

namespace {

/// q̄·k̄/√d of every pair of blocks in double, [query_blocks, key_blocks].
std::vector<double> block_scores(int64_t n, int64_t block, int64_t head) {
  const auto q = random_values(1, 2 * n * kHeadDim), k = random_values(2, n * kHeadDim);
  const int64_t blocks = (n + block - 1) / block;
  const auto mean = [&](const std::vector<float>& x, int64_t offset, int64_t b, int64_t c) {
    const int64_t past = std::min((b + 1) * block, n);
    double sum = 0;
    for (int64_t i = b * block; i < past; ++i) {
      sum += x[static_cast<size_t>((offset + i) * kHeadDim + c)];
    }
    return sum / static_cast<double>(past - b * block);
  };
  std::vector<double> scores;
  for (int64_t i = 0; i < blocks; ++i) {
    for (int64_t j = 0; j < blocks; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < kHeadDim; ++c) dot += mean(q, head * n, i, c) * mean(k, 0, j, c);
      scores.push_back(dot / std::sqrt(double{kHeadDim}));
    }
  }
  return scores;
}

/// The blocks of a row kept by rank: as many as `enough` of the ranked scores says.
std::vector<uint8_t> keep_ranked(
    const std::vector<double>& scores, int64_t blocks,
    const std::function<bool(std::vector<double> taken, const std::vector<double>& row)>& more) {
  std::vector<uint8_t> bits(scores.size());
  for (int64_t i = 0; i < blocks; ++i) {
    const std::vector<double> row(scores.begin() + i * blocks, scores.begin() + (i + 1) * blocks);
    std::vector<int64_t> order(row.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
    });
    std::vector<double> taken;
    for (int64_t j : order) {
      if (!more(taken, row)) break;
      taken.push_back(row[static_cast<size_t>(j)]);
      bits[static_cast<size_t>(i * blocks + j)] = 1;
    }
  }
  return bits;
}

}  // namespace

TEST_CASE("block patterns keep the best blocks of each head, ragged ones included") {
  const Grid grid{{5, 3, 7}, 4, TextPlace::end};
  const AttentionProblem problem = problem_on(grid);
  const int64_t n = grid.tokens(), block = 8, blocks = (n + block - 1) / block;
  REQUIRE(n % block != 0);
  for (const int64_t head : {0, 1}) {
    const auto scores = block_scores(n, block, head);
    const auto count = [](size_t most) {
      return [most](const std::vector<double>& taken, const std::vector<double>&) {
        return taken.size() < most;
      };
    };
    const auto mass = [](double p) {
      return [p](const std::vector<double>& taken, const std::vector<double>& row) {
        double sum = 0, total = 0;
        for (double s : taken) sum += std::exp(s);
        for (double s : row) total += std::exp(s);
        return sum < p * total;
      };
    };
    const std::vector<std::pair<std::string, std::vector<uint8_t>>> cases{
        {"topk:block=8,blocks=3", keep_ranked(scores, blocks, count(3))},
        {"topk:block=8,keep=0.25", keep_ranked(scores, blocks, count(4))},
        {"topk:block=8,keep=0.001", keep_ranked(scores, blocks, count(1))},
        {"topp:block=8,p=0.6", keep_ranked(scores, blocks, mass(0.6))}};
    for (const auto& [text, bits] : cases) {
      INFO(text << " head " << head);
      const auto made = bits_of(built(text, problem, head), problem, head);
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const bool text_token = i >= n - grid.text || j >= n - grid.text;
          const bool kept =
              text_token || bits[static_cast<size_t>(i / block * blocks + j / block)] != 0;
          wrong += kept != (made[static_cast<size_t>(i * n + j)] != 0) ? 1 : 0;
        }
      }
      CHECK(wrong == 0);
    }
  }
  CHECK(bits_of(built("topk:block=8,blocks=3", problem, 0), problem, 0) !=
        bits_of(built("topk:block=8,blocks=3", problem, 1), problem, 1));
}

TEST_CASE("block patterns never choose what the call's own mask leaves empty") {
  const Grid grid{{4, 4, 4}, 0, TextPlace::none};
  const AttentionProblem problem = problem_on(grid, Mask::causal());
  const auto made = bits_of(built("topk:block=16,blocks=2", problem), problem);
  for (int64_t i = 0; i < 64; ++i) {
    int64_t kept = 0;
    for (int64_t j = 0; j < 64; ++j) kept += made[static_cast<size_t>(i * 64 + j)];
    CHECK(kept == (i < 16 ? 16 : 32));
    for (int64_t j = (i / 16 + 1) * 16; j < 64; ++j) {
      CHECK(made[static_cast<size_t>(i * 64 + j)] == 0);
    }
  }
}

TEST_CASE("block patterns know a mask of entries by their own blocks, of any size") {
  const Grid grid{{4, 10, 10}, 0, TextPlace::none};
  const int64_t n = grid.tokens();
  std::mt19937_64 random(11);
  for (const int64_t block : {24, 64, 100, 130, 256}) {
    const int64_t blocks = ceil_div(n, block);
    for (const bool boolean : {true, false}) {
      // Half of the blocks have no entry, the others one.
      std::vector<uint8_t> there(static_cast<size_t>(blocks * blocks));
      std::vector<float> biases(static_cast<size_t>(n * n), kMasked);
      std::vector<uint8_t> bits(static_cast<size_t>(n * n), 0);
      for (int64_t b = 0; b < blocks * blocks; ++b) {
        if (random() % 2 == 0) continue;
        there[static_cast<size_t>(b)] = 1;
        const int64_t i = std::min(b / blocks * block + pick(random, 0, block - 1), n - 1);
        const int64_t j = std::min(b % blocks * block + pick(random, 0, block - 1), n - 1);
        biases[static_cast<size_t>(i * n + j)] = 0;
        bits[static_cast<size_t>(i * n + j)] = 1;
      }
      const Mask own = boolean ? Mask::tensor(make_tensor("mask", DType::boolean, {n, n}, bits))
                               : Mask::tensor(make_tensor("mask", DType::f32, {n, n}, biases));
      const AttentionProblem problem = problem_on(grid, own);
      const std::string size = std::to_string(block);
      for (const std::string& text :
           {"topk:block=" + size + ",blocks=2", "topp:block=" + size + ",p=1"}) {
        INFO(text << (boolean ? " bool" : " bias"));
        const auto made = bits_of(built(text, problem), problem);
        for (int64_t i = 0; i < n; i += block) {
          int64_t left = 0, chosen = 0;
          for (int64_t b = 0; b < blocks; ++b) {
            const bool keeps = there[static_cast<size_t>(i / block * blocks + b)] != 0;
            const bool taken = made[static_cast<size_t>(i * n + b * block)] != 0;
            left += keeps ? 1 : 0;
            chosen += taken ? 1 : 0;
            CHECK((keeps || !taken));
          }
          CHECK(chosen == (text[3] == 'p' ? left : std::min<int64_t>(left, 2)));
        }
      }
    }
  }
}

TEST_CASE("masks joined by or") {
  const AttentionProblem problem = problem_on({{3, 5, 4}, 0, TextPlace::none});
  const Mask window = Mask::window(2), causal = Mask::causal();
  const auto a = bits_of(window, problem), b = bits_of(causal, problem);
  std::vector<uint8_t> either(a.size());
  for (size_t i = 0; i < a.size(); ++i) either[i] = a[i] | b[i];
  const Mask any = mask_union({window, causal});
  CHECK(bits_of(any, problem) == either);
  CHECK(rectangles_agree(any, either, problem.num_keys()));
  CHECK(refused([] { mask_union({}); }, ErrorCode::usage, {"no masks"}) == "");
  const Mask bias =
      Mask::tensor(make_tensor("bias", DType::f32, {1, 60}, std::vector<float>(60, 0.5f)));
  CHECK(refused([&] { mask_union({window, bias}); }, ErrorCode::usage, {"biases"}) == "");
}

TEST_CASE("the blocks that a mask keeps anything of, ragged ones and empty conjunctions included") {
  const int64_t n = 60, block = 7;
  // Each is there in many blocks where the other is not.
  const Mask both =
      Mask::window(9) & Mask::causal() & mask_union({Mask::window(1), Mask::key_lengths({5}, n)});
  const AttentionProblem problem = problem_on({{3, 5, 4}, 0, TextPlace::none});
  const auto bits = bits_of(both, problem);
  for (int64_t first = 0; first < n; first += block) {
    std::vector<uint8_t> expected(static_cast<size_t>((n + block - 1) / block));
    for (int64_t i = first; i < std::min(first + block, n); ++i) {
      for (int64_t j = 0; j < n; ++j) {
        expected[static_cast<size_t>(j / block)] |= bits[static_cast<size_t>(i * n + j)];
      }
    }
    CHECK(kept_blocks(both, 0, 0, {first, std::min(first + block, n)}, n, block) == expected);
  }
}

TEST_CASE("Sliding Tile Attention has the name of its paper, too") {
  const MaskPattern tiles = parse_mask_pattern("tiles:size=1x2x3,window=3x1x1", "--mask");
  const MaskPattern sta = parse_mask_pattern("sta:size=1x2x3,window=3x1x1", "--mask");
  CHECK(sta.kind == PatternKind::tiles);
  CHECK(sta.tile == tiles.tile);
  CHECK(sta.window == tiles.window);
  CHECK(sta.text == "sta:size=1x2x3,window=3x1x1");
}

TEST_CASE("what is wrong with a pattern is told") {
  const auto says = [](const std::string& text, const std::vector<std::string>& parts) {
    return refused([&] { parse_mask_pattern(text, "--mask"); }, ErrorCode::usage, parts);
  };
  CHECK(says("spatal", {"--mask spatal", "did you mean spatial?"}) == "");
  CHECK(says("", {"no such pattern"}) == "");
  CHECK(says("svg", {"--mask svg", "spatial or temporal"}) == "");
  CHECK(says("minference:vertical=3", {"near vertical-slash"}) == "");
  CHECK(says("sta:sizes=1x2x2", {"did you mean size?"}) == "");
  CHECK(says("spatial:frame=1", {"did you mean frames?"}) == "");
  CHECK(says("spatial:", {"no parameter"}) == "");
  CHECK(says("spatial:frames", {"frames=", "whole number"}) == "");
  CHECK(says("spatial:frames=-1", {"at least 0"}) == "");
  CHECK(says("spatial:frames=1,frames=2", {"twice"}) == "");
  CHECK(says("spatial:frames=1,", {"no parameter"}) == "");
  CHECK(says("spatial:text=maybe", {"keep or drop"}) == "");
  CHECK(says("causal:n=1", {"takes no parameters"}) == "");
  CHECK(says("window", {"window:N"}) == "");
  CHECK(says("window:x", {"reach=x"}) == "");
  CHECK(says("tiles:size=6x8", {"TxHxW"}) == "");
  CHECK(says("tiles:window=0x1x1", {"TxHxW"}) == "");
  CHECK(says("natten", {"natten:TxHxW"}) == "");
  CHECK(says("natten:stride=1x1x1", {"natten:TxHxW"}) == "");
  CHECK(says("natten:3x3", {"window=3x3", "TxHxW"}) == "");
  CHECK(says("natten:3x3x3,causal=q", {"causal=q", "t, y and x"}) == "");
  CHECK(says("topk:keep=0", {"above 0"}) == "");
  CHECK(says("topk:keep=1.5", {"up to 1"}) == "");
  CHECK(says("topk:keep=nan", {"up to 1"}) == "");
  CHECK(says("topk:keep=0.5,blocks=3", {"give one"}) == "");
  CHECK(says("topp:p=2", {"up to 1"}) == "");
  CHECK(says("radial:decay=inf", {"above 0"}) == "");
  CHECK(says("vertical-slash:vertical=0,slash=0", {"both 0"}) == "");
  CHECK(says("topk:block=0", {"at least 1"}) == "");
  CHECK(says("spatial:frames=99999999999999999999", {"whole number"}) == "");

  const AttentionProblem cross = rule_problem(1, 1, 8, 8, 4);
  REQUIRE(cross.id().kind == CallKind::cross);
  CHECK(refused([&] { built("spatial", cross); }, ErrorCode::usage, {"cross attention"}) == "");
  AttentionProblem::Parts parts;
  parts.q = cross.q();
  parts.k = cross.k();
  parts.name = "plain";
  const AttentionProblem plain = AttentionProblem::make(std::move(parts));
  CHECK(refused([&] { built("spatial", plain); }, ErrorCode::usage,
                {"mask spatial", "plain", "token grid", "--grid"}) == "");
}
