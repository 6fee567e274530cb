#include <cmath>
#include <limits>

#include "core/problem/attention_problem.h"
#include "core/problem/head_limit.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

HeadTensor zeros(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::f32) {
  int64_t bytes = dtype_bytes(dtype);
  for (int64_t extent : shape) bytes *= extent;
  return HeadTensor(
      std::make_shared<MemoryTensor>(name, dtype, std::move(shape),
                                     std::vector<std::byte>(static_cast<size_t>(bytes))),
      Layout::bhsd);
}

AttentionProblem::Parts good_parts() {
  AttentionProblem::Parts parts;
  parts.q = zeros("q.npy", {2, 6, 10, 8});
  parts.k = zeros("k.npy", {2, 3, 10, 8});
  parts.name = "call.safetensors";
  return parts;
}

/// Refused with the call's name, both shapes and `part`, once `change` was made.
template <typename Change>
std::string refused_after(Change change, const std::string& part) {
  AttentionProblem::Parts parts = good_parts();
  change(parts);
  const bool shapes = static_cast<bool>(parts.q);
  return refused([&] { AttentionProblem::make(parts); }, ErrorCode::usage,
                 {"call.safetensors", part, shapes ? "q [" : "", shapes ? "k [" : ""});
}

using Parts = AttentionProblem::Parts;

}  // namespace

TEST_CASE("a scale is of all heads, or of one each") {
  AttentionProblem::Parts parts = good_parts();
  parts.scale = HeadScales({1, 2, 3, 4, 5, 6});
  const AttentionProblem problem = AttentionProblem::make(parts);
  CHECK(problem.scale(0) == 1);
  CHECK(problem.scale(5) == 6);
  CHECK(problem.scales().words(3) == "6 numbers, one a head, 1 to 6");
  CHECK(HeadScales({0.25, 0.25, 0.25}) == HeadScales(0.25));
  CHECK(refused_after(
            [](Parts& p) {
              p.scale = HeadScales({1, 2, 3});
            },
            "3 scales, expected 1 or one a head") == "");
  CHECK(refused_after(
            [](Parts& p) {
              p.scale = HeadScales({1, 2, 3, 4, 5, -1});
            },
            "the scale must be finite and above 0") == "");
}

TEST_CASE("a problem completes what was left out") {
  AttentionProblem::Parts parts = good_parts();
  parts.v = zeros("v.npy", {2, 3, 10, 5}, DType::bf16);
  const AttentionProblem problem = AttentionProblem::make(parts);
  CHECK(problem.scale(0) == Approx(1 / std::sqrt(8.0)));
  CHECK(problem.batch() == 2);
  CHECK(problem.num_heads() == 6);
  CHECK(problem.num_kv_heads() == 3);
  CHECK(problem.num_queries() == 10);
  CHECK(problem.num_keys() == 10);
  CHECK(problem.head_dim() == 8);
  CHECK(problem.v().width() == 5);
  CHECK(problem.query_tokens() == TokenGrid::unknown(10));
  CHECK(problem.key_tokens() == TokenGrid::unknown(10));
  CHECK(problem.id().branches == std::vector<std::string>{"all"});
  CHECK(problem.name() == "call.safetensors");
  // Grouped queries: neighbours share a head of K.
  for (int64_t head = 0; head < 6; ++head) CHECK(problem.kv_head(head) == head / 2);
  CHECK_FALSE(static_cast<bool>(AttentionProblem::make(good_parts()).v()));
}

TEST_CASE("cross-attention may have other keys than queries, self-attention may not") {
  AttentionProblem::Parts parts = good_parts();
  parts.k = zeros("k.npy", {2, 3, 4, 8});
  CHECK(refused([&] { AttentionProblem::make(parts); }, ErrorCode::usage, {"self attention"}) ==
        "");
  parts.id.kind = CallKind::joint;
  CHECK(refused([&] { AttentionProblem::make(parts); }, ErrorCode::usage, {"joint attention"}) ==
        "");
  parts.id.kind = CallKind::cross;
  CHECK(AttentionProblem::make(parts).num_keys() == 4);
}

TEST_CASE("parts that do not fit are refused with the name and both shapes") {
  const auto q = [](std::vector<int64_t> shape, DType dtype = DType::f32) {
    return [=](Parts& p) { p.q = zeros("q.npy", shape, dtype); };
  };
  const auto v = [](std::vector<int64_t> shape) {
    return [=](Parts& p) { p.v = zeros("v.npy", shape); };
  };
  CHECK(refused_after([](Parts& p) { p.q = {}; }, "missing") == "");
  CHECK(refused_after(
            [](Parts& p) {
              p.k = {};
              p.q = {};
            },
            "missing") == "");
  CHECK(refused_after(q({2, 6, 10, 9}), "head dimension") == "");
  CHECK(refused_after(q({1, 6, 10, 8}), "batch") == "");
  CHECK(refused_after(q({2, 4, 10, 8}), "heads") == "");
  CHECK(refused_after(q({2, 2, 10, 8}), "heads") == "");
  CHECK(refused_after(q({2, 6, 0, 8}), "dimension of 0") == "");
  CHECK(refused_after(q({2, 0, 10, 8}), "dimension of 0") == "");
  CHECK(refused_after(q({2, 6, 10, 4097}), "4096") == "");
  CHECK(refused_after(q({2, 6, 10, 8}, DType::f16), "f16 and f32") == "");
  CHECK(refused_after(v({2, 3, 9, 8}), "[2, 3, 9, 8]") == "");
  CHECK(refused_after(v({2, 6, 10, 8}), "v") == "");
  CHECK(refused_after(v({2, 3, 10, 4097}), "4096") == "");
  CHECK(refused_after([](Parts& p) { p.query_tokens = TokenGrid::unknown(9); }, "9") == "");
  CHECK(refused_after([](Parts& p) { p.key_tokens = TokenGrid::unknown(11); }, "11") == "");
  CHECK(refused_after(
            [](Parts& p) {
              p.key_tokens = TokenGrid::text_only(10);
              p.key_tokens.set_text_valid({1, 2, 3});
            },
            "text_valid has 3") == "");
  CHECK(refused_after([](Parts& p) { p.id.branches = {"a", "b", "c"}; }, "3 branches") == "");
  CHECK(refused_after([](Parts& p) { p.mask = Mask::key_lengths({3}, 7); }, "7 keys") == "");
  for (const double scale :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(refused_after([&](Parts& p) { p.scale = scale; }, "scale") == "");
  }
}

TEST_CASE("a call has as many heads as lists of them can hold") {
  for (const auto& [batch, heads] :
       {std::pair<int64_t, int64_t>{1, kMaxCallHeads + 1}, {kMaxCallHeads + 1, 1}, {1025, 256}}) {
    AttentionProblem::Parts parts = good_parts();
    parts.q = zeros("q.npy", {batch, heads, 1, 1});
    parts.k = zeros("k.npy", {batch, 1, 1, 1});
    CHECK(refused([&] { AttentionProblem::make(parts); }, ErrorCode::usage,
                  {"call.safetensors: q.npy has " + std::to_string(batch * heads) + " heads",
                   "limit 262144"}) == "");
  }
  AttentionProblem::Parts parts = good_parts();
  parts.q = zeros("q.npy", {1024, 256, 1, 1});
  parts.k = zeros("k.npy", {1024, 1, 1, 1});
  CHECK(AttentionProblem::make(parts).num_heads() == 256);
}

TEST_CASE("a call can be restricted by one more mask") {
  AttentionProblem::Parts parts = good_parts();
  parts.mask = Mask::causal();
  const AttentionProblem problem = AttentionProblem::make(parts);
  const AttentionProblem part = problem.with_mask(Mask::key_range({2, 5}, 10));
  CHECK(part.mask().describe() == "causal & key_range:2-5");
  CHECK(part.scale(0) == problem.scale(0));
  CHECK(part.name() == problem.name());
  CHECK(&part.q().source() == &problem.q().source());
  CHECK(problem.mask().describe() == "causal");
  CHECK(refused(
            [&] {
              problem.with_mask(Mask::key_range({2, 5}, 9));
            },
            ErrorCode::usage, {"9", "10"}) == "");
}

TEST_CASE("f64 counts as f32") {
  AttentionProblem::Parts parts = good_parts();
  parts.q = zeros("q.npy", {2, 6, 10, 8}, DType::f64);
  CHECK(AttentionProblem::make(parts).q().dtype() == DType::f32);
}

TEST_CASE("linear scores refuse a floating mask") {
  AttentionProblem::Parts parts = good_parts();
  parts.score = ScoreFunction::linear_elu1;
  parts.mask = Mask::causal();
  CHECK(AttentionProblem::make(parts).score() == ScoreFunction::linear_elu1);
  parts.mask = Mask::tensor(make_tensor("m", DType::f32, {10}, std::vector<float>(10, -1.0f)));
  CHECK(refused([&] { AttentionProblem::make(parts); }, ErrorCode::usage, {"linear:elu1"}) == "");
  parts.score = ScoreFunction::sigmoid;
  CHECK(AttentionProblem::make(parts).mask().has_finite_bias());
}

TEST_CASE("kinds have names") {
  for (const auto kind : {CallKind::self, CallKind::cross, CallKind::joint}) {
    CHECK(parse_kind(kind_name(kind)) == kind);
  }
  CHECK_FALSE(parse_kind("masked").has_value());
}

TEST_CASE("the first NaN or Inf is found wherever it stands, in every dtype") {
  struct Case {
    DType dtype;
    uint64_t largest, nan, infinity;  ///< bit patterns
  };
  const std::vector<Case> cases{
      {DType::f16, 0x7bff, 0x7e01, 0xfc00},
      {DType::bf16, 0x7f7f, 0x7f81, 0xff80},
      {DType::f32, 0x7f7fffff, 0x7f800001, 0xff800000},
      {DType::f64, 0x47efffffe0000000, 0x7ff0000000000001, 0xfff0000000000000}};
  constexpr int64_t kTokens = 3000, kWidth = 48;  // more than one piece
  for (const Case& c : cases) {
    INFO(dtype_name(c.dtype));
    const auto size = static_cast<size_t>(dtype_bytes(c.dtype));
    std::vector<std::byte> bytes(static_cast<size_t>(2 * kTokens * kWidth) * size);
    const auto put = [&](int64_t head, int64_t token, int64_t channel, uint64_t bits) {
      const auto at = static_cast<size_t>((head * kTokens + token) * kWidth + channel);
      std::memcpy(bytes.data() + at * size, &bits, size);
    };
    const auto check = [&] {
      Parts parts;
      parts.q = HeadTensor(
          std::make_shared<MemoryTensor>("x.npy: tensor q", c.dtype,
                                         std::vector<int64_t>{1, 2, kTokens, kWidth}, bytes),
          Layout::bhsd);
      parts.k =
          HeadTensor(std::make_shared<MemoryTensor>("x.npy: tensor k", c.dtype,
                                                    std::vector<int64_t>{1, 1, kTokens, kWidth},
                                                    std::vector<std::byte>(bytes.size() / 2)),
                     Layout::bhsd);
      AttentionProblem::make(parts).check_finite(0, 1);
    };
    put(1, 7, 3, c.largest);
    put(0, 0, 0, c.nan);  // another head
    CHECK_FALSE(error_of(check).has_value());
    put(1, kTokens - 1, kWidth - 1, c.nan);
    CHECK(refused(check, ErrorCode::value,
                  {"tensor q", "batch 0, head 1, token 2999, channel 47", "NaN"}) == "");
    put(1, 1500, 20, c.infinity);
    CHECK(refused(check, ErrorCode::value, {"token 1500, channel 20", "-inf"}) == "");
    put(1, 0, 0, c.infinity);
    CHECK(refused(check, ErrorCode::value, {"token 0, channel 0", "-inf"}) == "");
  }
}

TEST_CASE("K is checked in the head that the query head uses") {
  std::vector<float> k(3 * 10 * 8);
  k[(1 * 10 + 4) * 8 + 2] = std::numeric_limits<float>::infinity();
  Parts parts = good_parts();
  parts.q = zeros("q.npy", {1, 6, 10, 8});
  parts.k = HeadTensor(make_tensor("k.npy", DType::f32, {1, 3, 10, 8}, k), Layout::bhsd);
  const AttentionProblem problem = AttentionProblem::make(parts);
  for (int64_t head = 0; head < 6; ++head) {
    INFO(head);
    const auto check = [&] { problem.check_finite(0, head); };
    if (head / 2 == 1) {
      CHECK(refused(check, ErrorCode::value, {"k.npy", "head 1, token 4, channel 2", "+inf"}) ==
            "");
    } else {
      CHECK_FALSE(error_of(check).has_value());
    }
  }
}
