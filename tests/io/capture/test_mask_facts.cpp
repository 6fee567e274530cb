// Facts and tensors by which a capture tells a mask, in both versions of the format.
#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 6;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string numbers(const std::vector<int64_t>& values) { return raw(values); }

/// Two batch items and four heads on two key heads of six tokens.
CallFile call_of(const std::string& mask, int version = 2) {
  CallFile call;
  call.pair({2, 4, kTokens, 8}, {2, 2, kTokens, 8}).version(version);
  return mask.empty() ? call : call.fact("mask", mask);
}

CallFile valid_call(const std::string& mask) {
  return call_of(mask).tensor("mask_valid", "BOOL", {2, kTokens},
                              std::string("\1\1\1\1\0\0\1\1\0\0\0\0", 12));
}

CallFile blocks_call() {
  return call_of("blocks")
      .fact("mask_block", "4x2")
      .tensor("mask_blocks", "BOOL", {1, 4, 2, 3}, std::string(24, '\1'));
}

/// Which entries of a head's map may be attended to, row by row.
std::string kept(const Mask& mask, int64_t batch, int64_t head) {
  std::string text;
  std::vector<float> bias(static_cast<size_t>(kTokens));
  for (int64_t query = 0; query < kTokens; ++query) {
    mask.fill_bias(batch, head, {&query, 1}, {0, kTokens}, bias.data(), kTokens);
    for (const float b : bias) text += b == 0 ? '1' : '0';
    if (query + 1 < kTokens) text += ' ';
  }
  return text;
}

std::string repeated(const std::string& row) {
  std::string text = row;
  for (int64_t i = 1; i < kTokens; ++i) text += " " + row;
  return text;
}

}  // namespace

TEST_CASE("masks that are stated by less than their entries") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const auto opened = [&](const CallFile& call) {
    call.write(path);
    const Capture capture = Capture::open(path);
    CHECK(capture.calls().front().unknown_keys.empty());
    return capture.calls().front().problem->mask();
  };
  SECTION("valid keys") {
    const Mask mask = opened(valid_call("valid"));
    CHECK(mask.describe() == "valid");
    CHECK(kept(mask, 0, 3) == repeated("111100"));
    CHECK(kept(mask, 1, 0) == repeated("110000"));
    const Mask all = opened(
        call_of("valid").tensor("mask_valid", "BOOL", {kTokens}, std::string("\0\1\1\1\1\1", 6)));
    CHECK(kept(all, 1, 0) == repeated("011111"));
  }
  SECTION("valid pairs") {
    const Mask mask = opened(valid_call("valid_pairs"));
    CHECK(mask.describe() == "valid_pairs");
    CHECK(kept(mask, 0, 0) == "111100 111100 111100 111100 000000 000000");
    CHECK(kept(mask, 1, 0) == "110000 110000 000000 000000 000000 000000");
  }
  SECTION("segments") {
    const Mask mask =
        opened(call_of("segments")
                   .tensor("mask_segments", "I64", {kTokens}, numbers({7, 7, -1, 7, -1, 5})));
    CHECK(mask.describe() == "segments");
    CHECK(kept(mask, 1, 2) == "110100 110100 001010 110100 001010 000001");
  }
  SECTION("blocks in causal order") {
    const Mask mask = opened(call_of("block_causal:4"));
    CHECK(mask.describe() == "block_causal:4");
    CHECK(kept(mask, 0, 0) == "111100 111100 111100 111100 111111 111111");
  }
  SECTION("blocks") {
    CallFile call = call_of("blocks").fact("mask_block", "4x2");
    call.tensor("mask_blocks", "BOOL", {2, 1, 2, 3}, std::string("\1\0\1\0\0\1\0\1\0\1\1\1", 12));
    const Mask mask = opened(call);
    CHECK(mask.describe() == "blocks:4x2");
    CHECK(kept(mask, 0, 3) == "110011 110011 110011 110011 000011 000011");
    CHECK(kept(mask, 1, 0) == "001100 001100 001100 001100 111111 111111");
  }
  SECTION("spans") {
    const Mask mask = opened(call_of("spans").tensor(
        "mask_spans", "I64", {3, 5}, numbers({0, 2, 0, 3, 1, 3, 6, 1, 2, 0, 3, 6, 4, 6, 1})));
    CHECK(mask.describe() == "spans");
    CHECK(kept(mask, 1, 2) == "100000 110000 000000 010010 010011 010011");
  }
  SECTION("what the first version can say, the second can too") {
    CHECK(opened(call_of("causal")).describe() == "causal");
    CHECK(opened(call_of("")).is_none());
    CHECK(opened(call_of("tensor").tensor("mask", "BOOL", {1, kTokens})).describe() == "tensor");
  }
}

TEST_CASE("mask facts that are wrong are refused in one line that names file, place and both") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  struct Case {
    CallFile call;
    std::vector<std::string> parts;
  };
  const auto blocks = [](const std::string& block, std::vector<int64_t> shape) {
    return call_of("blocks").fact("mask_block", block).tensor("mask_blocks", "BOOL", shape);
  };
  const std::vector<Case> cases{
      // Facts of the second version.
      {valid_call("valid").version(1), {"mask: valid", "attnscope-capture/2", "capture/1"}},
      {valid_call("valid_pairs").version(0), {"attnscope-capture/2", "got none"}},
      {call_of("block_causal:2", 1), {"block_causal:2", "attnscope-capture/2"}},
      {call_of("none", 1).fact("mask_block", "2x2"), {"mask_block", "attnscope-capture/2"}},
      {call_of("valid").version(3), {"format", "attnscope-capture/2", "attnscope-capture/3"}},
      // Words.
      {call_of("window:3"),
       {"mask", "block_causal:N, blocks, spans, window:L,R or natten:TxHxW", "window:3"}},
      {call_of("block_causal"), {"got block_causal)"}},
      {call_of("block_causal:0"), {"got block_causal:0"}},
      {call_of("block_causal:x"), {"got block_causal:x"}},
      {call_of("block_causal:-4"), {"got block_causal:-4"}},
      {call_of("block_causal:4.5"), {"got block_causal:4.5"}},
      {valid_call("valid:3"), {"got valid:3"}},
      {blocks("4", {1, 1, 2, 3}), {"mask_block", "128x64", "got 4"}},
      {blocks("4x0", {1, 1, 2, 3}), {"got 4x0"}},
      {blocks("4x2x1", {1, 1, 2, 3}), {"got 4x2x1"}},
      {call_of("blocks").tensor("mask_blocks", "BOOL", {1, 1, 2, 3}), {"mask_block", "missing"}},
      {valid_call("valid").fact("mask_block", "4x2"), {"mask_block", "valid"}},
      // Tensors that are missing, or that no fact explains.
      {call_of("valid"), {"is valid", "no tensor mask_valid"}},
      {call_of("segments"), {"no tensor mask_segments"}},
      {call_of("blocks").fact("mask_block", "4x2"), {"no tensor mask_blocks"}},
      {valid_call("none"), {"is none", "a tensor mask_valid"}},
      {valid_call(""), {"is none", "a tensor mask_valid"}},
      {valid_call("block_causal:2"), {"is block_causal:2", "a tensor mask_valid"}},
      {valid_call("valid").tensor("mask", "BOOL", {1, kTokens}), {"is valid", "a tensor mask"}},
      {valid_call("valid").tensor("mask_segments", "I64", {kTokens}), {"a tensor mask_segments"}},
      // Their types and shapes.
      {call_of("valid").tensor("mask_valid", "F32", {kTokens}), {"mask_valid", "bool", "f32 [6]"}},
      {call_of("valid").tensor("mask_valid", "BOOL", {2, 5}), {"bool [2, 6]", "bool [2, 5]"}},
      {call_of("valid").tensor("mask_valid", "BOOL", {1, 6}), {"bool [2, 6] or [6]", "[1, 6]"}},
      {call_of("valid").tensor("mask_valid", "BOOL", {1, 1, 6}), {"[B, tokens]", "[1, 1, 6]"}},
      {call_of("segments").tensor("mask_segments", "BOOL", {kTokens}), {"i64", "bool [6]"}},
      {call_of("segments").tensor("mask_segments", "I64", {3, kTokens}), {"i64 [2, 6]", "[3, 6]"}},
      {blocks("4x2", {1, 1, 3, 3}), {"bool [2, 4, 2, 3]", "4x2", "[1, 1, 3, 3]"}},
      {blocks("4x2", {1, 2, 2, 3}), {"bool [2, 4, 2, 3]", "[1, 2, 2, 3]"}},
      {blocks("4x2", {2, 3}), {"[B or 1, H or 1", "[2, 3]"}},
      {call_of("spans"), {"is spans", "no tensor mask_spans"}},
      {call_of("spans").tensor("mask_spans", "BOOL", {1, 5}), {"i64 [n, 5]", "bool [1, 5]"}},
      {call_of("spans").tensor("mask_spans", "I64", {1, 5}, numbers({0, 7, 0, 6, 0})),
       {"mask_spans: row 0", "queries", "0 to 6", "[0, 7, 0, 6, 0]"}},
  };
  for (const Case& c : cases) {
    c.call.write(path);
    const std::string text = thrown_text(ErrorCode::file, [&] { Capture::open(path); });
    INFO(c.parts.front() << ": " << text);
    CHECK(text.rfind(path.string(), 0) == 0);
    for (const std::string& part : c.parts) CHECK(contains(text, part));
    CHECK_FALSE(contains(text, "\n"));
  }
  // Only of as many queries as keys.
  CallFile cross;
  cross.version(2).pair({1, 1, 4, 8}, {1, 1, 6, 8}).fact("mask", "valid_pairs");
  cross.tensor("mask_valid", "BOOL", {6}).write(path);
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }), "bool [1, 4] or [4]"));
}

TEST_CASE("to the first version, tensors of masks are tensors that are not understood") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  valid_call("").version(1).write(path);
  const Capture capture = Capture::open(path);
  CHECK(capture.calls().front().unknown_keys == std::vector<std::string>{"tensor mask_valid"});
  CHECK(capture.calls().front().problem->mask().is_none());
}

TEST_CASE("a file without a format is of the version that lists it") {
  const TemporaryFolder folder;
  valid_call("").version(0).write(folder.path() / "a.safetensors");
  const auto open_listed = [&](const std::string& version) {
    write_bytes(folder.path() / "capture.json",
                R"({"format":"attnscope-capture/)" + version +
                    R"(","calls":[{"file":"a.safetensors","mask":"valid"}]})");
    return Capture::open(folder.path());
  };
  CHECK(open_listed("2").calls().front().problem->mask().describe() == "valid");
  CHECK(contains(thrown_text(ErrorCode::file, [&] { open_listed("1"); }), "attnscope-capture/2"));
  CHECK(contains(thrown_text(ErrorCode::file, [&] { open_listed("3"); }), "attnscope-capture/3"));
}

TEST_CASE("an option takes the place of a recorded mask and of what belongs to it") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  blocks_call().write(path);
  FactOverrides overrides;
  const auto opened = [&](const std::string& mask) {
    overrides.mask = mask;
    return Capture::open(path, overrides);
  };
  const Capture none = opened("none");
  CHECK(none.calls().front().problem->mask().is_none());
  CHECK(none.calls().front().facts.count("mask_block") == 0);
  CHECK(none.calls().front().mask == nullptr);
  CHECK(opened("block_causal:3").calls().front().problem->mask().describe() == "block_causal:3");
  for (const char* wrong : {"block_causal:", "block_causal:0", "block_causal:two"}) {
    CHECK(contains(thrown_text(ErrorCode::usage, [&] { opened(wrong); }), "block_causal:N"));
  }
  CHECK(
      contains(thrown_text(ErrorCode::usage, [&] { opened("blocks_causal"); }), "block_causal:N"));
}

TEST_CASE("the content hash follows what states a mask") {
  const TemporaryFolder folder;
  const auto hash = [&](const CallFile& call) {
    const auto path = folder.path() / "a.safetensors";
    call.write(path);
    const Capture capture = Capture::open(path);
    return capture.content_hash(capture.select({}), false);
  };
  const auto blocks = [](const std::string& block, const std::vector<int64_t>& shape) {
    return call_of("blocks").fact("mask_block", block).tensor("mask_blocks", "BOOL", shape);
  };
  const std::vector<std::string> hashes{
      hash(call_of("")),
      hash(call_of("block_causal:2")),
      hash(call_of("block_causal:3")),
      hash(valid_call("valid")),
      hash(valid_call("valid_pairs")),
      hash(call_of("valid").tensor("mask_valid", "BOOL", {2, kTokens})),
      hash(call_of("segments").tensor("mask_segments", "I64", {kTokens})),
      hash(call_of("segments")
               .tensor("mask_segments", "I64", {kTokens}, numbers({1, 0, 0, 0, 0, 0}))),
      hash(blocks("3x3", {2, 1, 2, 2})),
      hash(blocks("3x4", {2, 1, 2, 2})),
      hash(blocks("6x2", {1, 4, 1, 3})),
      hash(blocks("3x6", {1, 4, 2, 1})),
      hash(blocks("3x6", {2, 4, 2, 1})),
      hash(call_of("spans").tensor("mask_spans", "I64", {1, 5}, numbers({0, 6, 0, 6, 0}))),
      hash(call_of("spans").tensor("mask_spans", "I64", {1, 5}, numbers({0, 6, 0, 6, 1})))};
  for (size_t i = 0; i < hashes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      INFO(i << " and " << j);
      CHECK(hashes[i] != hashes[j]);
    }
  }
  // A mask that the first version can tell has one hash in both.
  CHECK(hash(call_of("causal", 1)) == hash(call_of("causal", 2)));
}
