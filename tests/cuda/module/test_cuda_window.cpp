// The window from end to end on the CUDA backend: the module that it loads runs on the emulation,
// and writes to the textures of a real OpenGL.
#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/project_paths.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope::test;

TEST_CASE("a window on an emulated device has the picture of the cpu") {
  if (!can_use_cuda_module() || !can_open_windows()) return;
  const TemporaryFolder folder;
  ReferenceCall({.queries = 2300, .keys = 2300, .width = 16}, 5, false)
      .write(folder / "call.safetensors");
  setenv("ATTNSCOPE_CUDA_MODULE", cuda_test_file("attnscope_emulated_module.so").c_str(), 1);
  for (const std::string backend : {"cuda", "cpu"}) {
    // Which way proves the faster one is for the machine to say.
    const std::string way = backend == "cpu" ? "staging" : "measuring";
    const WindowResult result =
        run_window(folder.path().string(), {"call.safetensors", "--backend", backend},
                   "wait picture\nexpect upload == " + way +
                       "\nzoom 100 400 200 500\nwait exact\nwait idle\nexpect level == 0\nshot " +
                       backend + ".png\n");
    INFO(backend << "\n" << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.err.find("through the host") == std::string::npos);
  }
  unsetenv("ATTNSCOPE_CUDA_MODULE");
  const Picture got = read_png(folder / "cuda.png");
  const Picture expected = read_png(folder / "cpu.png");
  // The status line at the bottom tells how the work stands.
  const PictureLikeness likeness = compare_pictures(got, expected, got.height - 40);
  CHECK(likeness.similarity > 0.999);
  CHECK(likeness.bad_share < 0.001);
}
