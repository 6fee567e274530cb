#include "tests/support/project_paths.h"

#include "tests/support/skip.h"

namespace attnscope::test {

std::string project_folder() { return ATTNSCOPE_SOURCE_DIR; }
std::string program_path() { return ATTNSCOPE_PROGRAM; }
std::string fault_libraries() { return ATTNSCOPE_FAULT_LIBRARIES; }
std::string helper_program() { return ATTNSCOPE_TEST_HELPER; }
bool cuda_built() { return ATTNSCOPE_CUDA_BUILT; }
bool can_use_cuda_module() {
  if (!cuda_built()) skip_test("built without CUDA");
  return cuda_built();
}
std::string cuda_test_file(const std::string& name) {
  return ATTNSCOPE_CUDA_TEST_FOLDER "/" + name;
}

}  // namespace attnscope::test
