#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/recorded_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Two layers, two branches, four query heads on two key heads, with a mask tensor in one of them.
std::string write_capture(const TemporaryFolder& folder) {
  const auto path = folder.path() / "dump";
  std::filesystem::create_directory(path);
  for (int64_t layer : {2, 5}) {
    RecordedCall call(static_cast<uint64_t>(layer));
    call.layer = layer;
    if (layer == 5) {
      call.mask.assign(static_cast<size_t>(RecordedCall::kTokens * RecordedCall::kTokens), '\1');
      for (size_t i = 2; i < call.mask.size(); i += 5) call.mask[i] = '\0';
      call.mask_fact = "tensor";
    }
    call.attend([&](int64_t i, int64_t j) {
      const auto at = static_cast<size_t>(i * RecordedCall::kTokens + j);
      return call.mask.empty() || call.mask[at] != 0 ? 0 : -1e300;
    });
    CallFile file = call.file();
    file.fact("model", "a model").fact("text_valid", "[3,4]").fact("timestep", "250");
    file.fact("tokens", R"([["a","b","c","d"],["e","f","g","h"]])").fact("head_offset", "8");
    file.write(path / ("layer" + std::to_string(layer) + ".safetensors"));
  }
  return path.string();
}

Json info_of(const std::string& path) {
  const ProgramResult r = run_attnscope({"info", path, "--json"});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return Json::parse(r.out);
}

std::vector<double> weights_of(const TemporaryFolder& folder, std::vector<std::string> selection) {
  const std::string out = (folder.path() / "weights.h5").string();
  selection.insert(selection.begin(), "export");
  selection.insert(selection.end(), {"-o", out, "--dtype", "f32", "--force", "--quiet"});
  const ProgramResult r = run_attnscope(selection);
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return read_dataset(out, "/calls/" + group_members(out, "/calls").front() + "/weights").values;
}

}  // namespace

TEST_CASE("convert cuts calls, heads and branches out of a capture, and they agree") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  const std::string out = (folder.path() / "cut").string();
  const std::vector<std::string> cut{"--layers", "5", "--heads", "0,3", "--branch", "cond"};
  std::vector<std::string> convert{"convert", dump, "-o", out};
  convert.insert(convert.end(), cut.begin(), cut.end());
  const ProgramResult r = run_attnscope(convert);
  CHECK(r.exit_code == 0);
  CHECK(contains(r.err, "convert: 1 call, 2 heads, "));
  CHECK(run_attnscope({"verify", out}).exit_code == 0);
  const auto call = info_of(out)["calls"][0];
  CHECK(call["layer"] == 5);
  CHECK(call["branches"] == std::vector<std::string>{"cond"});
  CHECK(call["heads"] == 2);
  CHECK(call["kv_heads"] == 2);
  CHECK(call["mask"] == "tensor");
  CHECK(call["facts"]["text_valid"]["value"] == std::vector<int>{4});
  CHECK(call["facts"]["tokens"]["value"][0][0] == "e");
  CHECK(call["facts"]["timestep"]["value"] == 250);
  CHECK(call["facts"]["head_offset"]["value"] == 8);
  CHECK(call["facts"]["extra"]["value"]["heads"] == std::vector<int>{8, 11});
  CHECK(call["model"] == "a model");
  std::vector<std::string> chosen{dump};
  chosen.insert(chosen.end(), cut.begin(), cut.end());
  const auto cut_weights = weights_of(folder, {out});
  CHECK(cut_weights.size() == 2 * 28 * 28);
  CHECK(cut_weights == weights_of(folder, chosen));
}

TEST_CASE("a copy of some heads has their scales, biases and sinks; merged parts have the sinks") {
  using Call = RecordedCall;
  const TemporaryFolder folder;
  const std::string whole = (folder.path() / "whole.safetensors").string();
  const std::string out = (folder.path() / "cut.safetensors").string();
  const RecordedCall call(31);
  std::vector<float> relative(static_cast<size_t>(4 * (2 * Call::kTokens - 1)));
  for (size_t i = 0; i < relative.size(); ++i) relative[i] = std::sin(static_cast<float>(i));
  CallFile()
      .version(2)
      .tensor("q", "F32", {Call::kBatch, Call::kHeads, Call::kTokens, Call::kWidth}, raw(call.q))
      .tensor("k", "F32", {Call::kBatch, Call::kKvHeads, Call::kTokens, Call::kWidth}, raw(call.k))
      .tensor("alibi_slopes", "F32", {4}, raw(std::vector<float>{0.5f, 0.25f, 0, 0.125f}))
      .tensor("relative_bias", "F32", {4, 2 * Call::kTokens - 1}, raw(relative))
      .tensor("sinks", "F32", {4}, raw(std::vector<float>{1, 2, 3, 4}))
      .fact("scale", "[0.1, 0.2, 0.15, 0.05]")
      .fact("mask", "window:9,2")
      .write(whole);
  REQUIRE(run_attnscope({"convert", whole, "--heads", "0,3", "-o", out, "--quiet"}).exit_code == 0);
  const auto cut = info_of(out)["calls"][0];
  CHECK(cut["scale"] == std::vector<double>{0.1, 0.05});
  CHECK(cut["mask"] == "window:9,2 & alibi & relative_bias");
  CHECK(weights_of(folder, {out}) == weights_of(folder, {whole, "--heads", "0,3"}));
  CHECK(weights_of(folder, {out}) !=
        weights_of(folder, {whole, "--heads", "0,3", "--scale", "0.1"}));
  CHECK(weights_of(folder, {out}) !=
        weights_of(folder, {whole, "--heads", "0,3", "--relative-bias", "none"}));
  const std::string parts = (folder.path() / "part-{shard}.h5").string();
  for (const std::string shard : {"0/2", "1/2"}) {
    REQUIRE(run_attnscope({"export", whole, "--shard", shard, "-o", parts, "--quiet"}).exit_code ==
            0);
  }
  const auto part = [&](const std::string& name) { return (folder.path() / name).string(); };
  const std::string merged = part("merged.h5");
  REQUIRE(run_attnscope({"merge", part("part-0-of-2.h5"), part("part-1-of-2.h5"), "-o", merged,
                         "--copy", "--quiet"})
              .exit_code == 0);
  std::vector<double> sinks;
  for (const std::string& group : group_members(merged, "/calls")) {
    const auto values = read_dataset(merged, "/calls/" + group + "/sinks").values;
    sinks.insert(sinks.end(), values.begin(), values.end());
  }
  std::sort(sinks.begin(), sinks.end());
  CHECK(sinks == std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4});
}

TEST_CASE("key heads shared by chosen query heads are kept shared where whole groups are taken") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  const std::string out = (folder.path() / "group.safetensors").string();
  REQUIRE(
      run_attnscope({"convert", dump, "--layers", "2", "--heads", "2-3", "-o", out}).exit_code ==
      0);
  const auto call = info_of(out)["calls"][0];
  CHECK(call["heads"] == 2);
  CHECK(call["kv_heads"] == 1);
  CHECK(call["facts"]["head_offset"]["value"] == 10);
  CHECK(run_attnscope({"verify", out}).exit_code == 0);
  // Three heads of two groups: keys once for each, and said.
  const std::string three = (folder.path() / "three.safetensors").string();
  const ProgramResult r =
      run_attnscope({"convert", dump, "--layers", "2", "--heads", "1-3", "-o", three});
  CHECK(contains(r.err, "the chosen heads share keys"));
  CHECK(info_of(three)["calls"][0]["kv_heads"] == 3);
  CHECK(run_attnscope({"verify", three}).exit_code == 0);
}

TEST_CASE("convert records tokens and pictures that were missing") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  std::ofstream(folder.path() / "tokens.txt") << "one\ntwo\nthree\n";
  const auto pictures = folder.path() / "pictures";
  std::filesystem::create_directory(pictures);
  for (int i : {0, 1, 2, 10, 11}) {
    std::filesystem::copy_file(sample("moving-shapes") + "/frame0.png",
                               pictures / ("f" + std::to_string(i) + ".png"));
  }
  std::ofstream(pictures / "f10.png", std::ios::app) << "marked";
  const std::string out = (folder.path() / "complete").string();
  std::vector<std::string> convert{
      "convert",         dump, "--tokens", (folder.path() / "tokens.txt").string(), "--frames",
      pictures.string(), "-o", out};
  // Five pictures of a video of two latent frames: the first, and the first of the other four.
  CHECK(run_attnscope(convert).exit_code == 0);
  const auto info = info_of(out);
  CHECK(info["frames"] == 2);
  CHECK(info["calls"][0]["facts"]["tokens"]["value"] ==
        std::vector<std::string>{"one", "two", "three"});
  const auto catalogue = Json::parse(read_file(std::filesystem::path(out) / "capture.json"));
  CHECK(catalogue["frames"][1]["t"] == 1);
  CHECK(read_file(std::filesystem::path(out) / "frame0001.png") == read_file(pictures / "f1.png"));
  // It may be replaced, pictures and all.
  CHECK(run_attnscope(convert).exit_code == 1);
  convert.emplace_back("--force");
  CHECK(run_attnscope(convert).exit_code == 0);
  std::filesystem::remove(pictures / "f11.png");
  convert.back() = "--force";
  std::filesystem::remove(pictures / "f0.png");
  std::filesystem::remove(pictures / "f1.png");
  std::filesystem::remove(pictures / "f2.png");
  const ProgramResult few = run_attnscope(convert);
  CHECK(few.exit_code == 2);
  CHECK(contains(few.err, "has 1 .png files; expected 2"));
}

TEST_CASE("convert leaves values out when asked, and prints sizes without writing") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  const std::string out = (folder.path() / "half").string();
  const ProgramResult dry = run_attnscope({"convert", dump, "--no-values", "-o", out, "--dry-run"});
  CHECK(dry.exit_code == 0);
  CHECK(dry.out == "2 calls, 16 heads, 168.77 KiB\n");
  CHECK_FALSE(std::filesystem::exists(out));
  REQUIRE(run_attnscope({"convert", dump, "--no-values", "-o", out}).exit_code == 0);
  CHECK(contains(run_attnscope({"verify", out}).out, "nothing recorded to check against"));
}

TEST_CASE("convert refuses what a capture cannot say, and its own input") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder);
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& part) {
    more.insert(more.begin(), {"convert", dump});
    const ProgramResult r = run_attnscope(more);
    INFO(r.err);
    CHECK(r.exit_code == code);
    CHECK(contains(r.err, part));
  };
  const std::string out = (folder.path() / "out").string();
  refused({"-o", out + ".safetensors"}, 2, "holds one call, and 2 are selected");
  refused({"-o", out, "--mask", "window:3"}, 2, "its mask is window:3, and a capture records none");
  // Packed sequences are hidden from each other by a mask that is no fact either.
  const std::string packed = (folder.path() / "packed.safetensors").string();
  CallFile()
      .pair({1, 2, 6, 8}, {1, 2, 6, 8})
      .tensor("cu_seqlens", "I64", {3}, raw(std::vector<int64_t>{0, 2, 6}))
      .write(packed);
  const ProgramResult lost = run_attnscope({"convert", packed, "-o", out});
  CHECK(lost.exit_code == 2);
  CHECK(contains(lost.err, "its mask is segments"));
  refused({"-o", out, "--score", "sigmoid"}, 2, "is not recorded; give it to");
  refused({"-o", out, "--layers", "9"}, 2, "--layers");
  refused({"-o", dump, "--force"}, 1, "is what is read");
  std::ofstream(folder.path() / "many.json") << R"(["a","b","c","d","e"])";
  refused({"-o", out, "--tokens", (folder.path() / "many.json").string()}, 2, "has 5 tokens, and");
  std::ofstream(folder.path() / "bad.json") << R"(["a",3])";
  refused({"-o", out, "--tokens", (folder.path() / "bad.json").string()}, 1,
          "entry 1: expected a string");
  refused({"-o", out, "--frames", (folder.path() / "none").string()}, 1, "cannot be read");
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a copy in one file says that it leaves the pictures behind") {
  const TemporaryFolder folder;
  const std::string out = folder / "call.safetensors", copy = folder / "copy";
  const std::string from = sample("moving-shapes");
  const ProgramResult one = run_attnscope({"convert", from, "--layers", "2", "-o", out});
  CHECK(one.exit_code == 0);
  CHECK(contains(one.err, "not carried over: 7 pictures of the video, which only a folder holds"));
  const ProgramResult all = run_attnscope({"convert", from, "--layers", "2", "-o", copy});
  CHECK(all.exit_code == 0);
  CHECK_FALSE(contains(all.err, "not carried over"));
  // One that capture.json lists and that is gone.
  std::filesystem::remove(std::filesystem::path(copy) / "frame0001.png");
  const ProgramResult less = run_attnscope({"convert", copy, "-o", folder / "less"});
  CHECK(less.exit_code == 0);
  CHECK(contains(less.err, "frame0001.png, which is missing"));
}

TEST_CASE("convert and synth say in JSON what they write, or would") {
  const TemporaryFolder folder;
  const std::string small = folder / "small", copy = folder / "copy";
  std::vector<std::string> synth{"synth",   "--grid",        "4x4x4",    "--text", "16@start",
                                 "--kinds", "temporal,text", "--layers", "3",      "-o",
                                 small,     "--json",        "--quiet"};
  const auto run = [](std::vector<std::string> arguments, bool dry) {
    if (dry) arguments.push_back("--dry-run");
    const ProgramResult result = run_attnscope(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return Json::parse(result.out);
  };
  for (const bool dry : {true, false}) {
    Json json = run(synth, dry);
    CHECK(json["format"] == "attnscope-synth/1");
    CHECK(json["out"] == small);
    CHECK(json["written"] == !dry);
    CHECK(json["calls"] == 3);
    CHECK(json["heads"] == 6);
    CHECK(json["tokens"] == 80);
    CHECK(json["grid"] == "4x4x4");
    CHECK(json["kinds"] == Json{"temporal", "text"});
    // q and k of 6 heads of 80 tokens, 64 channels, 2 bytes.
    CHECK(json["payload_bytes"] == 2 * 6 * 80 * 64 * 2);
    CHECK(std::filesystem::exists(small) == !dry);
  }
  for (const bool dry : {true, false}) {
    const Json json =
        run({"convert", small, "--layers", "1-2", "--heads", "0", "-o", copy, "--json", "--quiet"},
            dry);
    CHECK(json["format"] == "attnscope-convert/1");
    CHECK(json["out"] == copy);
    CHECK(json["written"] == !dry);
    CHECK(json["calls"] == 2);
    CHECK(json["heads"] == 2);
    CHECK(json["payload_bytes"] == 2 * 2 * 80 * 64 * 2);
    CHECK(std::filesystem::exists(copy) == !dry);
  }
}
