// Chunks of a stream that become one call: every row keeps what it attended to.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/capture/capture.h"
#include "io/files/json_types.h"
#include "io/stream_chunks/join_chunks.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kBatch = 2, kHeads = 4, kKvHeads = 2, kWidth = 4;
/// Tokens of a frame of 2x3 cells.
constexpr int64_t kFrame = 6;

/// Frames that a cache or a chunk has, and which of the keys that they had at some time.
struct Frames {
  int64_t begin = 0, end = 0;
  int64_t version = 0;

  int64_t tokens() const { return (end - begin) * kFrame; }
};

struct Piece {
  int64_t chunk = 0;
  Frames own;
  std::vector<Frames> cached;

  std::vector<Frames> keys() const {
    std::vector<Frames> all = cached;
    all.push_back(own);
    return all;
  }
  int64_t num_keys() const {
    int64_t count = 0;
    for (const Frames& frames : keys()) count += frames.tokens();
    return count;
  }
};

std::string segment(const std::string& name, const std::string& modality, const Frames& f) {
  return fmt::format(
      R"({{"name":"{}","modality":"{}","count":{},"grid":[{},2,3],"first_frame":{},"position":{}}})",
      name, modality, f.tokens(), f.end - f.begin, f.begin, f.begin * kFrame);
}

/// [B, heads, tokens, d] of values that tell position, version, item, head and channel.
std::string rows(int64_t heads, const std::vector<Frames>& frames) {
  std::vector<float> values;
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (const Frames& f : frames) {
        for (int64_t token = f.begin * kFrame; token < f.end * kFrame; ++token) {
          for (int64_t c = 0; c < kWidth; ++c) {
            values.push_back(static_cast<float>(token + 1000 * f.version) +
                             0.25f * static_cast<float>(c) + 10000 * static_cast<float>(2 * h + b));
          }
        }
      }
    }
  }
  return raw(values);
}

CallFile call_of(const Piece& piece) {
  const std::vector<Frames> keys = piece.keys();
  std::string names;
  for (size_t i = 0; i < piece.cached.size(); ++i) {
    names += segment("cached" + std::to_string(i), "history", piece.cached[i]) + ",";
  }
  const std::string own = segment("video", "video", piece.own);
  const std::vector<int64_t> key_shape{kBatch, kKvHeads, piece.num_keys(), kWidth};
  CallFile call;
  call.version(2)
      .tensor("q", "F32", {kBatch, kHeads, piece.own.tokens(), kWidth}, rows(kHeads, {piece.own}))
      .tensor("k", "F32", key_shape, rows(kKvHeads, keys))
      .tensor("v", "F32", key_shape, rows(kKvHeads, keys))
      .fact("step", "2")
      .fact("layer", "1")
      .fact("kind", "self")
      .fact("chunk", std::to_string(piece.chunk))
      .fact("queries", "[" + own + "]")
      .fact("keys", "[" + names + own + "]");
  return call;
}

/// A folder of chunks, opened, and what joining makes of it.
class Stream {
 public:
  explicit Stream(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) add(piece.chunk, call_of(piece));
  }
  Stream() = default;
  void add(int64_t chunk, const CallFile& file) {
    file.write(folder_.path() / fmt::format("chunk{}.safetensors", chunk));
  }
  const JoinedChunks& join() {
    capture_ = Capture::open(folder_.path());
    joined_ = join_chunks(capture_->select({}), {});
    return joined_;
  }
  const CallEntry& chunk(size_t number) const { return capture_->calls()[number]; }
  size_t chunks() const { return capture_->calls().size(); }

 private:
  TemporaryFolder folder_;
  std::optional<Capture> capture_;
  JoinedChunks joined_;
};

std::vector<float> row_of(const HeadTensor& tensor, int64_t batch, int64_t head, int64_t row) {
  std::vector<float> values(static_cast<size_t>(tensor.width()));
  tensor.read_rows(batch, head, {row, row + 1}, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

/// The keys that a row may attend to, with their values, ascending.
std::vector<std::vector<float>> seen_keys(const AttentionProblem& p, int64_t batch, int64_t head,
                                          int64_t query) {
  std::vector<float> bias(static_cast<size_t>(p.num_keys()));
  p.mask().fill_bias(batch, head, {&query, 1}, {0, p.num_keys()}, bias.data(), p.num_keys());
  std::vector<std::vector<float>> seen;
  for (int64_t key = 0; key < p.num_keys(); ++key) {
    if (bias[static_cast<size_t>(key)] != 0) continue;
    auto row = row_of(p.k(), batch, p.kv_head(head), key);
    const auto value = row_of(p.v(), batch, p.kv_head(head), key);
    row.insert(row.end(), value.begin(), value.end());
    seen.push_back(std::move(row));
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

/// Every row of every chunk is a row of the joined call, with the same query and the same keys.
void check_rows(const Stream& stream, const AttentionProblem& joined) {
  int64_t rows = 0;
  for (size_t c = 0; c < stream.chunks(); ++c) {
    const AttentionProblem& p = *stream.chunk(c).problem;
    for (int64_t i = 0; i < p.num_queries(); ++i, ++rows) {
      int64_t row = 0;
      while (joined.query_tokens().position(row) != p.query_tokens().position(i)) ++row;
      INFO("chunk " << c << " query " << i << " row " << row);
      for (const int64_t head : {0, 3}) {
        REQUIRE(row_of(joined.q(), 1, head, row) == row_of(p.q(), 1, head, i));
        REQUIRE(seen_keys(joined, 1, head, row) == seen_keys(p, 1, head, i));
      }
    }
  }
  CHECK(rows == joined.num_queries());
}

std::string names_of(const TokenGrid& tokens) {
  std::string text;
  for (const TokenSegment& s : tokens.segments()) {
    text += fmt::format("{}{} {}x{}x{} at {}", text.empty() ? "" : ", ", s.name, s.grid[0],
                        s.grid[1], s.grid[2], s.position.value_or(-1));
  }
  return text;
}

std::string facts_of(const CallEntry& call, const std::string& name) {
  const auto found = call.facts.find(name);
  return found == call.facts.end() ? "nothing" : found->second.json;
}

}  // namespace

TEST_CASE("chunks of a cache that only grows are one film") {
  Stream stream({{0, {0, 3}, {}}, {1, {3, 5}, {{0, 3}}}, {2, {5, 8}, {{0, 3}, {3, 5}}}});
  const JoinedChunks& joined = stream.join();
  REQUIRE(joined.calls.size() == 1);
  CHECK(joined.notes.empty());
  CHECK(joined.refusals.empty());
  const CallEntry& call = *joined.calls[0].call;
  const AttentionProblem& p = *call.problem;
  check_rows(stream, p);
  CHECK(p.num_queries() == 48);
  CHECK(p.num_keys() == 48);
  CHECK(names_of(p.query_tokens()) == "video 8x2x3 at 0");
  CHECK(p.same_tokens());
  CHECK(p.mask().describe() == "spans");
  CHECK(call.mask->shape()[0] == 3);
  CHECK_FALSE(call.id.place.has_chunk());
  CHECK(facts_of(call, "chunk") == "nothing");
  CHECK(facts_of(call, "keys") == "nothing");
  CHECK(facts_of(call, "step") == "2");
}

TEST_CASE("chunks with a sink and a rolling window keep what was evicted from them masked") {
  Stream stream({{0, {0, 2}, {}},
                 {1, {2, 4}, {{0, 2}}},
                 {2, {4, 6}, {{0, 1}, {2, 4}}},
                 {3, {6, 8}, {{0, 1}, {5, 6}}}});
  const CallEntry& call = *stream.join().calls[0].call;
  check_rows(stream, *call.problem);
  CHECK(names_of(call.problem->key_tokens()) == "video 8x2x3 at 0");
}

TEST_CASE("keys that a cache holds otherwise than their chunk had them stand apart") {
  // A chunk's last denoising step is not what the cache keeps of it.
  Stream stream(
      {{0, {0, 2, 7}, {}}, {1, {2, 4, 7}, {{0, 2, 1}}}, {2, {4, 6, 7}, {{0, 2, 1}, {2, 4, 1}}}});
  const CallEntry& call = *stream.join().calls[0].call;
  check_rows(stream, *call.problem);
  CHECK(names_of(call.problem->query_tokens()) == "video 6x2x3 at 0");
  CHECK(names_of(call.problem->key_tokens()) == "cached 4x2x3 at 0, video 6x2x3 at 0");
  CHECK(call.problem->key_tokens().segments()[0].modality == Modality::history);
  CHECK_FALSE(call.problem->same_tokens());
}

TEST_CASE("keys that are turned anew in the cache have no single map") {
  Stream stream({{0, {0, 2}, {}}, {1, {2, 4}, {{0, 2, 1}}}, {2, {4, 6}, {{0, 2, 2}, {2, 4, 1}}}});
  const JoinedChunks& joined = stream.join();
  CHECK(joined.calls.empty());
  REQUIRE(joined.refusals.size() == 1);
  CHECK(joined.refusals[0] ==
        "step 2, layer 1: chunks are not joined: the keys at positions 0 to 11 differ between "
        "chunks 1 and 2 (a model that turns cached keys anew?), so there is no single map: k[0, 0, "
        "0, 0] is 1000, k[0, 0, 0, 0] is 2000");
}

TEST_CASE("chunks that are missing are told, and their rows are absent") {
  Stream stream({{0, {0, 2}, {}}, {2, {4, 6}, {{0, 2}, {2, 4}}}, {3, {7, 8}, {{4, 6}}}});
  const JoinedChunks& joined = stream.join();
  const AttentionProblem& p = *joined.calls[0].call->problem;
  check_rows(stream, p);
  CHECK(joined.notes ==
        std::vector<std::string>{
            "step 2, layer 1: without chunk 1; no rows of positions 12 to 23, 36 to 41"});
  CHECK(names_of(p.query_tokens()) == "video 2x2x3 at 0, video.2 2x2x3 at 24, video.3 1x2x3 at 42");
  CHECK(names_of(p.key_tokens()) ==
        "video 2x2x3 at 0, cached1 2x2x3 at 12, video.2 2x2x3 at 24, video.3 1x2x3 at 42");
}

TEST_CASE("masks of chunks go into the joined one") {
  const auto causal = [](const Piece& piece) {
    std::vector<uint8_t> allowed;
    for (int64_t i = 0; i < piece.own.tokens(); ++i) {
      for (int64_t j = 0; j < piece.num_keys(); ++j) {
        allowed.push_back(j - (piece.num_keys() - piece.own.tokens()) <= i ? 1 : 0);
      }
    }
    return call_of(piece)
        .fact("mask", "tensor")
        .tensor("mask", "BOOL", {piece.own.tokens(), piece.num_keys()}, raw(allowed));
  };
  const std::vector<Piece> pieces{
      {0, {0, 2}, {}}, {1, {2, 3}, {{0, 2}}}, {2, {3, 5}, {{0, 2}, {2, 3}}}};
  SECTION("causal all over is causal") {
    Stream stream;
    stream.add(0, call_of(pieces[0]).fact("mask", "causal"));
    for (const size_t c : {1, 2}) stream.add(static_cast<int64_t>(c), causal(pieces[c]));
    const CallEntry& call = *stream.join().calls[0].call;
    check_rows(stream, *call.problem);
    CHECK(call.problem->mask().describe() == "causal");
    CHECK(call.mask == nullptr);
  }
  SECTION("with a window, spans") {
    Stream stream;
    stream.add(0, call_of(pieces[0]).fact("mask", "causal"));
    stream.add(2, causal({2, {3, 5}, {{0, 1}, {2, 3}}}));
    const CallEntry& call = *stream.join().calls[0].call;
    check_rows(stream, *call.problem);
    CHECK(call.mask_fact->form == MaskForm::spans);
  }
  SECTION("biases and masks of single items cannot be told") {
    Stream stream(pieces);
    const std::vector<int64_t> bias_shape{pieces[1].own.tokens(), pieces[1].num_keys()};
    const auto cells = static_cast<size_t>(bias_shape[0] * bias_shape[1]);
    stream.add(1, call_of(pieces[1])
                      .fact("mask", "tensor")
                      .tensor("mask", "F32", bias_shape, raw(std::vector<float>(cells, 0.5f))));
    CHECK(contains(stream.join().refusals.at(0), "the mask of chunk 1 adds finite biases"));
    std::vector<uint8_t> valid(static_cast<size_t>(2 * pieces[1].num_keys()), 1);
    valid.back() = 0;
    stream.add(1, call_of(pieces[1])
                      .fact("mask", "valid")
                      .tensor("mask_valid", "BOOL", {2, pieces[1].num_keys()}, raw(valid)));
    CHECK(contains(stream.join().refusals.at(0),
                   "the mask of chunk 1 differs between batch items or heads"));
  }
}

TEST_CASE("rows of outputs and normalisers go where their queries go") {
  Stream stream;
  const std::vector<Piece> pieces{{0, {0, 1}, {}}, {1, {1, 2}, {{0, 1}}}};
  for (const Piece& piece : pieces) {
    const std::vector<int64_t> which{4, 1};
    std::vector<float> out, lse;
    for (int64_t i = 0; i < kBatch * kHeads; ++i) {
      for (const int64_t row : which) {
        out.insert(out.end(), size_t{kWidth}, static_cast<float>(100 * i + 10 * piece.chunk + row));
      }
      for (int64_t row = 0; row < kFrame; ++row) {
        lse.push_back(static_cast<float>(100 * i + 10 * piece.chunk + row));
      }
    }
    stream.add(piece.chunk, call_of(piece)
                                .tensor("out", "F32", {kBatch, kHeads, 2, kWidth}, raw(out))
                                .tensor("out_rows", "I64", {2}, raw(which))
                                .tensor("lse", "F32", {kBatch, kHeads, kFrame}, raw(lse)));
  }
  const CallEntry& call = *stream.join().calls[0].call;
  CHECK(read_all<int64_t>(*call.out_rows) == std::vector<int64_t>{4, 1, 10, 7});
  const auto out = read_all<float>(*call.out);
  REQUIRE(out.size() == static_cast<size_t>(kBatch * kHeads * 4 * kWidth));
  const size_t head = 5;
  for (const auto& [row, value] :
       {std::pair<size_t, float>{0, 504}, {1, 501}, {2, 514}, {3, 511}}) {
    CHECK(out[(head * 4 + row) * kWidth + 3] == value);
  }
  const auto lse = read_all<float>(*call.lse);
  REQUIRE(lse.size() == static_cast<size_t>(kBatch * kHeads * 2 * kFrame));
  CHECK(lse[head * 12 + 7] == 511);
  // A part of the channels, across two pieces.
  const std::vector<float> part = read_values<float>(*call.out, {1, 1, 1, 2}, {1, 1, 2, 2});
  CHECK(part == std::vector<float>{501, 501, 514, 514});
}

TEST_CASE("results that only some chunks have are left out, and said") {
  Stream stream;
  const std::vector<float> lse(size_t{kBatch} * kHeads * kFrame, 1.0f);
  const std::vector<Piece> pieces{{0, {0, 1}, {}}, {1, {1, 2}, {{0, 1}}}};
  stream.add(0, call_of(pieces[0]).tensor("lse", "F32", {kBatch, kHeads, kFrame}, raw(lse)));
  stream.add(1, call_of(pieces[1]));
  const JoinedChunks joined = stream.join();
  CHECK(joined.calls[0].call->lse == nullptr);
  REQUIRE(joined.notes.size() == 1);
  CHECK(contains(joined.notes[0], "left out: lse is not in all chunks"));
}

TEST_CASE(
    "text that every chunk attends to is there once, and words of a stream follow each other") {
  const auto chunk = [](int64_t number, int64_t first, int64_t count, float prompt) {
    const auto text = [&](const std::string& name, int64_t begin, int64_t tokens) {
      std::string words;
      for (int64_t i = 0; i < tokens - 1; ++i) {
        words += fmt::format("{}\"w{}\"", i == 0 ? "" : ",", begin + i);
      }
      return fmt::format(
          R"({{"name":"{}","modality":"text","count":{},"position":{},"words":[{}]}})", name,
          tokens, begin, words);
    };
    std::vector<float> keys(3, prompt);
    for (int64_t i = 0; i < first + count; ++i) keys.push_back(static_cast<float>(i));
    CallFile call;
    call.version(2)
        .tensor("q", "F32", {1, 1, count, 1}, raw(std::vector<float>(static_cast<size_t>(count))))
        .tensor("k", "F32", {1, 1, static_cast<int64_t>(keys.size()), 1}, raw(keys))
        .fact("chunk", std::to_string(number))
        .fact("queries", "[" + text("words", first, count) + "]")
        .fact("keys", R"([{"name":"prompt","modality":"text","count":3},)" +
                          (first > 0 ? text("cached", 0, first) + "," : "") +
                          text("words", first, count) + "]");
    return call;
  };
  Stream stream;
  stream.add(0, chunk(0, 0, 4, 9));
  stream.add(1, chunk(1, 4, 2, 9));
  const CallEntry& call = *stream.join().calls[0].call;
  const auto words = Json::parse(facts_of(call, "queries"));
  CHECK(words == Json::parse(R"([{"name": "words", "modality": "text", "count": 6,
      "position": 0, "words": ["w0", "w1", "w2", "", "w4", ""]}])"));
  auto keys = Json::parse(R"([{"name": "prompt", "modality": "text", "count": 3}])");
  keys.push_back(words[0]);
  CHECK(Json::parse(facts_of(call, "keys")) == keys);
  CHECK(call.problem->num_keys() == 9);
  CHECK(call.mask->shape()[0] == 2);

  stream.add(1, chunk(1, 4, 2, 8));
  CHECK(contains(stream.join().refusals.at(0),
                 "segment prompt has no position and differs between chunks 0 and 1: k[0, 0, 0, 0] "
                 "is 9, k[0, 0, 0, 0] is 8"));
}

TEST_CASE("chunks that do not fit together are refused by what differs") {
  const std::vector<Piece> pieces{{0, {0, 2}, {}}, {1, {2, 4}, {{0, 2}}}};
  Stream stream(pieces);
  const auto refusal = [&](const CallFile& call) {
    stream.add(1, call);
    const JoinedChunks& joined = stream.join();
    CHECK(joined.calls.empty());
    return joined.refusals.at(0);
  };
  CHECK(contains(refusal(call_of(pieces[1]).fact("scale", "0.25")),
                 "scale is 0.5 in chunk 0 and 0.25 in chunk 1"));
  CHECK(
      contains(refusal(call_of({1, {1, 4}, {{0, 1}}})), "position 6 is a query of chunks 0 and 1"));
  CHECK(contains(refusal(call_of({1, {2, 4}, {{0, 2}, {1, 2}}})),
                 "keys: position 6 is there twice in chunk 1: keys 6 and 12"));
  CallFile bare;
  bare.version(2)
      .pair({kBatch, kHeads, 6, kWidth}, {kBatch, kKvHeads, 6, kWidth})
      .fact("step", "2")
      .fact("layer", "1")
      .fact("kind", "self")
      .fact("chunk", "1");
  CHECK(contains(refusal(bare), "no token map tells their positions"));
  bare.fact("queries", R"([{"name":"a","modality":"other","count":6}])");
  CHECK(contains(refusal(bare), "queries: segment a has no position"));
  // Facts that name a step, or are only shown, may differ.
  stream.add(1, call_of(pieces[1]).fact("timestep", "3"));
  const JoinedChunks& joined = stream.join();
  CHECK(joined.refusals.empty());
  CHECK(joined.notes == std::vector<std::string>{"step 2, layer 1: left out: timestep is "
                                                 "nothing in chunk 0 and 3 in chunk 1"});
}

TEST_CASE("calls that are no pieces of a stream stay as they are") {
  Stream stream({{0, {0, 2}, {}}, {1, {2, 4}, {{0, 2}}}});
  CallFile other;
  other.version(2).pair({1, 1, 6, 8}, {1, 1, 6, 8}).fact("step", "2").fact("layer", "0");
  stream.add(9, other);
  const JoinedChunks& joined = stream.join();
  REQUIRE(joined.calls.size() == 2);
  CHECK(joined.calls[0].call == &stream.chunk(0));
  CHECK(joined.calls[1].call == joined.made[0].get());
}
