// A token's path over the video: query --track.
#include <cmath>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/cli/query/query_reference.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::vector<std::vector<std::string>> csv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.back() == '\r');
    line.pop_back();
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream fields(line + ",");
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
  }
  return rows;
}

/// One frame of a volume [3, 4, 5] as it is summed up in double.
struct Frame {
  size_t best = 0;
  double weight = 0, mass = 0, y = 0, x = 0;
};

Frame frame_of(const std::vector<double>& row, size_t begin) {
  Frame frame;
  for (size_t i = 0; i < 20; ++i) {
    const double value = row[begin + i];
    if (value > frame.weight) {
      frame.weight = value;
      frame.best = i;
    }
    frame.mass += value;
    frame.y += value * static_cast<double>(i / 5);
    frame.x += value * static_cast<double>(i % 5);
  }
  return frame;
}

}  // namespace

TEST_CASE("a track is the best match and the centre of mass of each frame") {
  const TemporaryFolder folder;
  const ReferenceCall call = joint_call("start", 5);
  const std::string capture = folder / "call.safetensors";
  call.write(capture);
  const auto made = run_attnscope({"query", capture, "--query", "1,2,3", "--track", "--json"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  const Json heads = Json::parse(made.out).at("heads");
  REQUIRE(heads.size() == 4);
  const auto table = run_attnscope(
      {"query", capture, "--query", "1,2,3", "--track", "-o", folder / "path.csv", "--quiet"});
  INFO(table.err);
  REQUIRE(table.exit_code == 0);
  const auto rows = csv_rows(read_file(folder / "path.csv"));
  REQUIRE(rows.size() == 1 + 4 * 3);
  const size_t first = rows[0].size() - 7;
  CHECK(rows[0][first] == "t");
  CHECK(rows[0].back() == "mass");
  for (int64_t head = 0; head < 4; ++head) {
    const auto row = call.row(0, head, 4 + 20 + 2 * 5 + 3);
    const Json& track = heads[static_cast<size_t>(head)].at("track");
    REQUIRE(track.size() == 3);
    for (size_t t = 0; t < 3; ++t) {
      const Frame frame = frame_of(row, 4 + t * 20);
      const Json& point = track[t];
      CHECK(point.at("t") == t);
      CHECK(point.at("best_y") == frame.best / 5);
      CHECK(point.at("best_x") == frame.best % 5);
      CHECK(std::abs(point.at("best_weight").get<double>() - frame.weight) <= 1e-6);
      CHECK(std::abs(point.at("mass").get<double>() - frame.mass) <= 1e-5);
      CHECK(std::abs(point.at("centre_y").get<double>() - frame.y / frame.mass) <= 1e-4);
      CHECK(std::abs(point.at("centre_x").get<double>() - frame.x / frame.mass) <= 1e-4);
      const auto& fields = rows[1 + static_cast<size_t>(head) * 3 + t];
      CHECK(fields[first] == std::to_string(t));
      CHECK(fields[first + 2] == std::to_string(frame.best % 5));
      CHECK(std::abs(std::stod(fields[first + 5]) - frame.x / frame.mass) <= 1e-4);
    }
  }
}

TEST_CASE("a track is drawn into films, printed, and refused where it is none") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"query", capture, "--query", "3,8,7", "--layers", "2", "--heads", "0"});
    return run_attnscope(more);
  };
  for (const char* const ending : {".png", ".gif"}) {
    const std::string plain = folder / ("plain" + std::string(ending)),
                      tracked = folder / ("tracked" + std::string(ending));
    REQUIRE(run({"-o", plain}).exit_code == 0);
    REQUIRE(run({"--track", "-o", tracked}).exit_code == 0);
    CHECK(read_file(plain) != read_file(tracked));
  }
  const auto printed = run({"--track"});
  CHECK(printed.out.find("centre y,x") != std::string::npos);
  const auto array = run({"--track", "-o", folder / "volume.npy"});
  CHECK(array.exit_code == 2);
  CHECK(array.err.find("a track is a table (.csv)") != std::string::npos);
}

TEST_CASE("a track of an export is its capture's, and frames without weights have no match") {
  const TemporaryFolder folder;
  const std::string capture = folder / "call.safetensors";
  joint_call("start", 5).write(capture);
  const std::vector<std::string> masked{"--mask", "block_causal:24", "--quiet"};
  const auto run = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_attnscope(words);
  };
  const auto track = [&](const std::string& input, const std::vector<std::string>& more) {
    const auto result = run({"query", input, "--query", "0,2,3", "--track", "--json"}, more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return Json::parse(result.out).at("heads").at(0).at("track");
  };
  const Json whole = track(capture, masked);
  REQUIRE(whole.size() == 3);
  CHECK(whole[0].at("best_y").is_number());
  CHECK(whole[2].at("best_y").is_null());
  CHECK(whole[2].at("centre_x").is_null());
  CHECK(whole[2].at("mass") == 0);
  REQUIRE(run({"export", capture, "--dtype", "f32", "-o", folder / "maps.h5"}, masked).exit_code ==
          0);
  const Json stored = track(folder / "maps.h5", {});
  for (size_t t = 0; t < 3; ++t) {
    CHECK(stored[t].at("best_x") == whole[t].at("best_x"));
    CHECK(std::abs(stored[t].at("mass").get<double>() - whole[t].at("mass").get<double>()) <= 1e-5);
  }
  const auto table = run_attnscope(
      {"query", folder / "maps.h5", "--query", "0,2,3", "--track", "-o", folder / "t.csv"});
  CHECK(table.exit_code == 0);
  const auto rows = csv_rows(read_file(folder / "t.csv"));
  REQUIRE(rows.size() == 1 + 4 * 3);
  CHECK(rows[3][rows[0].size() - 6].empty());
  CHECK(run({"query", capture, "--query", "0,2,3", "--track", "-o", folder / "f.gif"}, masked)
            .exit_code == 0);
}
