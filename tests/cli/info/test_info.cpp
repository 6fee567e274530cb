#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// f16 zeros of this shape, "1, 4, 96, 64".
void write_zeros(const std::string& path, const std::string& shape, int64_t count) {
  write_bytes(path,
              npy_bytes("{'descr': '<f2', 'fortran_order': False, 'shape': (" + shape + "), }\n",
                        std::string(static_cast<size_t>(2 * count), '\0')));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The guess about `fact` of a call; null where there is none.
Json guess_of(const Json& call, const std::string& fact) {
  for (const Json& guess : call["guesses"]) {
    if (guess["fact"] == fact) return guess;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("info tells what names said, and what they left out") {
  const TemporaryFolder folder;
  for (const std::string stem : {"It0_L2", "It0_L11", "It5_L2", "It5_L11"}) {
    for (const std::string end : {"_H0_q", "_H0_k", "_H1_q", "_H1_k"}) {
      write_zeros(folder / ("cog_" + stem + end + ".npy"), "256, 8", 256 * 8);
    }
  }
  for (int i = 0; i < 7; ++i) write_bytes(folder / ("note" + std::to_string(i)), "x");
  const std::string pattern = "{name}_It{step}_L{layer}_H{head}_{q|k|v}.npy";
  const auto text = run_attnscope({"info", folder.path()});
  INFO(text.out << text.err);
  REQUIRE(text.exit_code == 0);
  CHECK(contains(text.out, "pattern: " + pattern +
                               " (guessed; --pattern overrides): 16 files, steps 0, 5, layers 2, "
                               "11, heads 0-1\n"));
  CHECK(contains(text.out, "left out: 7 files: note0, note1, note2, note3, note4 …\n"));
  CHECK(!contains(text.out, "note5"));
  const Json info = Json::parse(run_attnscope({"info", folder.path(), "--json"}).out);
  const Json& named = info["named_folder"];
  CHECK(named["pattern"] == pattern);
  CHECK(named["pattern_given"] == false);
  CHECK(named["files"] == 16);
  CHECK(named["steps"] == Json({0, 5}));
  CHECK(named["layers"] == Json({2, 11}));
  CHECK(named["heads"] == Json({0, 1}));
  CHECK(named["left_out"].size() == 7);
  CHECK(info["command"].is_null());
  REQUIRE(info["calls"].size() == 4);
  const Json step = guess_of(info["calls"][3], "step");
  CHECK(step["value"] == 5);
  CHECK(step["from"] == "the file's name, as " + pattern);
}

TEST_CASE("a preset with history states a token map, where it is named and where it is guessed") {
  const TemporaryFolder folder;
  for (const std::string name : {"q", "k"}) {
    write_zeros(folder / (name + ".npy"), "1, 1, 11040, 128", 11040 * 128);
  }
  const std::vector<std::string> input{"info",           "--q",   folder / "q.npy", "--k",
                                       folder / "k.npy", "--json"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = input;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_attnscope(arguments);
  };
  for (const auto& result : {with({"--preset", "helios"}), with({})}) {
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const Json call = Json::parse(result.out)["calls"][0];
    const Json& segments = call["query_segments"];
    REQUIRE(segments.size() == 5);
    CHECK(segments[0]["name"] == "history_long");
    CHECK(segments[0]["cell"] == Json({16, 64, 64}));
    CHECK(segments[4]["name"] == "video");
    CHECK(segments[4]["first_frame"] == 20);
    CHECK(call["presets"] == Json({"helios"}));
    const auto command = Json::parse(result.out)["command"].get<std::string>();
    CHECK(contains(command, " --preset helios --scale "));
    CHECK_FALSE(contains(command, "--grid"));
  }
  CHECK(contains(with({}).err, "guessed a token map from 11040 tokens of head dimension 128"));
  const auto both = with({"--preset", "helios", "--grid", "9x24x40"});
  CHECK(both.exit_code == 2);
  CHECK(contains(both.err, "give --preset alone"));
}

TEST_CASE("info tells each guess about bare tensors, and the command that says them all") {
  const TemporaryFolder folder;
  // The length of an LTX-Video sequence.
  for (const std::string name : {"q", "k"}) {
    write_zeros(folder / (name + ".npy"), "1, 7392, 2, 64", 7392 * 2 * 64);
  }
  const std::vector<std::string> input{"--q", folder / "q.npy", "--k", folder / "k.npy"};
  std::vector<std::string> arguments{"info"};
  arguments.insert(arguments.end(), input.begin(), input.end());
  const auto text = run_attnscope(arguments);
  INFO(text.out << text.err);
  REQUIRE(text.exit_code == 0);
  CHECK(contains(text.out, "fits       ltx-video (21x16x22, text none)\n"));
  CHECK(contains(text.out, "guessed    layout bshd, from: a preset's token count\n"));
  CHECK(contains(text.out,
                 "guessed    grid 21x16x22, from: 7392 tokens of head dimension 64, as in the "
                 "preset ltx-video\n"));
  CHECK(contains(text.out, "guessed    scale 0.125, from: 1/sqrt(64), the head dimension\n"));
  CHECK(contains(text.out, "guessed    kind self, from: as many queries as keys\n"));
  arguments.emplace_back("--json");
  const Json info = Json::parse(run_attnscope(arguments).out);
  const Json& call = info["calls"][0];
  CHECK(call["presets"] == Json({"ltx-video"}));
  CHECK(call["fits"] ==
        Json::array({{{"name", "ltx-video"}, {"grid", "21x16x22"}, {"text", "none"}}}));
  CHECK(guess_of(call, "layout")["value"] == "bshd");
  CHECK(guess_of(call, "scale")["value"] == 0.125);
  CHECK(info["named_folder"].is_null());

  // Pasted, it leaves nothing to guess of what an option can say.
  const std::string command = info["command"].get<std::string>();
  REQUIRE(command.rfind("attnscope view ", 0) == 0);
  CHECK(contains(text.out, command));
  std::istringstream words(command.substr(std::string("attnscope view ").size()));
  std::vector<std::string> pasted{"info", "--json"};
  for (std::string word; words >> word;) pasted.push_back(word);
  const Json again = Json::parse(run_attnscope(pasted).out);
  for (const char* fact : {"layout", "grid", "text", "scale", "mask"}) {
    INFO(fact);
    CHECK(guess_of(again["calls"][0], fact).is_null());
    CHECK(again["calls"][0]["facts"][fact]["value"].dump().size() > 0);
  }
  CHECK(again["calls"][0]["grid"] == "21x16x22");
  CHECK(again["calls"][0]["queries"] == 7392);
}

TEST_CASE("info says what is taken from results, and convert keeps it") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& place,
                         const std::string& minus) {
    CallFile call = CallFile().version(2).pair({1, 4, 2, 4}, {1, 4, 2, 4}).fact("slot", place);
    call.fact("block", "blocks." + name).fact("layer", name);
    if (!minus.empty()) call.fact("minus", minus);
    call.write(folder / ("dump/" + place + name + ".safetensors"));
  };
  const std::string dump = folder / "dump";
  std::filesystem::create_directory(dump);
  write("0", "attn", R"({"slot":"attn.2","factor":0.25})");
  write("1", "attn", R"({"slot":"attn.2","factor":0.5})");
  write("0", "attn.2", "");
  write("0", "halves", R"({"slot":"halves","factor":0.5,"heads":2})");
  const auto text = run_attnscope({"info", dump});
  INFO(text.out << text.err);
  REQUIRE(text.exit_code == 0);
  CHECK(contains(text.out,
                 "minus      0.25 to 0.5 times the result of attn.2 is taken from this one's\n"));
  CHECK(contains(text.out,
                 "minus      0.5 times the result of head h + 2 of halves is taken from that of "
                 "head h, for h < 2\n"));
  CHECK_FALSE(contains(text.out, "not understood"));
  const std::string out = folder / "copy";
  const auto copy = run_attnscope({"convert", dump, "-o", out, "--heads", "1,3"});
  INFO(copy.err);
  REQUIRE(copy.exit_code == 0);
  for (const std::string& path : {dump, out}) {
    const Json info = Json::parse(run_attnscope({"info", path, "--json"}).out);
    REQUIRE(info["calls"].size() == 4);
    size_t found = 0;
    for (const Json& call : info["calls"]) {
      if (call["slot"] == "attn.2") {
        CHECK_FALSE(call.contains("minus"));
        continue;
      }
      ++found;
      const bool halves = call["slot"] == "halves";
      CHECK(call["minus"]["slot"] == (halves ? "halves" : "attn.2"));
      CHECK(call["minus"]["factor"] == (call["layer"] == 0 && !halves ? 0.25 : 0.5));
      CHECK(call["minus"].contains("heads") == halves);
      CHECK(call["minus"] == call["facts"]["minus"]["value"]);
    }
    CHECK(found == 3);
  }
}

TEST_CASE("info finds what is not finite in any row of q and k") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  for (const std::string name : {"q", "k"}) {
    std::vector<float> values(1 * 2 * 40 * 4, 1.0f);
    values[4 * (40 + 33) + 2] = std::numeric_limits<float>::quiet_NaN();
    const std::string bad = raw(values), good(bad.size(), '\0');
    CallFile()
        .tensor("q", "F32", {1, 2, 40, 4}, name == "q" ? bad : good)
        .tensor("k", "F32", {1, 2, 40, 4}, name == "k" ? bad : good)
        .write(path);
    const auto text = run_attnscope({"info", path});
    INFO(text.out);
    CHECK(text.exit_code == 1);
    CHECK(contains(text.err,
                   "tensor " + name + ": batch 0, head 1, token 33, channel 2 is NaN (expected"));
    CHECK_FALSE(contains(text.out, "finite ("));
  }
}
