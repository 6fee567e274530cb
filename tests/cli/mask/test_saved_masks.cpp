#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "io/files/json_types.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ProgramResult mask_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "mask");
  return run_attnscope(arguments);
}

/// The heads of the lab's JSON.
Json lab_heads(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "--quiet"});
  const auto result = mask_run(std::move(arguments));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out)["heads"];
}

/// The numbers that a line tells of a mask, or of the blocks that were saved of it.
Json numbers_of(const Json& head, const std::string& before) {
  Json numbers;
  for (const char* name :
       {"density", "effective_density", "recall", "recall_p05", "recall_sampled", "oracle_recall",
        "oracle_stderr", "effective_oracle_recall", "output_error", "output_error_mean",
        "output_error_p95", "masked_rows", "empty_rows", "sampled_rows"}) {
    numbers[name] = head.at(before + name);
  }
  return numbers;
}

/// A 6x6x8 grid behind 5 words: 293 tokens, more than are sampled, and of no block a multiple.
struct SavedCase {
  AttentionCapture capture{21, 293};
  CallFile file() const {
    CallFile file = capture.file();
    file.fact("grid", "6x6x8").fact("text", "5@start").fact("step", "3").fact("layer", "12");
    return file;
  }
};

/// The planes of a .npy of bool [heads, blocks, blocks], a byte a block.
std::string planes_of(const std::string& path, size_t bytes) {
  const std::string file = read_file(path);
  REQUIRE(file.size() > bytes);
  return file.substr(file.size() - bytes);
}

/// Density and recall of blocks, in double.
std::pair<double, double> measured(const AttentionCapture& c, int64_t head,
                                   const std::string& blocks, int64_t block) {
  const std::vector<double> map = c.weights(head);
  const int64_t n = c.tokens, along = (n + block - 1) / block;
  double kept = 0, mass = 0;
  int64_t rows = 0;
  for (int64_t i = 0; i < n; ++i) {
    double row = 0, total = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double weight = map[static_cast<size_t>(i * n + j)];
      total += weight;
      if (blocks[static_cast<size_t>(i / block * along + j / block)] == 0) continue;
      kept += 1;
      row += weight;
    }
    if (total == 0) continue;
    ++rows;
    mass += row;
  }
  return {kept / static_cast<double>(n * n), mass / static_cast<double>(rows)};
}

}  // namespace

TEST_CASE("what is in a saved file is told, and is what reading it back measures") {
  const TemporaryFolder folder;
  SavedCase c;
  // A mask of the call's own, with a row that has no key.
  std::mt19937_64 random(6);
  AttentionCapture under = c.capture;
  for (int64_t i = 0; i < 293 * 293; ++i)
    under.allowed.push_back(i / 293 != 7 && random() % 4 != 0);
  const std::string plain = folder / "plain.safetensors", own = folder / "own.safetensors";
  c.file().write(plain);
  under.file().fact("grid", "6x6x8").fact("text", "5@start").write(own);
  struct Saved {
    std::string mask;
    std::vector<std::string> options;
    int64_t block;  ///< of the file
    bool exact;     ///< the blocks are the mask, and nothing else
  };
  const std::vector<Saved> cases{
      {"topk:block=64,keep=0.3", {}, 64, false},
      {"topk:block=64,keep=0.3,text=drop", {"--heads", "1-2"}, 64, false},
      {"topp:block=32,p=0.6", {"--heads", "0,3"}, 32, false},
      {"block_causal:48", {}, 48, true},
      {"tiles:size=2x3x4,window=1x1x1", {"--heads", "2"}, 128, false},
      {"tiles:size=2x3x4,window=1x1x1", {"--heads", "2", "--block", "40"}, 40, false},
      {"spatial", {"--heads", "0-1", "--block", "1"}, 1, true},
      {"window:20", {"--block", "16"}, 16, false}};
  for (const std::string& path : {plain, own}) {
    const AttentionCapture& attention = path == plain ? c.capture : under;
    for (const Saved& each : cases) {
      INFO(path << " " << each.mask);
      const std::string file = folder / "kept.npy";
      std::vector<std::string> arguments{path, "--mask", each.mask, "--save", file, "--force"};
      arguments.insert(arguments.end(), each.options.begin(), each.options.end());
      const Json written = lab_heads(arguments);
      // Measures the saved masks of these heads, without a word of the blocks' size.
      std::vector<std::string> again{path, "--mask", file};
      if (!each.options.empty() && each.options.front() == "--heads") {
        again.insert(again.end(), each.options.begin(), each.options.begin() + 2);
      }
      const Json read = lab_heads(again);
      REQUIRE(read.size() == written.size());
      const auto along = static_cast<size_t>((293 + each.block - 1) / each.block);
      const std::string planes = planes_of(file, written.size() * along * along);
      for (size_t i = 0; i < read.size(); ++i) {
        const Json& head = written[i];
        CHECK(head["saved_block"] == each.block);
        CHECK(numbers_of(head, "saved_") == numbers_of(read[i], ""));
        CHECK((numbers_of(head, "saved_") == numbers_of(head, "")) == each.exact);
        CHECK(head["saved_density"].get<double>() >= head["density"].get<double>());
        CHECK(head["saved_recall"].get<double>() >= head["recall"].get<double>() - 1e-6);
        const auto [density, recall] =
            measured(attention, head["head"].get<int64_t>(),
                     planes.substr(i * along * along, along * along), each.block);
        CHECK(head["saved_density"].get<double>() == Approx(density).epsilon(1e-12));
        CHECK(head["saved_recall"].get<double>() == Approx(recall).margin(5e-6));
      }
    }
  }
}

TEST_CASE("a saved mask of cross attention is what reading it back measures") {
  const TemporaryFolder folder;
  const std::string cross = folder / "cross.safetensors";
  CallFile().pair({1, 2, 300, 8}, {1, 2, 37, 8}).fact("grid", "5x6x10").write(cross);
  const std::string file = folder / "kept.npy";
  const Json written = lab_heads({cross, "--mask", "topk:block=16,blocks=1", "--save", file});
  const Json read = lab_heads({cross, "--mask", file});
  REQUIRE(written.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(numbers_of(written[i], "saved_") == numbers_of(read[i], ""));
    CHECK(written[i]["saved_density"] == written[i]["density"]);
  }
}

TEST_CASE("a saved mask says of what its blocks are") {
  const TemporaryFolder folder;
  const SavedCase c;
  const std::string path = folder / "call.safetensors", file = folder / "kept.npy";
  c.file().write(path);
  const auto saved = mask_run(
      {path, "--mask", "topk:block=64,keep=0.3", "--heads", "1,3", "--save", file, "--json"});
  REQUIRE(saved.exit_code == 0);
  const Json rows = Json::parse(saved.out)["heads"];
  const Json facts = Json::parse(read_file(file + ".json"));
  CHECK(facts["format"] == "attnscope-blocks/1");
  CHECK(facts["file"] == "kept.npy");
  CHECK(facts["capture"] == "call.safetensors");
  CHECK(facts["capture_hash"].get<std::string>().size() == 32);
  CHECK(facts["mask"] == "topk:block=64,keep=0.3");
  CHECK(facts["block"] == 64);
  CHECK(facts["order"] == "stored");
  CHECK(facts["queries"] == Json{{"grid", "6x6x8"}, {"text", "5@start"}});
  CHECK(facts["keys"] == facts["queries"]);
  REQUIRE(facts["heads"].size() == 2);
  double density = 0, recall = 0;
  for (size_t i = 0; i < 2; ++i) {
    const Json& head = facts["heads"][i];
    CHECK(head["head"] == (i == 0 ? 1 : 3));
    CHECK(head["step"] == 3);
    CHECK(head["layer"] == 12);
    CHECK(head["batch"] == 0);
    CHECK(head["kind"] == "joint");
    CHECK(head["density"] == rows[i]["saved_density"]);
    CHECK(head["recall"] == rows[i]["saved_recall"]);
    density += head["density"].get<double>() / 2;
    recall += head["recall"].get<double>() / 2;
  }
  CHECK(holds(saved.err, fmt::format("wrote {} (saved as blocks of 64: density {:.4f}, recall "
                                     "{:.4f} over 2 heads)",
                                     file, density, recall)));
  // People see both, one below the other.
  const auto table = mask_run(
      {path, "--mask", "spatial", "--heads", "0", "--quiet", "--save", folder / "other.npy"});
  CHECK(holds(table.out, "\n   0  spatial "));
  CHECK(holds(table.out, "\n   0  saved as blocks of 128  "));
  // Neither file is replaced unasked, but for facts of blocks that are gone.
  std::filesystem::remove(folder / "other.npy");
  CHECK(lab_heads({path, "--mask", "spatial", "--heads", "1", "--save", folder / "other.npy"})
            .size() == 1);
  CHECK(holds(read_file(folder / "other.npy.json"), "\"head\": 1"));
  CHECK(lab_heads({path, "--mask", folder / "other.npy", "--heads", "1"}).size() == 1);
  std::filesystem::remove(folder / "other.npy");
  std::ofstream(folder / "other.npy.json") << "{\"mine\": 1}";
  const auto there =
      mask_run({path, "--mask", "spatial", "--heads", "0", "--save", folder / "other.npy"});
  CHECK(there.exit_code == 1);
  CHECK(holds(there.err, "other.npy.json: already exists"));
  const auto same = mask_run(
      {path, "--mask", "spatial", "--save", folder / "x.npy", "-o", folder / "x.npy.json"});
  CHECK(same.exit_code == 2);
  CHECK(holds(same.err, "--save and -o name the same file"));
}

TEST_CASE("a mask of one head is measured on another only with a line") {
  const TemporaryFolder folder;
  const SavedCase c;
  const std::string path = folder / "call.safetensors", other = folder / "other.safetensors";
  c.file().write(path);
  CallFile next = c.capture.file();
  next.fact("grid", "6x6x8").fact("text", "5@start").fact("step", "3").fact("layer", "13");
  next.write(other);
  const std::string one = folder / "one.npy", two = folder / "two.npy";
  lab_heads({path, "--mask", "topk:block=64,keep=0.3", "--heads", "2", "--save", one});
  lab_heads({path, "--mask", "topk:block=64,keep=0.3", "--heads", "0,2", "--save", two});
  const auto notes = [&](const std::vector<std::string>& arguments) {
    const auto result = mask_run(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    std::string lines;
    for (size_t at = 0; (at = result.err.find("note: --mask ", at)) != std::string::npos;) {
      const size_t end = result.err.find('\n', at);
      lines += result.err.substr(at, end - at + 1);
      at = end;
    }
    return lines;
  };
  CHECK(notes({path, "--mask", one, "--heads", "2"}).empty());
  CHECK(notes({path, "--mask", two, "--heads", "0,2"}).empty());
  CHECK(notes({path, "--mask", two, "--heads", "2"}).empty());
  const std::string of = "note: --mask " + one + ": is the mask of ";
  CHECK(notes({path, "--mask", one, "--heads", "3"}) ==
        of + "step 3 layer 12 joint batch 0 head 2, and is measured on step 3 layer 12 joint "
             "batch 0 head 3\n");
  const std::string more = notes({path, "--mask", one, "--heads", "0-2"});
  CHECK(holds(more, "joint batch 0 head 0, and on 1 other\n"));
  CHECK(holds(notes({other, "--mask", one, "--heads", "2"}),
              of + "capture call.safetensors step 3 layer 12 joint batch 0 head 2, and is "
                   "measured on capture other.safetensors step 3 layer 13"));
  // Of the same name, but another one.
  CallFile renamed = AttentionCapture(22, 293).file();
  std::filesystem::create_directory(folder / "b");
  renamed.fact("grid", "6x6x8").fact("text", "5@start").fact("step", "3").fact("layer", "12");
  renamed.write(folder / "b/call.safetensors");
  CHECK(holds(notes({folder / "b/call.safetensors", "--mask", one, "--heads", "2"}),
              "is the mask of capture call.safetensors step 3"));
  // As many as are selected, in their order: planes 0 and 2 on heads 1 and 3.
  const Json read = lab_heads({path, "--mask", two, "--heads", "1,3"});
  const Json alone = lab_heads({path, "--mask", one, "--heads", "3"});
  CHECK(read[1]["recall"] == alone[0]["recall"]);
  CHECK(holds(notes({path, "--mask", two, "--heads", "1,3"}), ", and on 1 other\n"));
  const auto three = mask_run({path, "--mask", two, "--heads", "1-3"});
  CHECK(three.exit_code == 2);
  CHECK(holds(three.err, "has 2 heads (0, 2), expected 1, 4 or as many as are selected (3)"));
}

TEST_CASE("parts of a plan and trees take the planes of all that are selected") {
  const TemporaryFolder folder;
  const SavedCase c;
  const std::string path = folder / "call.safetensors", two = folder / "two.npy";
  c.file().write(path);
  lab_heads({path, "--mask", "topk:block=64,keep=0.3", "--heads", "0,2", "--save", two});
  std::ofstream(folder / "tree.json") << R"({"or": ["two.npy", "window:3"]})";
  for (const std::string& mask : {two, folder / "tree.json"}) {
    const Json whole = lab_heads({path, "--mask", mask, "--heads", "1,3"});
    REQUIRE(whole.size() == 2);
    for (size_t part = 0; part < 2; ++part) {
      const Json own = lab_heads(
          {path, "--mask", mask, "--heads", "1,3", "--shard", std::to_string(part) + "/2"});
      REQUIRE(own.size() == 1);
      CHECK(own[0] == whole[part]);
    }
  }
  // A tree's blocks are those that all of its parts' are made of.
  const Json again = lab_heads(
      {path, "--mask", folder / "tree.json", "--heads", "0,2", "--save", folder / "tree.npy"});
  CHECK(again[0]["saved_block"] == 64);
  std::ofstream(folder / "both.json") << R"({"or": ["two.npy", "block_causal:48"]})";
  const Json both = lab_heads(
      {path, "--mask", folder / "both.json", "--heads", "0,2", "--save", folder / "both.npy"});
  CHECK(both[0]["saved_block"] == 16);
  CHECK(both[0]["saved_density"] == both[0]["density"]);
}

TEST_CASE("a saved mask knows the token map that its blocks are of") {
  const TemporaryFolder folder;
  const AttentionCapture capture(9, 38);
  const auto write = [&](const std::string& name, const std::string& map) {
    const std::string path = folder / name;
    capture.file().version(2).fact("queries", map).write(path);
    return path;
  };
  const std::string words = R"({"name":"words","modality":"text","count":6})";
  const std::string picture = R"({"name":"ref","modality":"reference","count":8,"grid":[1,2,4]})";
  const std::string video = R"({"name":"video","modality":"video","count":24,"grid":[3,2,4]})";
  const std::string path =
      write("map.safetensors", "[" + words + "," + picture + "," + video + "]");
  const std::string turned =
      write("turned.safetensors", "[" + picture + "," + words + "," + video + "]");
  const std::string file = folder / "kept.npy";
  const Json written =
      lab_heads({path, "--mask", "spatial:text=drop", "--save", file, "--block", "8"});
  const Json read = lab_heads({path, "--mask", file});
  REQUIRE(read.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(numbers_of(written[i], "saved_") == numbers_of(read[i], ""));
    // 14 rows of all keys; of the others all but 6 words and the other frames.
    CHECK(written[i]["density"].get<double>() == Approx((14 * 38 + 24 * 16) / (38.0 * 38)));
  }
  const auto refused = mask_run({turned, "--mask", file});
  INFO(refused.err);
  CHECK(refused.exit_code == 2);
  CHECK(holds(refused.err, "the blocks are of tokens in another order: segments ["));
}

TEST_CASE("block masks that others wrote: as many heads as are selected, and told their block") {
  const TemporaryFolder folder;
  const SavedCase c;
  const std::string path = folder / "call.safetensors", file = folder / "kept.npy";
  c.file().write(path);
  const Json written =
      lab_heads({path, "--mask", "topk:block=64,keep=0.3", "--heads", "0-1", "--save", file});
  std::filesystem::remove(file + ".json");
  const Json read = lab_heads({path, "--mask", file, "--heads", "0-1", "--block", "64"});
  for (size_t i = 0; i < 2; ++i) {
    CHECK(numbers_of(written[i], "saved_") == numbers_of(read[i], ""));
  }
  const auto untold = mask_run({path, "--mask", file, "--heads", "0-1"});
  CHECK(untold.exit_code == 2);
  CHECK(holds(untold.err, "how many tokens is a block? Give --block N"));
  const auto three = mask_run({path, "--mask", file, "--heads", "0-2", "--block", "64"});
  CHECK(three.exit_code == 2);
  CHECK(holds(three.err, "has 2 heads, expected 1, 4 or as many as are selected (3)"));
}

TEST_CASE("facts that contradict the command, the call or the blocks are errors") {
  const TemporaryFolder folder;
  const SavedCase c;
  const std::string path = folder / "call.safetensors", file = folder / "kept.npy";
  c.file().write(path);
  lab_heads({path, "--mask", "topk:block=64,keep=0.3", "--save", file});
  const std::string facts = read_file(file + ".json");
  const auto complaint = [&](const std::vector<std::string>& arguments, int code) {
    const auto result = mask_run(arguments);
    INFO(result.err);
    CHECK(result.exit_code == code);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    return result.err;
  };
  CHECK(holds(complaint({path, "--mask", file, "--block", "128"}, 2),
              "a block is 64 tokens, as " + file + ".json says (got 128)"));
  CHECK(lab_heads({path, "--mask", file, "--block", "64"}).size() == 4);
  std::ofstream(folder / "tree.json") << R"({"and": ["kept.npy", "spatial"]})";
  CHECK(lab_heads({path, "--mask", folder / "tree.json"}).size() == 4);
  std::ofstream(folder / "wrong.json") << R"({"file": "kept.npy", "block": 32})";
  CHECK(holds(complaint({path, "--mask", folder / "wrong.json"}, 2), "a block is 64 tokens"));
  // A capture with these tokens in another order.
  const std::string turned = folder / "turned.safetensors";
  c.capture.file().fact("grid", "6x8x6").fact("text", "5@end").write(turned);
  CHECK(holds(complaint({turned, "--mask", file}, 2),
              "the blocks are of tokens in another order: grid 6x6x8, text 5@start (expected grid "
              "6x8x6, text 5@end)"));
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = facts;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(file + ".json", std::ios::binary) << text;
  };
  edited("\"order\": \"stored\"", "\"order\": \"tiles:2x3x4\"");
  CHECK(holds(complaint({path, "--mask", file}, 2), "in the order tiles:2x3x4 (expected stored)"));
  edited("\"block\": 64", "\"block\": \"64\"");
  CHECK(holds(complaint({path, "--mask", file}, 1), "kept.npy.json: block: is missing or of"));
  edited("attnscope-blocks/1", "attnscope-blocks/9");
  CHECK(holds(complaint({path, "--mask", file}, 1), "expected attnscope-blocks/1"));
  std::ofstream(file + ".json", std::ios::binary) << facts;
  std::string blocks = read_file(file);
  blocks.back() = static_cast<char>(1 - blocks.back());
  std::ofstream(file, std::ios::binary) << blocks;
  CHECK(holds(complaint({path, "--mask", file}, 1), "is of other blocks than kept.npy holds"));
}
