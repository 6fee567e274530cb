// Calls that blocks and slots tell apart: what names them, selects them and keeps them apart in
// files.
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Place {
  std::string layer, block, slot;
};

/// The attentions of two blocks as LTX-2 has them, several of one kind in a layer, and one call
/// outside the main stack.
const std::vector<Place>& places() {
  static const std::vector<Place> list{{"0", "transformer_blocks.0", "attn1"},
                                       {"0", "transformer_blocks.0", "audio_attn1"},
                                       {"1", "transformer_blocks.1", "attn1"},
                                       {"1", "transformer_blocks.1", "audio_attn1"},
                                       {"", "refiner.0", "attn"}};
  return list;
}

ReferenceCall call_at(size_t place) { return {{1, 2, 2, 12, 12, 8}, 40 + place}; }

/// A capture with a file a place.
std::string write_capture(const TemporaryFolder& folder) {
  const std::string path = folder / "dump";
  std::filesystem::create_directory(path);
  for (size_t i = 0; i < places().size(); ++i) {
    const Place& place = places()[i];
    ReferenceCall call = call_at(i);
    call.version(2)
        .fact("grid", "1x3x4")
        .fact("step", "3")
        .fact("block", place.block)
        .fact("slot", place.slot);
    if (!place.layer.empty()) call.fact("layer", place.layer);
    call.write(path + "/" + std::to_string(i) + ".safetensors");
  }
  return path;
}

/// The row of the first query as `query` computes it, of every selected head.
std::vector<std::vector<float>> first_rows(const std::string& path, const TemporaryFolder& folder,
                                           std::vector<std::string> selection) {
  const std::string out = folder / "row.npy";
  std::vector<std::string> arguments{"query", path,      "--index", "0",   "-o",
                                     out,     "--force", "--cache", "none"};
  arguments.insert(arguments.end(), selection.begin(), selection.end());
  run_well(arguments);
  const NpyArray array = read_npy(out);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < array.values.size(); i += 12) {
    rows.emplace_back(array.values.begin() + static_cast<ptrdiff_t>(i),
                      array.values.begin() + static_cast<ptrdiff_t>(i + 12));
  }
  return rows;
}

}  // namespace

TEST_CASE("blocks and slots select calls and name them") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder);
  const Json all = heads_of({"stats", path});
  REQUIRE(all.size() == 10);
  CHECK(all[0]["block"] == "refiner.0");
  CHECK(all[0]["layer"].is_null());
  CHECK(all[2]["layer"] == 0);
  CHECK(all[2]["slot"] == "attn1");
  CHECK(all[4]["slot"] == "audio_attn1");

  const std::vector<std::pair<std::vector<std::string>, size_t>> selections{
      {{"--slots", "audio_*"}, 2},
      {{"--slots", "attn1"}, 2},
      {{"--blocks", "refiner.*"}, 1},
      {{"--blocks", "*.1", "--slots", "attn1"}, 1},
      {{"--slots", "attn,attn1"}, 3},
      {{"--layers", "0-1"}, 4},  // the call outside the main stack has none
      {{"--layers", "all"}, 5}};
  for (const auto& [options, calls] : selections) {
    std::vector<std::string> arguments{"stats", path};
    arguments.insert(arguments.end(), options.begin(), options.end());
    INFO(options.front() << " " << options[1]);
    CHECK(heads_of(arguments).size() == 2 * calls);
  }

  const auto rows = first_rows(path, folder, {"--slots", "audio_attn1", "--layers", "1"});
  REQUIRE(rows.size() == 2);
  CHECK(worst_error(rows[0], call_at(3).row(0, 0, 0), 1e-6) < 1e-4);
  CHECK(worst_error(rows[1], call_at(3).row(0, 1, 0), 1e-6) < 1e-4);

  const auto wrong = run_attnscope({"stats", path, "--slots", "audio_atn1"});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err,
                 "--slots audio_atn1: not in this capture, did you mean audio_attn1? "
                 "(it has attn, attn1, audio_attn1)"));
  const auto nothing = run_attnscope({"stats", path, "--blocks", "refiner.0", "--slots", "attn1"});
  CHECK(nothing.exit_code == 2);
  CHECK(contains(nothing.err, "the selection leaves no head"));

  const auto table = run_well({"stats", path});
  CHECK(contains(table.out, "refiner.0.attn"));
  const auto info = run_well({"info", path, "--no-scan"});
  CHECK(contains(info.out, "blocks     transformer_blocks.0, transformer_blocks.1"));
  CHECK(contains(info.out, "slot       audio_attn1"));
}

TEST_CASE("exports keep calls of one layer and kind apart") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder), out = folder / "maps.h5";
  run_well({"export", path, "-o", out});
  const std::vector<std::string> names{
      "step0003_layer000_all_self_transformer_blocks.0_attn1",
      "step0003_layer000_all_self_transformer_blocks.0_audio_attn1",
      "step0003_layer001_all_self_transformer_blocks.1_attn1",
      "step0003_layer001_all_self_transformer_blocks.1_audio_attn1",
      "step0003_layernone_all_self_refiner.0_attn"};
  CHECK(group_members(out, "/calls") == names);
  for (size_t i = 0; i < names.size(); ++i) {
    INFO(names[i]);
    CHECK(read_text_attribute(out, "block", "/calls/" + names[i]) == places()[i].block);
    CHECK(read_text_attribute(out, "slot", "/calls/" + names[i]) == places()[i].slot);
    const DatasetValues maps = read_dataset(out, "/calls/" + names[i] + "/weights");
    const std::vector<float> row(maps.values.begin(), maps.values.begin() + 12);
    CHECK(worst_error(row, call_at(i).row(0, 0, 0), 1e-3) < 2e-3);
  }
  run_well({"verify", out});
  // Where nothing would collide, names are what they are without places.
  run_well({"export", path, "--slots", "attn1", "-o", out, "--force"});
  CHECK(group_members(out, "/calls") ==
        std::vector<std::string>{"step0003_layer000_all_self", "step0003_layer001_all_self"});
  // An export names the blocks and slots of its heads as the capture did.
  run_well({"export", path, "-o", out, "--force"});
  const std::string picture = folder / "row.npy";
  run_well({"query", out, "--index", "0", "--slots", "audio_*", "--layers", "1", "-o", picture});
  const std::vector<float> values = read_npy(picture).values;
  const std::vector<float> first(values.begin(), values.begin() + 12);
  CHECK(worst_error(first, call_at(3).row(0, 0, 0), 1e-3) < 2e-3);
  const auto wrong = run_attnscope({"query", out, "--index", "0", "--blocks", "refiners.0"});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "did you mean refiner.0?"));
}

TEST_CASE("tables and numbers keep block and slot through files") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder);
  for (const char* name : {"stats.csv", "stats.json", "stats.h5"}) {
    INFO(name);
    run_well({"stats", path, "-o", folder / name});
  }
  const std::string csv = read_file(folder / "stats.csv");
  CHECK(contains(csv, "step,layer,branch,kind,batch,head,block,slot,class,"));
  CHECK(contains(csv, "3,,,self,0,1,refiner.0,attn,"));
  CHECK(contains(csv, "3,1,,self,0,1,transformer_blocks.1,audio_attn1,"));
  CHECK(group_members(folder / "stats.h5", "/calls").size() == 5);
  // A run that was interrupted knows its heads again.
  run_well({"stats", path, "-o", folder / "stats.h5", "--force", "--resume"});
  run_well({"mask", path, "--mask", "window:2", "-o", folder / "mask.csv"});
  CHECK(contains(read_file(folder / "mask.csv"), "refiner.0,attn,"));
  run_well({"render", folder / "stats.h5", "--picture", "heatmap", "--metric", "entropy", "-o",
            folder / "table.png"});
}

TEST_CASE("a copy of a capture keeps block and slot") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder), copy = folder / "copy";
  run_well({"convert", path, "-o", copy});
  const Json catalogue = Json::parse(read_file(copy + "/capture.json"));
  CHECK(catalogue["format"] == "attnscope-capture/2");
  CHECK(catalogue["calls"].size() == 5);
  CHECK(heads_of({"stats", copy}) == heads_of({"stats", path}));
}

TEST_CASE("format 1 has no blocks, and places are unique and names") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const auto error = [&](const ReferenceCall& call) {
    call.write(path);
    const auto result = run_attnscope({"info", path});
    CHECK(result.exit_code == 1);
    return result.err;
  };
  ReferenceCall one = call_at(0);
  CHECK(contains(error(one.fact("block", "blocks.0")),
                 "block: is a fact of the format \"attnscope-capture/2\" (got "
                 "\"attnscope-capture/1\")"));
  for (const char* bad : {"", ".blocks", "blocks/0", "blocks 0"}) {
    ReferenceCall call = call_at(0);
    INFO(bad);
    CHECK(contains(error(call.version(2).fact("slot", bad)), "is no name"));
  }
  for (const char* file : {"a.safetensors", "b.safetensors"}) {
    ReferenceCall call = call_at(0);
    call.version(2)
        .fact("block", "blocks.0")
        .fact("slot", "attn")
        .fact("layer", file[0] == 'a' ? "0" : "1");
    std::filesystem::create_directory(folder / "two");
    call.write(folder.path() / "two" / file);
  }
  const auto twice = run_attnscope({"info", folder / "two"});
  CHECK(twice.exit_code == 1);
  CHECK(contains(twice.err, "blocks.0.attn, kind self (not recorded: step branch) is also in"));
}
