// Captures of several processes, joined to the one that a single process would have made.
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/recorded_call.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;
using Ranges = std::vector<std::vector<int64_t>>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The share of a RecordedCall that one process has.
struct Part {
  int64_t rank = 0, ranks = 2;
  Ranges queries, keys;  ///< [first, count]; empty: all
  int64_t first_head = 0, heads = RecordedCall::kHeads;
  std::optional<int64_t> head_offset = {};  ///< that it says; else first_head
  bool head_masks = false;                  ///< a mask tensor tells heads apart
  std::string run = "r";
  std::string whole = R"({"grid":"2x3x4","text":"4@start"})";
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< others

  bool has_some_tokens() const { return !queries.empty(); }
};

std::vector<int64_t> places(const Ranges& ranges) {
  std::vector<int64_t> list;
  for (const auto& range : ranges) {
    for (int64_t i = 0; i < range[1]; ++i) list.push_back(range[0] + i);
  }
  return list;
}

/// Some heads and tokens of an array [batch, heads, tokens, d].
std::vector<float> chosen(const std::vector<float>& all, int64_t heads, int64_t first,
                          int64_t count, const std::vector<int64_t>& tokens) {
  std::vector<float> some;
  for (int64_t item = 0; item < RecordedCall::kBatch; ++item) {
    for (int64_t head = first; head < first + count; ++head) {
      for (int64_t token : tokens) {
        const auto row = ((item * heads + head) * RecordedCall::kTokens + token);
        const auto begin = all.begin() + row * RecordedCall::kWidth;
        some.insert(some.end(), begin, begin + RecordedCall::kWidth);
      }
    }
  }
  return some;
}

const Ranges kAll{{0, RecordedCall::kTokens}};

/// The part's file, with output rows 0, 3, 6 … of the whole.
CallFile part_file(const RecordedCall& call, const Part& part, const Ranges& queries,
                   const Ranges& keys) {
  const std::vector<int64_t> rows = places(queries), columns = places(keys);
  std::vector<int64_t> out_rows, out_places;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] % 3 != 0) continue;
    out_rows.push_back(static_cast<int64_t>(i));
    out_places.push_back(rows[i]);
  }
  const int64_t group = RecordedCall::kHeads / RecordedCall::kKvHeads;
  const int64_t first_kv = part.first_head / group, kv = part.heads / group;
  const auto n = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  const auto of_queries = [&](const std::vector<float>& all, const std::vector<int64_t>& tokens) {
    return raw(chosen(all, RecordedCall::kHeads, part.first_head, part.heads, tokens));
  };
  const auto of_keys = [&](const std::vector<float>& all) {
    return raw(chosen(all, RecordedCall::kKvHeads, first_kv, kv, columns));
  };
  const int64_t batch = RecordedCall::kBatch, width = RecordedCall::kWidth;
  CallFile file;
  file.version(2)
      .tensor("q", "F32", {batch, part.heads, n(rows), width}, of_queries(call.q, rows))
      .tensor("k", "F32", {batch, kv, n(columns), width}, of_keys(call.k))
      .tensor("v", "F32", {batch, kv, n(columns), width}, of_keys(call.v))
      .tensor("out", "F32", {batch, part.heads, n(out_rows), width},
              of_queries(call.out, out_places))
      .tensor("out_rows", "I64", {n(out_rows)}, raw(out_rows));
  if (!call.mask_valid.empty()) {
    std::string valid;
    for (int64_t token : columns) valid += call.mask_valid[static_cast<size_t>(token)];
    file.tensor("mask_valid", "BOOL", {n(columns)}, valid);
  }
  if (!call.mask.empty()) {
    // Of parts of the tokens a row for all queries, which is what the whole's rows are.
    const bool key_mask = part.has_some_tokens();
    std::string entries;
    for (int64_t row : key_mask ? std::vector<int64_t>{0} : rows) {
      for (int64_t column : columns) {
        entries += call.mask[static_cast<size_t>(row * RecordedCall::kTokens + column)];
      }
    }
    const int64_t heads = part.head_masks ? part.heads : 1;
    std::string all;
    for (int64_t head = 0; head < heads; ++head) all += entries;
    file.tensor("mask", "BOOL", {1, heads, key_mask ? 1 : n(rows), n(columns)}, all);
  }
  return file;
}

/// Writes the part into DUMP/rank-R-of-N.
void write_part(const fs::path& dump, const RecordedCall& call, const Part& part,
                const std::string& name = "call") {
  const Ranges queries = part.has_some_tokens() ? part.queries : kAll;
  const Ranges keys = part.keys.empty() ? queries : part.keys;
  CallFile file = part_file(call, part, queries, keys);
  Json fact{{"rank", part.rank}, {"ranks", part.ranks}, {"run", part.run}};
  if (part.has_some_tokens()) {
    fact["queries"] = queries;
    if (!part.keys.empty()) fact["keys"] = keys;
    fact["whole"] = Json::parse(part.whole);
    const auto map = [](const Ranges& ranges) {
      return R"([{"name":"tokens","modality":"other","count":)" +
             std::to_string(places(ranges).size()) + "}]";
    };
    file.fact("queries", map(queries));
    if (!part.keys.empty()) file.fact("keys", map(keys)).fact("kind", "cross");
  } else {
    file.fact("grid", "2x3x4").fact("text", "4@start");
  }
  const int64_t offset = part.head_offset.value_or(part.first_head);
  if (offset != 0) file.fact("head_offset", std::to_string(offset));
  file.fact("part", fact.dump()).fact("branches", R"(["uncond","cond"])").fact("scale", "0.125");
  file.fact("q_state", "qk_norm").fact("layer", std::to_string(call.layer));
  file.fact("mask", call.mask_fact);
  for (const auto& [fact_name, value] : part.facts) file.fact(fact_name, value);
  const fs::path folder =
      dump / ("rank-" + std::to_string(part.rank) + "-of-" + std::to_string(part.ranks));
  fs::create_directories(folder);
  file.write(folder / (name + ".safetensors"));
}

/// Text and video each split over two processes.
std::vector<Part> text_and_video_apart() {
  Part first, second;
  first.queries = {{0, 2}, {4, 12}};
  second.queries = {{2, 2}, {16, 12}};
  second.rank = 1;
  return {first, second};
}

RecordedCall recorded(const std::string& valid = "") {
  RecordedCall call(7);
  if (!valid.empty()) {
    call.mask_fact = "valid";
    call.mask_valid = valid;
  }
  call.attend([&](int64_t, int64_t key) {
    return valid.empty() || valid[static_cast<size_t>(key)] != '\0' ? 0 : -1e300;
  });
  return call;
}

std::vector<double> weights_of(const TemporaryFolder& folder, const std::string& capture) {
  const std::string out = (folder.path() / "weights.h5").string();
  const ProgramResult r =
      run_attnscope({"export", capture, "-o", out, "--dtype", "f32", "--force", "--quiet"});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return read_dataset(out, "/calls/" + group_members(out, "/calls").front() + "/weights").values;
}

/// Joins the parts and holds the result against the call as one process records it.
void check_joined(const RecordedCall& call, const std::vector<Part>& parts) {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  for (const Part& part : parts) write_part(dump, call, part);
  const std::string whole = (folder.path() / "whole").string();
  const std::string single = (folder.path() / "single.safetensors").string();
  call.file().write(single);
  const ProgramResult r = run_attnscope({"convert", "--stitch", dump.string() + "/", "-o", whole});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(r.err, "convert: 1 call, 8 heads, "));
  const ProgramResult verified = run_attnscope({"verify", whole});
  CHECK(verified.exit_code == 0);
  CHECK(contains(verified.out, "10 output rows of 8 heads"));
  // The facts are those of the whole, and nothing says any more that it was in parts.
  const auto info = Json::parse(run_attnscope({"info", whole, "--json"}).out)["calls"][0];
  const auto alone = Json::parse(run_attnscope({"info", single, "--json"}).out)["calls"][0];
  for (const char* name : {"grid", "text", "queries", "keys", "heads", "kv_heads", "mask"}) {
    CHECK(info[name] == alone[name]);
  }
  CHECK(!info["facts"].contains("part"));
  CHECK(!info["facts"].contains("head_offset"));
  CHECK(info["unknown_keys"].empty());
  CHECK(info["facts"]["format"] == alone["facts"]["format"]);
  CHECK(weights_of(folder, whole) == weights_of(folder, single));
}

/// The message with which stitch refuses a dump; nothing is written.
std::string refusal(const fs::path& dump) {
  const fs::path out = dump.parent_path() / "out";
  const ProgramResult r = run_attnscope({"convert", "--stitch", dump.string(), "-o", out.string()});
  CHECK(r.exit_code == 1);
  CHECK(!fs::exists(out));
  CHECK(!fs::exists(out.string() + ".part"));
  return r.err;
}

}  // namespace

TEST_CASE("convert --stitch joins what processes have of a sequence") {
  check_joined(recorded(), text_and_video_apart());
}

TEST_CASE("convert --stitch joins key masks") {
  std::string valid(static_cast<size_t>(RecordedCall::kTokens), '\1');
  for (size_t i : {2U, 3U, 20U}) valid[i] = '\0';
  check_joined(recorded(valid), text_and_video_apart());
}

TEST_CASE("convert --stitch joins heads, and heads of parts of the sequence") {
  std::vector<Part> heads(2);
  heads[0].heads = heads[1].heads = 2;
  heads[1].first_head = 2;
  heads[1].rank = 1;
  check_joined(recorded(), heads);
  std::vector<Part> both;
  for (const Part& tokens : text_and_video_apart()) {
    for (const Part& of_heads : heads) {
      both.push_back(tokens);
      both.back().heads = 2;
      both.back().first_head = of_heads.first_head;
      both.back().rank = static_cast<int64_t>(both.size()) - 1;
      both.back().ranks = 4;
    }
  }
  check_joined(recorded(), both);
}

TEST_CASE("convert --stitch joins mask tensors of all heads and of each") {
  RecordedCall call = recorded();
  call.mask_fact = "tensor";
  const auto n = static_cast<size_t>(RecordedCall::kTokens);
  call.mask.assign(n * n, '\1');
  for (size_t row = 0; row < n; ++row) {
    for (size_t key : {2U, 3U, 20U}) call.mask[row * n + key] = '\0';
  }
  call.attend([&](int64_t, int64_t key) {
    return call.mask[static_cast<size_t>(key)] != '\0' ? 0 : -1e300;
  });
  for (const bool head_masks : {false, true}) {
    std::vector<Part> parts = text_and_video_apart();
    for (Part& part : parts) part.head_masks = head_masks;
    check_joined(call, parts);
    std::vector<Part> heads(2);
    for (int64_t rank = 0; rank < 2; ++rank) {
      Part& part = heads[static_cast<size_t>(rank)];
      part.heads = 2;
      part.first_head = 2 * rank;
      part.rank = rank;
      part.head_masks = head_masks;
    }
    check_joined(call, heads);
  }
}

TEST_CASE("convert --stitch takes what all processes have once, if it is the same") {
  // Every process has the whole call, as one that no parallelism touches.
  std::vector<Part> parts(2);
  parts[1].rank = 1;
  check_joined(recorded(), parts);
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  write_part(dump, recorded(), parts[0]);
  RecordedCall other = recorded();
  other.k[7] += 1;
  write_part(dump, other, parts[1]);
  const std::string said = refusal(dump);
  CHECK(contains(said, "rank-1-of-2/call.safetensors: tensor k: is not that of "));
  CHECK(contains(said, "rank-0-of-2/call.safetensors, which has the same part"));
}

TEST_CASE("convert --stitch joins queries in parts with keys that all processes have") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  const RecordedCall call = recorded();
  Part first, second;
  first.queries = {{0, 14}};
  second.queries = {{14, 14}};
  second.rank = 1;
  for (Part* part : {&first, &second}) {
    part->keys = kAll;
    part->whole = R"({"text":"all"})";
    write_part(dump, call, *part);
  }
  const std::string whole = (folder.path() / "whole.safetensors").string();
  REQUIRE(run_attnscope({"convert", "--stitch", dump.string(), "-o", whole}).exit_code == 0);
  CHECK(run_attnscope({"verify", whole}).exit_code == 0);
  const auto info = Json::parse(run_attnscope({"info", whole, "--json"}).out)["calls"][0];
  CHECK(info["kind"] == "cross");
  CHECK(info["queries"] == 28);
  CHECK(info["keys"] == 28);
}

TEST_CASE("a part alone is told as one, and gives no numbers") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  for (const Part& part : text_and_video_apart()) write_part(dump, recorded(), part);
  const std::string rank = (dump / "rank-1-of-2").string();
  const ProgramResult info = run_attnscope({"info", rank});
  CHECK(info.exit_code == 0);
  CHECK(!contains(info.err, "differ"));
  CHECK(contains(info.out, "part       rank 1 of 2, queries 2-3, 16-27 of the whole map"));
  CHECK(!contains(info.out, "not recorded: "));  // nothing is to be added to a part
  for (const char* command : {"stats", "verify", "export", "convert"}) {
    std::vector<std::string> words{command, rank};
    if (command[0] == 'e' || command[0] == 'c') {
      words.insert(words.end(), {"-o", (folder.path() / "x").string()});
    }
    const ProgramResult r = run_attnscope(words);
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "convert --stitch " + dump.string() + " -o OUT"));
  }
  const ProgramResult above = run_attnscope({"stats", dump.string()});
  CHECK(above.exit_code == 1);
  CHECK(contains(above.err, "attnscope convert --stitch " + dump.string() + " -o OUT"));
}

TEST_CASE("convert --stitch refuses ranks that are no run, and names them") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  const RecordedCall call = recorded();
  const std::vector<Part> parts = text_and_video_apart();
  write_part(dump, call, parts[0]);
  const fs::path second = dump / "rank-1-of-2";
  const auto with = [&](const std::function<void(Part&)>& change) {
    Part part = parts[1];
    change(part);
    fs::remove_all(second);
    write_part(dump, call, part);
    return refusal(dump);
  };
  SECTION("no ranks") {
    fs::create_directory(folder.path() / "empty");
    CHECK(contains(refusal(folder.path() / "empty"), "has no folders rank-0-of-N"));
  }
  SECTION("a rank is missing") { CHECK(contains(refusal(dump), "rank-1-of-2: is missing")); }
  SECTION("a rank of another number of ranks") {
    Part part = parts[1];
    part.ranks = 3;
    write_part(dump, call, part);
    CHECK(contains(refusal(dump), "rank-1-of-3: is of a run of 3 ranks, rank-0-of-2 of one of 2"));
  }
  SECTION("a rank twice") {
    fs::copy(dump / "rank-0-of-2", second);
    CHECK(contains(refusal(dump), "part: is rank 0 of 2, but lies in rank-1-of-2"));
  }
  SECTION("another run") {
    CHECK(contains(with([](Part& p) { p.run = "s"; }), "part: is of run s, "));
  }
  SECTION("another fact") {
    const std::string said = with([](Part& p) { p.facts = {{"prompt", "a cat"}}; });
    CHECK(contains(said, "rank-1-of-2/call.safetensors: prompt: is \"a cat\", but "));
    CHECK(contains(said, "rank-0-of-2/call.safetensors says not recorded"));
  }
  SECTION("what shapes the map and is not carried over") {
    const std::string said = with([](Part& p) { p.facts = {{"alibi_slopes", "30"}}; });
    CHECK(contains(said, "rank-1-of-2/call.safetensors: "));
    CHECK(contains(said, "alibi_slopes"));
    CHECK(contains(said, "--ignore alibi_slopes"));
    fs::remove_all(dump);
    for (Part part : parts) {
      part.facts = {{"alibi_slopes", "30"}};
      write_part(dump, call, part);
    }
    const fs::path out = folder.path() / "without";
    const ProgramResult r = run_attnscope(
        {"convert", "--stitch", dump.string(), "--ignore", "alibi_slopes", "-o", out.string()});
    INFO(r.err);
    CHECK(r.exit_code == 0);
    CHECK(fs::exists(out));
  }
  SECTION("another whole") {
    CHECK(contains(with([](Part& p) { p.whole = R"({"grid":"2x4x3","text":"4@start"})"; }),
                   "part: whole: is {\"grid\":\"2x4x3\""));
  }
  SECTION("tokens that the other has as well") {
    CHECK(contains(with([](Part& p) {
                     p.queries = {{1, 3}, {17, 11}};
                   }),
                   "has queries 1-3, some of which "));
  }
  SECTION("tokens that none has") {
    CHECK(contains(with([](Part& p) {
                     p.queries = {{2, 2}, {18, 10}};
                   }),
                   "queries 16-17 of heads 0-3 are in no rank"));
  }
  SECTION("a whole that the tokens are not") {
    fs::remove_all(dump);
    for (Part part : parts) {
      part.whole = R"({"grid":"2x3x5","text":"4@start"})";
      write_part(dump, call, part);
    }
    const std::string said = refusal(dump);
    CHECK(contains(said, "rank-0-of-2 and the others: do not make a capture: "));
    CHECK(contains(said, "grid 2x3x5 with 4 text tokens has 34 tokens, but the sequence has 28"));
    const fs::path file = folder.path() / "x.safetensors";
    CHECK(run_attnscope({"convert", "--stitch", dump.string(), "-o", file.string()}).exit_code ==
          1);
    CHECK(!fs::exists(file));
    CHECK(!fs::exists(file.string() + ".part"));
  }
  SECTION("heads that none has, or several") {
    std::vector<Part> heads(2);
    heads[0].heads = heads[1].heads = 2;
    heads[1].first_head = 2;
    heads[1].rank = 1;
    fs::remove_all(dump);
    write_part(dump, call, heads[0]);
    const auto at = [&](int64_t offset) {
      heads[1].head_offset = offset;
      write_part(dump, call, heads[1]);
      return refusal(dump);
    };
    CHECK(contains(at(4), "heads 2-3 of the parts are in no rank"));
    CHECK(contains(at(1), "head_offset: begins within a group of heads that share keys"));
    heads[0].heads = 4;
    write_part(dump, call, heads[0]);
    CHECK(contains(at(2), "heads 2-3 of the parts are in several ranks"));
  }
  SECTION("another step") {
    CHECK(contains(with([](Part& p) { p.facts = {{"step", "3"}}; }), "is not in "));
  }
  SECTION("a call that only one has") {
    write_part(dump, call, parts[1]);
    RecordedCall later = call;
    later.layer = 1;
    write_part(dump, later, parts[1], "later");
    CHECK(contains(refusal(dump), "layer 1, branch uncond, kind self is not in each of the ranks"));
  }
  SECTION("a file that is cut") {
    write_part(dump, call, parts[1]);
    const fs::path file = second / "call.safetensors";
    fs::resize_file(file, fs::file_size(file) / 2);
    CHECK(contains(refusal(dump), "rank-1-of-2/call.safetensors"));
  }
  SECTION("a mask of every query and key") {
    fs::remove_all(dump);
    RecordedCall causal = call;
    causal.mask_fact = "causal";
    for (const Part& part : parts) write_part(dump, causal, part);
    CHECK(
        contains(refusal(dump), "mask: is causal: of parts of the tokens only a mask of each key"));
  }
}

TEST_CASE("a wrong fact `part` is one line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& part) {
    const fs::path file = folder.path() / "a.safetensors";
    CallFile call;
    call.version(2).pair({1, 1, 4, 8}, {1, 1, 4, 8}).fact("part", part).write(file);
    const ProgramResult r = run_attnscope({"info", file.string()});
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "a.safetensors: part: "));
    return r.err;
  };
  const std::string rank = R"({"rank":0,"ranks":2)";
  CHECK(contains(refused("[]"), "expected an object"));
  CHECK(contains(refused(R"({"rank":2,"ranks":2})"), "rank: expected a whole number from 0 to 1"));
  CHECK(contains(refused(R"({"rank":0})"), "ranks: expected a whole number"));
  CHECK(contains(refused(rank + R"(,"of":2})"), "of is not known"));
  CHECK(contains(refused(rank + R"(,"queries":[[0,4]]})"), "belong together"));
  const auto with = [&](const std::string& queries, const std::string& whole) {
    return refused(rank + R"(,"queries":)" + queries + R"(,"whole":)" + whole + "}");
  };
  CHECK(contains(with("[[0,3]]", "{}"), "queries: has 3 tokens, but q has 4"));
  CHECK(contains(with("[[0,0]]", "{}"), "queries[0]: expected [first token, tokens]"));
  CHECK(contains(with("[[2,3],[4,1]]", "{}"), "queries[1]: has tokens of queries[0]"));
  CHECK(contains(with("[]", "{}"), "queries: expected a list"));
  CHECK(contains(with("[[0,4]]", R"({"scale":2})"), "whole: scale is not known"));
  CHECK(contains(with("[[0,4]]", R"({"queries":[{"valid":{"tensor":"x"}}]})"), "no tensor x"));
}

TEST_CASE("convert --stitch that is interrupted or killed leaves no capture") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  for (int64_t layer = 0; layer < 3; ++layer) {
    RecordedCall call = recorded();
    call.layer = layer;
    for (const Part& part : text_and_video_apart()) {
      write_part(dump, call, part, "layer" + std::to_string(layer));
    }
  }
  const auto to = [&](const fs::path& out) {
    return std::vector<std::string>{"convert", "--stitch", dump.string(), "-o", out, "--quiet"};
  };
  const long writes = calls_of(to(folder.path() / "whole"), "stop-write");
  const fs::path out = folder.path() / "out";
  const auto interrupted = run_attnscope(to(out), with_fault("stop-write", writes / 2));
  CHECK(interrupted.exit_code == 4);
  CHECK(!fs::exists(out));
  CHECK(!fs::exists(out.string() + ".part"));
  const auto killed = run_attnscope(to(out), with_fault("kill-write", writes / 2));
  CHECK(killed.exit_code == 128 + SIGKILL);
  CHECK(!fs::exists(out));
  const auto refused = run_attnscope(to(out));
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "is left from an interrupted run"));
  auto forced = to(out);
  forced.emplace_back("--force");
  CHECK(run_attnscope(forced).exit_code == 0);
  CHECK(contains(run_attnscope({"verify", out}).out, "agrees: 3 of 3 calls"));
  // An output that exists stays without --force; the dump that is read stays even with it.
  CHECK(contains(run_attnscope(to(out)).err, "already exists (--force replaces it)"));
  for (const fs::path& read : {dump, dump / "rank-1-of-2"}) {
    auto onto = to(read);
    onto.emplace_back("--force");
    const auto kept = run_attnscope(onto);
    CHECK(kept.exit_code == 1);
    CHECK(contains(kept.err, "is what is read, and is not replaced"));
  }
  auto dry = to(folder.path() / "none");
  dry.emplace_back("--dry-run");
  CHECK(contains(run_attnscope(dry).out, "3 calls, 24 heads, "));
  CHECK(!fs::exists(folder.path() / "none"));
}

TEST_CASE("convert --stitch holds a few MiB, whatever the call takes") {
  const TemporaryFolder folder;
  constexpr int64_t kMany = 1 << 17;
  const std::string map = R"([{"name":"tokens","modality":"other","count":)";
  for (int64_t rank = 0; rank < 2; ++rank) {
    const auto path = folder.path() / "dump" / ("rank-" + std::to_string(rank) + "-of-2");
    fs::create_directories(path);
    const Json part{{"rank", rank},
                    {"ranks", 2},
                    {"queries", {{rank * kMany, kMany}}},
                    {"whole", Json::object()}};
    CallFile()
        .version(2)
        .pair({1, 1, kMany, 64}, {1, 1, kMany, 64})
        .fact("queries", map + std::to_string(kMany) + "}]")
        .fact("part", part.dump())
        .write(path / "call.safetensors");
  }
  const std::string out = (folder.path() / "whole.safetensors").string();
  const ProgramResult r =
      run_attnscope({"convert", "--stitch", (folder.path() / "dump").string(), "-o", out});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(fs::file_size(out) > int64_t{128} << 20);
  // A sanitizer holds what was freed for a while.
  if (!sanitized()) CHECK(r.peak_bytes < int64_t{48} << 20);
}

TEST_CASE("convert --stitch takes no option that it would not heed") {
  const TemporaryFolder folder;
  const std::string dump = folder.path().string();
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--steps", "0"}, {"--grid", "1x2x3"}, {"--no-values"}}) {
    std::vector<std::string> words{"convert", "--stitch", dump, "-o", dump + "/x"};
    words.insert(words.end(), option.begin(), option.end());
    const ProgramResult r = run_attnscope(words);
    CHECK(r.exit_code == 2);
    CHECK(contains(r.err, "--stitch joins all that the ranks recorded; " + option.front()));
  }
}
