#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kGroup = "/calls/step0010_layer002_cond_joint/";

// The sample's token grid: 16 text tokens, then 7 x 12 x 16 (see samples/README.md).
struct Grid {
  int64_t text = 0, frames = 0, height = 0, width = 0;
  int64_t tokens() const { return text + frames * height * width; }
  int64_t frame_keys() const { return height * width; }
};

Json run_json(std::vector<std::string> arguments) {
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

Grid sample_grid() {
  const Json info = Json::parse(
      run_attnscope({"stats", sample("moving-shapes"), "--layers", "2", "--heads", "0", "--json",
                     "--with", "frame_frame,offset_kernel,column_mass", "--quiet"})
          .out);
  const Json& head = info["heads"][0];
  Grid grid;
  grid.frames = static_cast<int64_t>(head["frame_frame"].size()) - 1;
  grid.height = (static_cast<int64_t>(head["offset_kernel"][0].size()) + 1) / 2;
  grid.width = (static_cast<int64_t>(head["offset_kernel"][0][0].size()) + 1) / 2;
  grid.text =
      static_cast<int64_t>(head["column_mass"].size()) - grid.frames * grid.height * grid.width;
  return grid;
}

/// Sums by the definitions over one head's exported map.
struct Expected {
  double entropy = 0, max_weight = 0, peak = 0;
  double text = 0, same_frame = 0, same_position = 0, temporal = 0, local = 0;
  double keys_for_90 = 0;
  std::vector<double> columns;
  double offset_zero = 0;
};

Expected from_map(const double* map, const Grid& grid, int64_t band) {
  const int64_t n = grid.tokens();
  Expected e;
  e.columns.assign(static_cast<size_t>(n), 0);
  double video_rows = 0, video_mass = 0, origin = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double* row = map + i * n;
    std::vector<double> sorted(row, row + n);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double entropy = 0, total = 0;
    for (int64_t j = 0; j < n; ++j) {
      e.columns[static_cast<size_t>(j)] += row[j] / static_cast<double>(n);
      total += row[j];
      if (row[j] > 0) entropy -= row[j] * std::log(row[j]);
    }
    e.entropy += entropy / static_cast<double>(n);
    e.max_weight += sorted[0] / static_cast<double>(n);
    e.peak = std::max(e.peak, sorted[0]);
    double sum = 0;
    int64_t count = 0;
    while (sum < 0.9 * total) sum += sorted[static_cast<size_t>(count++)];
    e.keys_for_90 += static_cast<double>(count) / static_cast<double>(n);
    if (i < grid.text) continue;
    ++video_rows;
    const int64_t p = i - grid.text;
    for (int64_t j = 0; j < n; ++j) {
      if (j < grid.text) {
        e.text += row[j];
        continue;
      }
      video_mass += row[j];
      const int64_t k = j - grid.text;
      const int64_t dt = std::abs(k / grid.frame_keys() - p / grid.frame_keys());
      const int64_t dy = std::abs(k / grid.width % grid.height - p / grid.width % grid.height);
      const int64_t dx = std::abs(k % grid.width - p % grid.width);
      if (dt == 0) e.same_frame += row[j];
      if (dt != 0 && dy == 0 && dx == 0) e.same_position += row[j];
      if (dy <= band && dx <= band) e.temporal += row[j];
      if (dt <= 1 && dy <= 2 && dx <= 2) e.local += row[j];
      if (j == i) origin += row[j];
    }
  }
  e.temporal += e.text;
  for (double* sum : {&e.text, &e.same_frame, &e.same_position, &e.temporal, &e.local}) {
    *sum /= video_rows;
  }
  e.offset_zero = origin / video_mass;
  return e;
}

void check_near(const Json& got, double expected, double tolerance) {
  CHECK(std::fabs(got.get<double>() - expected) <= tolerance);
}

}  // namespace

TEST_CASE("stats are what an exported map adds up to", "[numbers]") {
  const TemporaryFolder folder;
  const Grid grid = sample_grid();
  REQUIRE(run_attnscope({"export", sample("moving-shapes"), "--layers", "2", "--dtype", "f32", "-o",
                         folder / "map.h5", "--quiet"})
              .exit_code == 0);
  const auto map = read_dataset(folder / "map.h5", kGroup + "weights");
  REQUIRE(run_attnscope({"export", sample("moving-shapes"), "--layers", "2", "--product", "logits",
                         "--dtype", "f32", "-o", folder / "logits.h5", "--quiet"})
              .exit_code == 0);
  const auto logits = read_dataset(folder / "logits.h5", kGroup + "logits");
  const auto largest_logit = [&](size_t head) {
    const auto first =
        logits.values.begin() + static_cast<int64_t>(head * logits.values.size() / 4);
    return *std::max_element(first, first + static_cast<int64_t>(logits.values.size() / 4));
  };
  const Json stats =
      run_json({"stats", sample("moving-shapes"), "--layers", "2", "--exact", "--json", "--quiet",
                "--with", "column_mass,offset_kernel,frame_frame,entropy_rows"});
  CHECK(stats["format"] == "attnscope-stats/1");
  REQUIRE(stats["heads"].size() == 4);
  const int64_t n = grid.tokens();
  REQUIRE(map.shape == std::vector<int64_t>{1, 4, n, n});
  for (size_t h = 0; h < 4; ++h) {
    const Json& head = stats["heads"][h];
    CHECK(head["head"] == h);
    CHECK(head["rows"] == n);
    const Expected e = from_map(map.values.data() + static_cast<int64_t>(h) * n * n, grid,
                                head["band"].get<int64_t>());
    check_near(head["entropy"], e.entropy, 1e-4);
    check_near(head["effective_keys"], std::exp(e.entropy), 1e-4 * std::exp(e.entropy));
    check_near(head["max_weight"], e.max_weight, 1e-6);
    check_near(head["max_weight_peak"], e.peak, 1e-5);
    check_near(head["max_logit"], largest_logit(h), 1e-4);
    check_near(head["text_mass"], e.text, 1e-5);
    check_near(head["video_mass"], 1 - e.text, 1e-5);
    check_near(head["same_frame_mass"], e.same_frame, 1e-5);
    check_near(head["same_position_mass"], e.same_position, 1e-5);
    check_near(head["spatial_score"], e.same_frame + e.text, 1e-5);
    check_near(head["temporal_score"], e.temporal, 1e-5);
    check_near(head["local_mass"], e.local, 1e-5);
    check_near(head["keys_for_90"], e.keys_for_90, 0.02);
    const auto largest = std::max_element(e.columns.begin(), e.columns.end());
    check_near(head["sink_mass"], *largest, 1e-6);
    CHECK(head["sinks"][0]["key"] == largest - e.columns.begin());
    REQUIRE(head["sinks"].size() == 5);
    for (size_t j = 0; j < e.columns.size(); ++j) {
      check_near(head["column_mass"][j], e.columns[j], 1e-6);
    }
    const auto& kernel = head["offset_kernel"];
    check_near(kernel[static_cast<size_t>(grid.frames - 1)][static_cast<size_t>(grid.height - 1)]
                     [static_cast<size_t>(grid.width - 1)],
               e.offset_zero, 1e-5);
    for (const Json& line : head["frame_frame"]) {
      double sum = 0;
      for (const Json& mass : line) sum += mass.get<double>();
      CHECK(std::fabs(sum - 1) < 1e-5);
    }
    double entropy = 0;
    for (const Json& row : head["entropy_rows"]) entropy += row.get<double>();
    check_near(head["entropy"], entropy / static_cast<double>(n), 1e-9);
  }
}

TEST_CASE("what a call without a grid does not have is null") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  for (const std::string text : {"none", "6@start"}) {
    INFO(text);
    ReferenceCall({1, 1, 1, 20, 20, 8}, 5).fact("text", text).write(path);
    const Json head = run_json({"stats", path, "--json", "--quiet"})["heads"][0];
    for (const char* name : {"video_mass", "same_frame_mass", "same_position_mass", "local_mass"}) {
      INFO(name);
      CHECK(head[name].is_null());
    }
    CHECK(head["text_mass"].is_null() == (text == "none"));
    run_well({"stats", path, "-o", folder / "s.h5", "--force", "--quiet"});
    CHECK(std::isnan(
        read_dataset(folder / "s.h5", "/calls/step0000_layer000_all_self/video_mass").values[0]));
  }
  // A token map says what is video.
  ReferenceCall({1, 1, 1, 20, 20, 8}, 5)
      .version(2)
      .fact("queries", R"([{"name": "t", "modality": "text", "count": 5},)"
                       R"( {"name": "v", "modality": "video", "count": 15}])")
      .write(path);
  CHECK(run_json({"stats", path, "--json", "--quiet"})["heads"][0]["video_mass"].is_number());
}

TEST_CASE("sampled stats come with the error that they have") {
  const Json exact = run_json({"stats", sample("moving-shapes"), "--json", "--quiet"});
  const Json sampled =
      run_json({"stats", sample("moving-shapes"), "--json", "--quiet", "--sample", "128"});
  REQUIRE(sampled["heads"].size() == exact["heads"].size());
  int64_t far = 0, checked = 0;
  for (size_t i = 0; i < sampled["heads"].size(); ++i) {
    const Json& s = sampled["heads"][i];
    CHECK(s["rows"] == 128);
    for (const char* name : {"entropy", "text_mass", "same_frame_mass", "local_mass"}) {
      const double error = s[std::string(name) + "_stderr"].get<double>();
      CHECK(error > 0);
      ++checked;
      const double off = s[name].get<double>() - exact["heads"][i][name].get<double>();
      far += std::fabs(off) > 3 * error ? 1 : 0;
    }
    CHECK_FALSE(exact["heads"][i].contains("entropy_stderr"));
    CHECK(exact["heads"][i].contains("keys_for_90_stderr"));
  }
  // Evenly spread rows are no random sample: a grid's period may agree with theirs.
  CHECK(far <= checked / 10);
}

TEST_CASE("stats files hold the same numbers in every format", "[numbers]") {
  const TemporaryFolder folder;
  const std::vector<std::string> common{"stats", sample("moving-shapes"), "--quiet", "-o"};
  for (const std::string name : {"s.json", "s.csv", "s.h5"}) {
    auto arguments = common;
    arguments.push_back(folder / name);
    if (name != "s.csv") arguments.insert(arguments.end(), {"--with", "frame_frame"});
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  const Json stats = Json::parse(read_file(folder / "s.json"));
  const auto entropy = read_dataset(folder / "s.h5", kGroup + "entropy");
  const auto frames = read_dataset(folder / "s.h5", kGroup + "frame_frame");
  CHECK(entropy.shape == std::vector<int64_t>{1, 4});
  REQUIRE(frames.shape.size() == 4);
  const std::string csv = read_file(folder / "s.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 17);
  CHECK(csv.rfind("step,layer,branch,kind,batch,head,class,entropy,", 0) == 0);
  for (const Json& head : stats["heads"]) {
    CHECK(csv.find(head["entropy"].dump()) != std::string::npos);
    if (head["layer"] != 2) continue;
    const auto h = head["head"].get<size_t>();
    CHECK(entropy.values[h] == head["entropy"].get<double>());
    const auto cells = static_cast<size_t>(frames.shape[2] * frames.shape[3]);
    CHECK(frames.values[h * cells + 1] == head["frame_frame"][0][1].get<double>());
  }
}

TEST_CASE("a call whose keys are counted on all rows stands beside one of more rows") {
  const TemporaryFolder folder, out;
  CallFile()
      .pair({1, 1, 300, 8}, {1, 1, 300, 8})
      .fact("layer", "0")
      .write(folder / "a.safetensors");
  CallFile()
      .pair({1, 1, 100, 8}, {1, 1, 100, 8})
      .fact("layer", "1")
      .write(folder / "b.safetensors");
  write_bytes(folder / "capture.json", R"({"format": "attnscope-capture/1", "calls": [
      {"file": "a.safetensors"}, {"file": "b.safetensors"}]})");
  for (const std::string name : {"s.csv", "s.h5", "s.json"}) {
    const auto result = run_attnscope({"stats", folder / ".", "-o", out / name, "--quiet"});
    INFO(result.err);
    CHECK(result.exit_code == 0);
  }
  const Json stats = Json::parse(read_file(out / "s.json"));
  CHECK(stats["heads"][0].contains("keys_for_50_stderr"));
  CHECK_FALSE(stats["heads"][1].contains("keys_for_50_stderr"));
  const std::string csv = read_file(out / "s.csv");
  std::istringstream lines(csv);
  std::string heading, first, second;
  for (std::string* line : {&heading, &first, &second}) std::getline(lines, *line);
  CHECK(heading.find(",keys_for_50_stderr,") != std::string::npos);
  const auto commas = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  CHECK(commas(first) == commas(heading));
  CHECK(commas(second) == commas(heading));
  const auto members = group_members(out / "s.h5", "/calls/step0000_layer001_all_self");
  CHECK(std::count(members.begin(), members.end(), "keys_for_50") == 1);
  CHECK(std::count(members.begin(), members.end(), "keys_for_50_stderr") == 0);
}

TEST_CASE("stats have the same bytes whatever the memory and threads") {
  const TemporaryFolder folder;
  std::string first;
  int n = 0;
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{}, {"--threads", "1"}, {"--threads", "3", "--memory", "4MiB"}}) {
    const std::string out = folder / (std::to_string(n++) + ".json");
    std::vector<std::string> arguments{"stats",
                                       sample("moving-shapes"),
                                       "--quiet",
                                       "--layers",
                                       "1-2",
                                       "--heads",
                                       "0-2",
                                       "-o",
                                       out,
                                       "--with",
                                       "column_mass,diagonal_profile,offset_kernel,entropy_rows"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    if (first.empty()) first = read_file(out);
    CHECK(read_file(out) == first);
  }
}

TEST_CASE("stats name the class of every synthetic head") {
  const TemporaryFolder folder;
  // Full size where that takes seconds, a smaller grid under a sanitizer.
  std::vector<std::string> synth{"synth", "--heads", "6", "--quiet", "-o", folder / "heads"};
  if (sanitized()) {
    synth.insert(synth.end(), {"--grid", "6x12x16", "--text", "32@start", "--head-dim", "64"});
  } else {
    synth.insert(synth.end(), {"--preset", "cogvideox-5b"});
  }
  REQUIRE(run_attnscope(synth).exit_code == 0);
  const Json stats = run_json({"stats", folder / "heads", "--json", "--quiet"});
  const char* const classes[] = {"spatial", "temporal", "text", "sink", "local", "global"};
  REQUIRE(stats["heads"].size() == 6);
  for (size_t h = 0; h < 6; ++h) {
    INFO(h << " " << stats["heads"][h].dump());
    CHECK(stats["heads"][h]["class"] == classes[h]);
  }
  if (!sanitized()) CHECK(stats["heads"][0]["rows"] == 17776);
}

TEST_CASE("numbers that a call does not define are null") {
  const Json bare =
      run_json({"stats", test_data("minilm/layer00.safetensors"), "--json", "--quiet"});
  for (const Json& head : bare["heads"]) {
    CHECK(head["entropy"].is_number());
    for (const char* name : {"same_frame_mass", "same_position_mass", "spatial_score",
                             "temporal_score", "local_mass", "padding_mass", "band"}) {
      INFO(name);
      CHECK(head[name].is_null());
    }
  }
  const Json sigmoid = run_json({"stats", sample("moving-shapes"), "--layers", "0", "--heads", "0",
                                 "--score", "sigmoid", "--json", "--quiet"});
  CHECK(sigmoid["heads"][0]["entropy"].is_null());
  CHECK(sigmoid["heads"][0]["class"] == "undefined");
  CHECK(sigmoid["heads"][0]["max_weight"].is_number());
}

TEST_CASE("stats that cannot be meant are refused") {
  const std::string capture = sample("moving-shapes");
  const struct {
    std::vector<std::string> arguments;
    std::string text;
  } cases[] = {{{"--with", "frames_frame", "--json"}, "frame_frame"},
               {{"--with", "frame_frame"}, "-o FILE"},
               {{"--sort", "entropie"}, "entropy"},
               {{"-o", "stats.txt"}, ".json, .csv or .h5"},
               {{"--threshold", "sinks=0.2"}, "NAME=X"},
               {{"--threshold", "sink=2"}, "NAME=X"},
               {{"--resume"}, "-o FILE"},
               {{"--memory", "1KiB"}, "smallest"}};
  for (const auto& c : cases) {
    std::vector<std::string> arguments{"stats", capture};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    CHECK((result.exit_code == 2 || c.text == "smallest"));
    CHECK(result.exit_code != 0);
    CHECK(result.err.find(c.text) != std::string::npos);
  }
}

TEST_CASE("a table is CSV on standard output with -o -") {
  const TemporaryFolder folder;
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--layers", "2", "--quiet"});
    return run_attnscope(arguments);
  };
  const std::string capture = sample("moving-shapes");
  REQUIRE(with({"stats", capture, "-o", folder / "t.csv"}).exit_code == 0);
  const auto printed = with({"stats", capture, "-o", "-"});
  CHECK(printed.exit_code == 0);
  CHECK(printed.out == read_file(folder / "t.csv"));
  REQUIRE(with({"mask", capture, "--mask", "temporal", "-o", folder / "m.csv"}).exit_code == 0);
  CHECK(with({"mask", capture, "--mask", "temporal", "--output", "-"}).out ==
        read_file(folder / "m.csv"));
  const auto json = with({"stats", capture, "-o", "-", "--json"});
  CHECK(Json::parse(json.out) == Json::parse(with({"stats", capture, "--json"}).out));
  for (const char* const option : {"--resume", "--force"}) {
    const auto refused = with({"stats", capture, "-o", "-", option});
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("- is standard output") != std::string::npos);
  }
}
