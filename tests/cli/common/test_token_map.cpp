// Captures whose token map is stated: what commands make of its segments.
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 56, kHeads = 2;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Part {
  std::string name;
  int64_t begin = 0, end = 0;
};
const std::vector<Part> kParts{{"clip", 0, 4},    {"t5", 4, 10},     {"ref1", 10, 22},
                               {"video", 22, 46}, {"audio", 46, 51}, {"late", 51, 54},
                               {"tail", 54, 56}};

Json map_json() {
  return Json::array(
      {{{"name", "clip"}, {"modality", "text"}, {"count", 4}, {"words", {"a", "dog"}}},
       {{"name", "t5"},
        {"modality", "text"},
        {"count", 6},
        {"start", 4},
        {"valid", {4, 5}},
        {"words", {{"one", "dog", "runs"}, {"a", "cat"}}}},
       {{"name", "ref1"},
        {"modality", "reference"},
        {"count", 12},
        {"grid", {1, 3, 4}},
        {"cell", {1, 16, 16}}},
       {{"name", "video"}, {"modality", "video"}, {"count", 24}, {"grid", {2, 3, 4}}},
       {{"name", "audio"}, {"modality", "audio"}, {"count", 5}},
       {{"name", "late"}, {"modality", "text"}, {"count", 3}},
       {{"name", "tail"}, {"modality", "padding"}, {"count", 2}}});
}

/// Keys that are padding in a batch item.
bool is_padding(int64_t key, int64_t batch) {
  return (key >= 4 + (batch == 0 ? 4 : 5) && key < 10) || key >= 54;
}

ReferenceCall map_call() {
  ReferenceCall call({2, kHeads, kHeads, kTokens, kTokens, 8}, 71);
  call.version(2).fact("branches", R"(["uncond","cond"])").fact("queries", map_json().dump());
  return call;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b) + 1e-6; }

double mass(const std::vector<double>& row, const Part& part) {
  double sum = 0;
  for (int64_t key = part.begin; key < part.end; ++key) sum += row[static_cast<size_t>(key)];
  return sum;
}

}  // namespace

TEST_CASE("numbers of heads go by the segments of a token map") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const ReferenceCall call = map_call();
  call.write(path);
  const Json heads = Json::parse(run_well({"stats", path, "--json"}).out)["heads"];
  REQUIRE(heads.size() == 4);
  for (const Json& head : heads) {
    const auto batch = head["batch"].get<int64_t>(), number = head["head"].get<int64_t>();
    INFO("batch " << batch << " head " << number);
    std::vector<std::vector<double>> rows;
    for (int64_t q = 0; q < kTokens; ++q) rows.push_back(call.row(batch, number, q));
    for (const Part& from : kParts) {
      double sum = 0;
      for (const Part& to : kParts) {
        double expected = 0;
        for (int64_t q = from.begin; q < from.end; ++q) {
          expected +=
              mass(rows[static_cast<size_t>(q)], to) / static_cast<double>(from.end - from.begin);
        }
        const auto got = head["segment_mass"][from.name][to.name].get<double>();
        INFO(from.name << " to " << to.name << ": " << got << ", expected " << expected);
        CHECK(near(got, expected));
        sum += got;
      }
      CHECK(near(sum, 1));
    }
    // Means over the video's rows: all text, with its padding; all that is padding; own frame.
    double text = 0, padding = 0, video = 0, own = 0;
    for (int64_t q = 22; q < 46; ++q) {
      const std::vector<double>& row = rows[static_cast<size_t>(q)];
      text += (mass(row, kParts[0]) + mass(row, kParts[1]) + mass(row, kParts[5])) / 24;
      video += mass(row, kParts[3]) / 24;
      const int64_t frame = 22 + (q - 22) / 12 * 12;
      own += mass(row, {"", frame, frame + 12}) / 24;
      for (int64_t key = 0; key < kTokens; ++key) {
        if (is_padding(key, batch)) padding += row[static_cast<size_t>(key)] / 24;
      }
    }
    CHECK(near(head["text_mass"].get<double>(), text));
    CHECK(near(head["video_mass"].get<double>(), video));
    CHECK(near(head["padding_mass"].get<double>(), padding));
    CHECK(near(head["same_frame_mass"].get<double>(), own));
    // All rows were added up: nothing is an estimate but what was counted on some.
    CHECK_FALSE(head.contains("text_mass_stderr"));
    CHECK_FALSE(head.contains("same_frame_mass_stderr"));
  }
  run_well({"stats", path, "-o", folder / "stats.csv"});
  CHECK(contains(read_file(folder / "stats.csv"), R"("{""clip"":{""clip"":)"));
  run_well({"stats", path, "-o", folder / "stats.h5"});
  const DatasetValues table =
      read_dataset(folder / "stats.h5", "/calls/step0000_layer000_cond_joint/segment_mass");
  CHECK(table.shape == std::vector<int64_t>{1, kHeads, 7, 7});
  CHECK(near(table.values[3 * 7 + 2], heads[2]["segment_mass"]["video"]["ref1"].get<double>()));
  CHECK(read_text_attribute(folder / "stats.h5", "segment_names",
                            "/calls/step0000_layer000_cond_joint/to_segment") ==
        "clip t5 ref1 video audio late tail");
}

TEST_CASE("tokens of any segment are chosen by its name") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors", out = folder / "row.npy";
  const ReferenceCall call = map_call();
  call.write(path);
  const auto video = [&](int64_t query) {
    const std::vector<double> row = call.row(0, 1, query);
    return std::vector<double>(row.begin() + 22, row.begin() + 46);
  };
  const std::vector<std::pair<std::string, int64_t>> queries{
      {"ref1:0,1,2", 16},  {"ref1:1,2", 16}, {"ref1:6", 16}, {"audio:3", 49},
      {"video:1,2,3", 45}, {"1,2,3", 45},    {"tail:0", 54}};
  for (const auto& [query, index] : queries) {
    INFO(query);
    run_well({"query", path, "--batch", "0", "--heads", "1", "--query", query, "-o", out, "--force",
              "--cache", "none"});
    const NpyArray array = read_npy(out);
    REQUIRE(array.shape == std::vector<int64_t>{1, 2, 3, 4});
    CHECK(worst_error(array.values, video(index), 1e-6) < 1e-4);
  }
  const Json box = Json::parse(run_well({"query", path, "--query", "ref1:0,0:2,1", "--query",
                                         "audio:1:3", "--json", "--cache", "none"})
                                   .out);
  CHECK(contains(box["query"].get<std::string>(), "mean of 4 queries"));
  const Json one =
      Json::parse(run_well({"query", path, "--query", "audio:3", "--batch", "0", "--heads", "1",
                            "--json", "--top", "56", "--cache", "none"})
                      .out)["heads"][0];
  CHECK(near(one["segment_mass"]["ref1"].get<double>(), mass(call.row(0, 1, 49), kParts[2])));
  const std::string places = one["top"].dump();
  for (const char* place : {"ref1 (0, 1, 2)", "audio 4", "t5 5 padding", "(1,2,3)", "late 2",
                            "tail 1", "text 1 dog", "text 4 one"}) {
    INFO(place);
    CHECK(contains(places, place) == (std::string(place) != "t5 5 padding"));
  }
  // Values of every segment are in tables and HDF5 files.
  run_well({"query", path, "--index", "49", "--batch", "0", "--heads", "1", "-o",
            folder / "row.csv", "--cache", "none"});
  const std::string csv = read_file(folder / "row.csv");
  CHECK(contains(csv, ",ref1,11,,,,,"));
  CHECK(contains(csv, ",tail,1,,,,,"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + kTokens);
  run_well({"query", path, "--index", "49", "--batch", "0", "--heads", "1", "-o", folder / "row.h5",
            "--cache", "none"});
  const DatasetValues audio = read_dataset(folder / "row.h5", "/segment_audio");
  CHECK(audio.shape == std::vector<int64_t>{1, 5});
  CHECK(near(audio.values[2], call.row(0, 1, 49)[48]));

  // A film is of any segment that has a grid, and of a picture among the queries where it is one.
  run_well({"query", path, "--query", "audio:3", "--segment", "ref1", "--batch", "0", "--heads",
            "1", "-o", out, "--force", "--cache", "none"});
  const NpyArray reference = read_npy(out);
  CHECK(reference.shape == std::vector<int64_t>{1, 1, 3, 4});
  const std::vector<double> whole = call.row(0, 1, 49);
  CHECK(worst_error(reference.values, {whole.begin() + 10, whole.begin() + 22}, 1e-6) < 1e-4);
  run_well({"render", path, "--picture", "filmstrip", "--query", "ref1:1,2", "--segment", "ref1",
            "--heads", "0", "--batch", "0", "-o", folder / "film.png"});
  // The mass of another segment is not called the video's.
  const std::vector<std::string> shown{"query",   path, "--query", "audio:3", "--segment", "ref1",
                                       "--batch", "0",  "--heads", "1",       "--cache",   "none"};
  auto as_json = shown;
  as_json.push_back("--json");
  const auto seen = Json::parse(run_attnscope(as_json).out)["heads"][0];
  CHECK(seen["video_mass"].is_null());
  double of_reference = 0;
  for (size_t j = 10; j < 22; ++j) of_reference += whole[j];
  CHECK(near(seen["segment_mass"]["ref1"].get<double>(), of_reference));
  CHECK(contains(run_attnscope(shown).out, fmt::format("  ref1 {:.4g}\n  frames", of_reference)));
  // One of each, in files of their own.
  const std::vector<std::string> all{"query",   path, "--query", "audio:3", "--segment", "all",
                                     "--batch", "0",  "--heads", "1",       "--cache",   "none"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), all.begin(), all.end());
    return more;
  };
  run_well(with({"-o", folder / "each.npy"}));
  CHECK(read_npy(folder / "each-ref1.npy").values == reference.values);
  CHECK(read_npy(folder / "each-video.npy").shape == std::vector<int64_t>{1, 2, 3, 4});
  CHECK_FALSE(std::filesystem::exists(folder / "each.npy"));
  CHECK_FALSE(std::filesystem::exists(folder / "each-audio.npy"));
  CHECK(contains(run_attnscope(with({})).err, "--segment all: writes a file for each segment"));
  // Where one of them is there, none is written.
  for (const char* there : {"ref1", "video"}) {
    const std::string other = there == std::string("ref1") ? "video" : "ref1";
    std::filesystem::remove(folder / ("each-" + other + ".npy"));
    const auto refused = run_attnscope(with({"-o", folder / "each.npy"}));
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, std::string("each-") + there + ".npy"));
    CHECK_FALSE(std::filesystem::exists(folder / ("each-" + other + ".npy")));
    run_well(with({"-o", folder / "each.npy", "--force"}));
    CHECK(std::filesystem::exists(folder / ("each-" + other + ".npy")));
  }
  const auto no_grid =
      run_attnscope({"query", path, "--index", "0", "--segment", "audio", "-o", folder / "a.npy"});
  CHECK(no_grid.exit_code == 2);
  CHECK(contains(no_grid.err, "have no token grid"));
  const auto unknown = run_attnscope({"query", path, "--index", "0", "--segment", "ref"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "did you mean ref1?"));

  const auto wrong = [&](const std::string& query) {
    const auto result = run_attnscope({"query", path, "--query", query});
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(contains(wrong("ref2:0"), "no segment is called ref2, did you mean ref1?"));
  CHECK(contains(wrong("ref1:12"), "outside the segment (got 12, valid 0 to 11)"));
  CHECK(contains(wrong("audio:0,0,1"), "segment audio has no grid; give audio:N, 0 to 4"));
  CHECK(contains(wrong("video:1,2"), "expected T,Y,X"));
  CHECK(contains(wrong("ref1:"), "is no number or range"));
}

TEST_CASE("domains and words keep to their segments") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors", out = folder / "row.npy";
  const ReferenceCall call = map_call();
  call.write(path);
  run_well({"query", path, "--batch", "1", "--heads", "0", "--index", "0", "--domain", "video",
            "-o", out, "--cache", "none"});
  const auto domain = call.row(1, 0, 0, [](int64_t key) { return key >= 22 && key < 46; });
  CHECK(worst_error(read_npy(out).values, {domain.begin() + 22, domain.begin() + 46}, 1e-6) < 1e-4);
  // The words of both encoders are one text; those of the item.
  const Json found = Json::parse(run_well({"query", path, "--batch", "1", "--heads", "0",
                                           "--text-token", "cat", "--json", "--cache", "none"})
                                     .out);
  CHECK(found["heads"].size() == 1);
  const auto query = Json::parse(run_well({"query", path, "--batch", "1", "--heads", "0", "--index",
                                           "5", "--json", "--cache", "none"})
                                     .out);
  CHECK(near(found["heads"][0]["lse"].get<double>(), query["heads"][0]["lse"].get<double>()));
}

TEST_CASE("the domains of a segment that is shown are its own") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors", out = folder / "row.npy";
  const ReferenceCall call = map_call();
  call.write(path);
  const auto reference = [](int64_t key) { return key >= 10 && key < 22; };
  for (const std::string domain : {"video", "frame"}) {
    INFO(domain);
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), {"query", path, "--batch", "0", "--heads", "1", "--segment", "ref1",
                                 "--domain", domain, "--cache", "none"});
      return more;
    };
    const std::vector<double> whole = call.row(0, 1, 16, reference);
    run_well(with({"--query", "ref1:0,1,2", "-o", out, "--force"}));
    CHECK(worst_error(read_npy(out).values, {whole.begin() + 10, whole.begin() + 22}, 1e-6) < 1e-4);
    const Json head =
        Json::parse(run_well(with({"--query", "ref1:0,1,2", "--json"})).out)["heads"][0];
    CHECK(near(head["frame_mass"][0].get<double>(), 1));
    CHECK(near(head["segment_mass"]["ref1"].get<double>(), 1));
    CHECK(head["segment_mass"]["video"] == 0);
    // Who of the picture attends to its cell 6, among the picture's keys.
    run_well(with({"--query", "ref1:0,1,2", "--reverse", "-o", out, "--force"}));
    std::vector<double> column;
    for (int64_t q = 10; q < 22; ++q) column.push_back(call.row(0, 1, q, reference)[16]);
    CHECK(worst_error(read_npy(out).values, column, 1e-6) < 1e-4);
    const auto outside = run_attnscope(with({"--query", "1,2,3", "--reverse"}));
    CHECK(outside.exit_code == 2);
    CHECK(contains(outside.err, "and has no weight there"));
    // A film that is of zeros has no range.
    const auto film = [&](const std::string& of, const std::string& name) {
      run_well({"render", path, "--picture", "filmstrip", "--query", "ref1:0,1,2", "--segment",
                "ref1", "--domain", of, "--heads", "1", "--batch", "0", "-o", folder / name,
                "--cache", "none"});
      return read_file(folder / name);
    };
    CHECK(film(domain, domain + ".png") != film("text", domain + "-text.png"));
  }
  // The text stays that of the map.
  const Json text = Json::parse(
      run_well({"query", path, "--batch", "0", "--heads", "1", "--segment", "ref1", "--domain",
                "text", "--query", "ref1:0,1,2", "--json", "--cache", "none"})
          .out)["heads"][0];
  CHECK(near(text["text_mass"].get<double>(), 1));
  const auto no_grid = run_attnscope(
      {"query", path, "--index", "0", "--segment", "audio", "--domain", "frame", "--json"});
  CHECK(no_grid.exit_code == 2);
  CHECK(contains(no_grid.err, "no row-major grid in the segment that is shown"));
}

TEST_CASE("in frame_frame segments of text that follow the first at once are the text") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const ReferenceCall call = map_call();
  call.write(path);
  const Json head = Json::parse(
      run_well({"stats", path, "--batch", "1", "--heads", "0", "--json", "--with", "frame_frame"})
          .out)["heads"][0];
  const std::vector<Part> parts{{"text", 0, 10},  {"frame 0", 22, 34}, {"frame 1", 34, 46},
                                {"ref1", 10, 22}, {"audio", 46, 51},   {"late", 51, 54},
                                {"tail", 54, 56}};
  REQUIRE(head["frame_frame"].size() == parts.size());
  for (size_t from = 0; from < parts.size(); ++from) {
    REQUIRE(head["frame_frame"][from].size() == parts.size());
    for (size_t to = 0; to < parts.size(); ++to) {
      double expected = 0;
      for (int64_t q = parts[from].begin; q < parts[from].end; ++q) {
        expected += mass(call.row(1, 0, q), parts[to]) /
                    static_cast<double>(parts[from].end - parts[from].begin);
      }
      INFO(parts[from].name << " to " << parts[to].name);
      CHECK(near(head["frame_frame"][from][to].get<double>(), expected));
    }
  }
  CHECK(head["segment_mass"].size() == kParts.size());
}

TEST_CASE("exports keep the token map") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors", out = folder / "maps.h5";
  map_call().write(path);
  run_well({"export", path, "-o", out});
  run_well({"verify", out});
  const std::string group = "/calls/step0000_layer000_uncond_joint";
  const DatasetValues kinds = read_dataset(out, group + "/key_segment");
  const DatasetValues frames = read_dataset(out, group + "/key_t");
  const DatasetValues columns = read_dataset(out, group + "/key_x");
  REQUIRE(kinds.values.size() == kTokens);
  for (size_t key = 0; key < kTokens; ++key) {
    INFO("key " << key);
    const auto at = static_cast<int64_t>(key);
    const int expected = is_padding(at, 0) ? 2
                         : at < 10         ? 0
                         : at < 22         ? 3
                         : at < 46         ? 1
                         : at < 51         ? 4
                                           : 0;
    CHECK(kinds.values[key] == expected);
    CHECK(frames.values[key] == (at >= 22 && at < 46   ? (at - 22) / 12
                                 : at >= 10 && at < 22 ? 0
                                                       : -1));
    CHECK(columns.values[key] == (at >= 10 && at < 46 ? (at - 10) % 4 : -1));
  }
  CHECK(read_text_attribute(out, "segment_names", group + "/key_segment") == "ref1 audio");
  CHECK(read_text_attribute(out, "flag_meanings", group + "/key_segment") ==
        "text video padding ref1 audio");
  CHECK(read_text_attribute(out, "grid", group) == "none");
  // An export is asked as its capture is.
  const auto ask = [&](const std::string& what) {
    return Json::parse(
        run_well({"query", what, "--query", "ref1:1,2", "--batch", "0", "--heads", "1", "--json"})
            .out)["heads"][0];
  };
  const Json of_export = ask(out), of_capture = ask(path);
  CHECK(std::abs(of_export["segment_mass"]["audio"].get<double>() -
                 of_capture["segment_mass"]["audio"].get<double>()) < 1e-4);
  CHECK(of_export["top"][0]["key"] == of_capture["top"][0]["key"]);
  for (const std::string& what : {out, path}) {
    run_well({"query", what, "--index", "49", "--segment", "ref1", "--batch", "0", "--heads", "1",
              "-o", folder / "row.npy", "--force"});
    const std::vector<double> row = map_call().row(0, 1, 49);
    CHECK(worst_error(read_npy(folder / "row.npy").values, {row.begin() + 10, row.begin() + 22},
                      1e-3) < 2e-3);
  }
  run_well({"render", path, "--picture", "matrix", "--heads", "0", "--batch", "0", "-o",
            folder / "map.png"});
  run_well({"render", out, "--picture", "matrix", "--heads", "0", "--batch", "0", "-o",
            folder / "stored.png"});
}

TEST_CASE("a token map is shown, copied, and dropped for options") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors", copy = folder / "copy.safetensors";
  map_call().write(path);
  const std::string line =
      "clip 4 (text) + t5 6 (text) + ref1 1x3x4 (reference) + video 2x3x4 + audio 5 + late 3 "
      "(text) "
      "+ tail 2 (padding)";
  const auto info = run_well({"info", path, "--no-scan"});
  CHECK(contains(info.out, "queries    " + line));
  CHECK_FALSE(contains(info.out, "keys "));
  const Json facts = Json::parse(run_well({"info", path, "--json", "--no-scan"}).out);
  CHECK(facts["calls"][0]["key_segments"][2]["grid"] == Json::array({1, 3, 4}));
  run_well({"convert", path, "-o", copy, "--batch", "1"});
  const auto copied = run_well({"info", copy, "--no-scan"});
  CHECK(contains(copied.out, line));
  const Json whole = Json::parse(run_well({"stats", path, "--batch", "1", "--json"}).out)["heads"];
  const Json part = Json::parse(run_well({"stats", copy, "--json"}).out)["heads"];
  CHECK(whole[0]["segment_mass"] == part[0]["segment_mass"]);
  CHECK(whole[0]["padding_mass"] == part[0]["padding_mass"]);
  // Words that a copy is given are those of its segments.
  write_bytes(folder / "words.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
  run_well({"convert", path, "-o", copy, "--tokens", folder / "words.txt", "--force"});
  const auto first = Json::parse(
      run_well({"query", copy, "--index", "30", "--json", "--top", "56", "--cache", "none"}).out);
  CHECK(contains(first["heads"][0]["top"].dump(), "text 3 four"));
  CHECK(contains(first["heads"][0]["top"].dump(), "text 5 six"));
  const auto other = run_well({"info", path, "--grid", "2x7x4", "--no-scan"});
  CHECK(contains(other.err, "--grid drops the recorded queries"));
  CHECK(contains(other.out, "grid       2x7x4"));
}

TEST_CASE("queries and keys have maps of their own, with orders and tensors") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors", out = folder / "maps.h5";
  ReferenceCall call({1, 1, 1, 24, 10, 8}, 5);
  const Json queries = Json::array({{{"name", "video"},
                                     {"modality", "video"},
                                     {"count", 24},
                                     {"grid", {1, 4, 6}},
                                     {"order", {{"tiles", {1, 2, 3}}}}}});
  const Json keys = Json::array({{{"name", "sound"},
                                  {"modality", "audio"},
                                  {"count", 6},
                                  {"grid", {6, 1, 1}},
                                  {"order", {{"permutation", "sound_order"}}}},
                                 {{"name", "words"},
                                  {"modality", "text"},
                                  {"count", 4},
                                  {"valid", {{"tensor", "word_flags"}}}}});
  call.version(2)
      .fact("queries", queries.dump())
      .fact("keys", keys.dump())
      .tensor("sound_order", "I64", {6}, raw(std::vector<int64_t>{5, 4, 3, 2, 1, 0}))
      .tensor("word_flags", "BOOL", {4}, std::string("\x01\x00\x01\x00", 4));
  call.write(path);
  const auto info = run_well({"info", path, "--no-scan"});
  CHECK(contains(info.out, "cross attention call"));
  CHECK(contains(info.out, "queries    video 1x4x6 (in tiles of 1x2x3)"));
  CHECK(contains(info.out,
                 "keys       sound 6x1x1 (audio, in an order of its own) + words 4 (text)"));
  CHECK_FALSE(contains(info.out, "not understood"));
  run_well({"export", path, "-o", out});
  const std::string group = "/calls/step0000_layer000_all_cross";
  const DatasetValues y = read_dataset(out, group + "/query_y");
  const DatasetValues x = read_dataset(out, group + "/query_x");
  CHECK(y.values[3] == 1);  // the second row of the first tile
  CHECK(x.values[3] == 0);
  CHECK(x.values[6] == 3);  // the second tile
  const DatasetValues t = read_dataset(out, group + "/key_t");
  CHECK(t.values == std::vector<double>{5, 4, 3, 2, 1, 0, -1, -1, -1, -1});
  const DatasetValues kinds = read_dataset(out, group + "/key_segment");
  CHECK(kinds.values == std::vector<double>{3, 3, 3, 3, 3, 3, 0, 2, 0, 2});
  const Json head = Json::parse(run_well({"stats", path, "--json"}).out)["heads"][0];
  double expected = 0;
  for (int64_t q = 0; q < 24; ++q) expected += mass(call.row(0, 0, q), {"", 0, 6}) / 24;
  CHECK(near(head["segment_mass"]["video"]["sound"].get<double>(), expected));
  CHECK(head["same_frame_mass"].is_null());
  run_well({"convert", path, "-o", folder / "copy.safetensors"});
  CHECK(contains(run_well({"info", folder / "copy.safetensors", "--no-scan"}).out,
                 "in an order of its own"));
  run_well({"query", path, "--query", "video:0,1,0", "--json", "--cache", "none"});
}

TEST_CASE("a token map that cannot be is refused with its place") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const auto refused = [&](const std::string& queries, const std::string& more = "",
                           const std::string& value = "") {
    ReferenceCall call({1, 1, 1, 8, 8, 8}, 5);
    call.version(2).fact("queries", queries);
    if (!more.empty()) call.fact(more, value);
    call.write(path);
    const auto result = run_attnscope({"info", path});
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, path + ": "));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    return result.err;
  };
  const auto one = [&](const std::string& facts) {
    return refused(R"([{"name":"a","modality":"video","count":8)" + facts + "}]");
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {refused("3"), "queries: expected a list of segments (got 3)"},
      {refused("[]"), "queries: expected a list of segments"},
      {refused("[3]"), "queries: [0]: expected an object (got 3)"},
      {refused(R"([{"modality":"video","count":8}])"),
       "[0].name: expected a name, but it is missing"},
      {refused(R"([{"name":"a b","modality":"video","count":8}])"), "[0].name: expected 1 to 64"},
      {refused(R"([{"name":"12","modality":"video","count":8}])"), "not digits alone"},
      {refused(R"([{"name":"a","modality":"film","count":8}])"),
       "[0].modality: expected video, image"},
      {refused(R"([{"name":"a","modality":"video","count":0}])"),
       "[0].count: expected a whole number"},
      {refused(R"([{"name":"a","modality":"video","count":7}])"),
       "queries: has 7 tokens, but q has 8"},
      {refused(
           R"([{"name":"a","modality":"video","count":4},{"name":"a","modality":"text","count":4}])"),
       "[1].name: a is there twice"},
      {refused(
           R"([{"name":"a","modality":"video","count":4},{"name":"b","modality":"text","count":4,"start":5}])"),
       "[1].start: expected 4, where the segment before it ends (got 5)"},
      {one(R"(,"grid":[2,2,3])"),
       "[0].grid: expected three extents that multiply to the segment's 8 tokens"},
      {one(R"(,"grid":[2,4])"), "[0].grid: expected three whole numbers from 1 on"},
      {one(R"(,"order":"spiral","grid":[2,2,2])"), "[0].order: expected \"raster\""},
      {one(R"(,"order":"listed","grid":[2,2,2])"), "[0].order: expected \"raster\""},
      {one(R"(,"order":{"tiles":[1,0,2]},"grid":[2,2,2])"), "[0].order: expected tiles of three"},
      {one(R"(,"order":{"permutation":"p"},"grid":[2,2,2])"), "the file has no tensor p"},
      {one(R"(,"order":{"permutation":"q"},"grid":[2,2,2])"), "the file has no tensor q"},
      {one(R"(,"valid":9)"), "[0].valid: expected 0 to 8 tokens"},
      {one(R"(,"valid":4,"grid":[2,2,2])"), "[0].valid: a segment with a grid has no padding"},
      {one(R"(,"valid":[1,2])"), "valid has 2 numbers, expected 1 or one a batch item"},
      {one(R"(,"words":["a"])"), "segment a is no text and has words"},
      {one(R"(,"whim":1)"), "[0].whim: is no fact of a segment"},
      {refused(
           R"([{"name":"a","modality":"text","count":8,"words":["1","2","3","4","5","6","7","8","9"]}])"),
       "[0].words: has more strings than tokens (got 9, limit 8)"},
      {refused(map_json().dump(), "grid", "1x2x4"), "grid: stands beside the token map"},
      {refused(R"([{"name":"a","modality":"video","count":8}])", "keys", "[]"),
       "keys: expected a list"}};
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK(contains(text, part));
  }
  ReferenceCall keys({1, 1, 1, 8, 8, 8}, 5);
  keys.version(2).fact("keys", map_json().dump()).write(path);
  CHECK(contains(run_attnscope({"info", path}).err, "keys: needs queries beside it"));
  ReferenceCall cross({1, 1, 1, 8, 6, 8}, 5);
  cross.version(2).fact("queries", R"([{"name":"a","modality":"video","count":8}])").write(path);
  CHECK(contains(run_attnscope({"info", path}).err, "expected keys beside it"));
  ReferenceCall first({1, 1, 1, 8, 8, 8}, 5);
  first.fact("queries", R"([{"name":"a","modality":"video","count":8}])").write(path);
  CHECK(contains(run_attnscope({"info", path}).err,
                 "is a fact of the format \"attnscope-capture/2\""));
}
