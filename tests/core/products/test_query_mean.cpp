#include "core/products/query_mean.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Two steps of two layers of two heads; values[i][j] = 10·i + j.
QueryVolumes eight_volumes(std::vector<std::vector<float>>& values) {
  QueryVolumes volumes;
  volumes.token_lists = {{}, {"a", "dog"}};
  for (int64_t i = 0; i < 8; ++i) {
    QueryVolume volume;
    volume.step = i / 4;
    volume.layer = i / 2 % 2;
    volume.head = i % 2;
    volume.branch = "cond";
    volume.kind = "joint";
    volume.tokens = 1;
    volume.query = std::array<int64_t, 3>{0, 1, 2};
    volumes.volumes.push_back(volume);
    values.push_back({});
    for (int64_t j = 0; j < 5; ++j) values.back().push_back(static_cast<float>(10 * i + j));
  }
  return volumes;
}

MeanAxes axes_of(const std::vector<std::string>& names) { return parse_mean_axes(names); }

/// The expected means of groups of eight_volumes(), every entry.
std::vector<std::vector<float>> means_of(const std::vector<std::vector<size_t>>& groups) {
  std::vector<std::vector<float>> means;
  for (const std::vector<size_t>& group : groups) {
    double first = 0;
    for (const size_t i : group) first += 10.0 * static_cast<double>(i);
    first /= static_cast<double>(group.size());
    means.push_back({});
    for (int j = 0; j < 5; ++j) means.back().push_back(static_cast<float>(first + j));
  }
  return means;
}

}  // namespace

TEST_CASE("volumes are averaged over the axes that were asked for, every entry") {
  using Groups = std::vector<std::vector<size_t>>;
  const std::vector<std::pair<std::vector<std::string>, Groups>> cases{
      {{"heads"}, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
      {{"layers"}, {{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
      {{"steps", "layers"}, {{0, 2, 4, 6}, {1, 3, 5, 7}}},
      {{"all"}, {{0, 1, 2, 3, 4, 5, 6, 7}}}};
  for (const auto& [names, groups] : cases) {
    INFO(names.front() << " " << names.size());
    std::vector<std::vector<float>> values;
    QueryVolumes volumes = eight_volumes(values);
    const MeanAxes axes = axes_of(names);
    const QueryVolumes planned = averages_of(axes, volumes);
    REQUIRE(planned.volumes.size() == groups.size());
    MemoryBudget budget(1 << 10);
    average_volumes(axes, volumes, values, budget);
    CHECK(values == means_of(groups));
    REQUIRE(volumes.volumes.size() == groups.size());
    CHECK(budget.used() == 0);
    for (size_t g = 0; g < groups.size(); ++g) {
      const QueryVolume& volume = volumes.volumes[g];
      const auto first = static_cast<int64_t>(groups[g].front());
      CHECK(planned.volumes[g].label == volume.label);
      CHECK(volume.averaged == static_cast<int64_t>(groups[g].size()));
      CHECK(volume.step == (axes.steps ? -1 : first / 4));
      CHECK(volume.layer == (axes.layers ? -1 : first / 2 % 2));
      CHECK(volume.head == (axes.heads ? -1 : first % 2));
      CHECK(volume.tokens == 1);
      CHECK(volume.query.has_value());
    }
  }
}

TEST_CASE("a mean says what it is of, and keeps what all members share") {
  std::vector<std::vector<float>> values;
  QueryVolumes volumes = eight_volumes(values);
  volumes.volumes[0].tokens = 0;
  volumes.volumes[5].query = std::array<int64_t, 3>{2, 1, 2};
  volumes.volumes[7].branch = "uncond";
  MemoryBudget budget(1 << 10);
  average_volumes(axes_of({"heads", "layers"}), volumes, values, budget);
  REQUIRE(volumes.volumes.size() == 3);
  CHECK(volumes.volumes[0].label == "step 0 cond joint batch 0 mean over heads, layers (4)");
  CHECK(volumes.volumes[1].label == "step 1 cond joint batch 0 mean over heads, layers (3)");
  CHECK(volumes.volumes[2].label == "step 1 uncond joint batch 0 mean over heads, layers (1)");
  CHECK(volumes.volumes[0].tokens == 0);
  CHECK(volumes.volumes[1].tokens == 1);
  CHECK(volumes.volumes[0].query.has_value());
  CHECK_FALSE(volumes.volumes[1].query.has_value());
  std::vector<std::vector<float>> alone;
  QueryVolumes single = eight_volumes(alone);
  CHECK(refused(
            [&] {
              MemoryBudget none(10);
              average_volumes(axes_of({"heads"}), single, alone, none);
            },
            ErrorCode::resource, {"the mean of the volumes"}) == "");
}

TEST_CASE("axes are read by their names") {
  CHECK(axes_of({}).text() == "none");
  CHECK_FALSE(axes_of({}).any());
  CHECK(axes_of({"steps", "heads"}).text() == "heads, steps");
  CHECK(axes_of({"all"}).text() == "heads, layers, steps");
  CHECK(refused([] { axes_of({"head"}); }, ErrorCode::usage,
                {"--mean head: no such name", "did you mean heads?"}) == "");
}

TEST_CASE("a sequence's values are parted into video and text") {
  const TokenGrid behind = TokenGrid::video(8, {1, 2, 3}, 2, TextPlace::end);
  QueryVolume volume;
  set_values(volume, behind, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(volume.video == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(volume.text == std::vector<float>{6, 7});
  const TokenGrid before = TokenGrid::video(8, {1, 2, 3}, 2, TextPlace::start);
  set_values(volume, before, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(volume.video == std::vector<float>{2, 3, 4, 5, 6, 7});
  CHECK(volume.text == std::vector<float>{0, 1});
}
