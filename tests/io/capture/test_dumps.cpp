#include "io/capture/capture.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string dump(const std::string& name) { return project_folder() + "/tests/data/dumps/" + name; }

/// All of a tensor in [B, H, S, d], as floats.
std::vector<float> head_values(const HeadTensor& tensor) {
  std::vector<float> values;
  std::vector<std::byte> rows(static_cast<size_t>(tensor.tokens() * tensor.row_bytes()));
  std::vector<float> head(static_cast<size_t>(tensor.tokens() * tensor.width()));
  for (int64_t b = 0; b < tensor.batch(); ++b) {
    for (int64_t h = 0; h < tensor.heads(); ++h) {
      tensor.read_rows(b, h, {0, tensor.tokens()}, rows.data());
      to_floats(tensor.dtype(), rows.data(), static_cast<int64_t>(head.size()), head.data());
      values.insert(values.end(), head.begin(), head.end());
    }
  }
  return values;
}

}  // namespace

TEST_CASE("dumps of one call in every form open as captures with the same values") {
  const Capture expected = Capture::open(dump("expected.safetensors"));
  const AttentionProblem& truth = *expected.calls().at(0).problem;
  const std::vector<float> q = head_values(truth.q());
  const std::vector<float> k = head_values(truth.k());
  for (const std::string name :
       {"attn.pt", "views.pt", "qk.npz", "qk_deflated.npz", "qk.h5", "flash_bshd.safetensors"}) {
    INFO(name);
    const Capture capture = Capture::open(dump(name));
    REQUIRE(capture.calls().size() == 1);
    const CallEntry& call = capture.calls()[0];
    CHECK(call.problem->num_heads() == 2);
    CHECK(head_values(call.problem->q()) == q);
    CHECK(head_values(call.problem->k()) == k);
    if (name != "views.pt") CHECK(call.id.layer == 2);
    if (name == "views.pt" || name == "flash_bshd.safetensors") CHECK(call.id.step == 10);
    if (name == "attn.pt") CHECK(call.timestep == 750.0);
    if (name == "qk_deflated.npz") {
      CHECK(call.unknown_keys == std::vector<std::string>{"tensor note"});
    }
    if (name == "attn.pt" || name == "views.pt") {
      CHECK(head_values(call.problem->v()) == head_values(truth.v()));
    }
  }
  const std::string pair = dump("pair.pth");
  const Capture bare = Capture::from_tensors({pair + ":0", pair + ":1", ""}, {});
  CHECK(head_values(bare.calls()[0].problem->q()) == q);
  CHECK(head_values(bare.calls()[0].problem->k()) == k);
}

TEST_CASE("a file whose q and k cannot be told says how to name them") {
  const auto error = [](const std::string& name) {
    return thrown_text(ErrorCode::file, [&] { Capture::open(dump(name)); });
  };
  CHECK(error("pair.pth").find("--q " + dump("pair.pth") + ":KEY") != std::string::npos);
  CHECK(error("single.pt").find("one bare tensor") != std::string::npos);
  CHECK(error("legacy.pt").find("old torch.save") != std::string::npos);
}
