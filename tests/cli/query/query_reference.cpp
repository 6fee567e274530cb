#include "tests/cli/query/query_reference.h"

#include <functional>

#include "tests/support/catch.h"
#include "tests/support/program.h"

namespace attnscope::test {
namespace {

/// Which keys belong to the domain of key `chosen`.
std::function<bool(int64_t)> domain_of(const std::string& name, int64_t chosen, int64_t video,
                                       int64_t video_count) {
  const auto is_video = [=](int64_t j) { return j >= video && j < video + video_count; };
  if (name == "video") return is_video;
  if (name == "text") return [=](int64_t j) { return !is_video(j); };
  if (name != "frame") return {};
  const int64_t frame = (chosen - video) / 20;
  return [=](int64_t j) { return is_video(j) && (j - video) / 20 == frame; };
}

}  // namespace

ReferenceCall joint_call(const std::string& place, uint64_t seed) {
  ReferenceCall call({1, 4, 2, 64, 64, 8}, seed);
  call.fact("grid", "3x4x5").fact("text", "4@" + place);
  call.fact("tokens", R"(["▁a","▁dra","gon",""])");
  return call;
}

std::vector<double> columns(const ReferenceCall& call, const Keys& keys, const std::string& domain,
                            int64_t video, int64_t video_count, bool weigh) {
  std::vector<double> values;
  for (int64_t head = 0; head < call.shape().heads; ++head) {
    for (int64_t i = video; i < video + video_count; ++i) {
      double sum = 0;
      for (const auto& [key, share] : keys) {
        const auto row = call.row(0, head, i, domain_of(domain, key, video, video_count));
        const double norm = weigh ? call.value_norm(0, head, key) : 1;
        sum += share * norm * row[static_cast<size_t>(key)];
      }
      values.push_back(sum);
    }
  }
  return values;
}

std::vector<float> query_npy(std::vector<std::string> arguments, const TemporaryFolder& folder) {
  arguments.insert(arguments.begin(), "query");
  arguments.insert(arguments.end(),
                   {"-o", folder / "out.npy", "--force", "--quiet", "--cache", "none"});
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return read_npy(folder / "out.npy").values;
}

}  // namespace attnscope::test
