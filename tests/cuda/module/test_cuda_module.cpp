#include <cstdlib>
#include <fstream>
#include <optional>

#include "core/base/error.h"
#include "kernels/backend_factory.h"
#include "kernels/cuda_backend.h"
#include "kernels/cuda_module.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

namespace attnscope {
namespace {

/// An environment variable of this process until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

/// The message of the Error(unavailable) that `call` throws, after its "backend cuda: ".
template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unavailable);
    const std::string text = error.what();
    CHECK(count(text, "backend cuda: ") == 1);
    CHECK(text.rfind("backend cuda: ", 0) == 0);
    CHECK(count(text, "\n") == 0);
    return text;
  }
  FAIL("nothing was thrown");
  return "";
}

std::string load_refusal(const std::string& path) {
  return refusal([&] { CudaModule::load(path); });
}

}  // namespace

TEST_CASE("a file that is no module is refused in one line that names it once") {
  const test::TemporaryFolder folder;
  const std::string missing = folder / "attnscope_cuda.so";
  std::string text = load_refusal(missing);
  INFO(text);
  CHECK(count(text, missing) == 1);
  CHECK(count(text, "No such file") == 1);

  const std::string table = folder / "table.so";
  std::ofstream(table) << std::string(4096, 'x');
  text = load_refusal(table);
  CHECK(count(text, table) == 1);
  CHECK(count(text, "ELF") == 1);

  const std::string other = test::cuda_test_file("attnscope_no_module.so");
  text = load_refusal(other);
  CHECK(count(text, other) == 1);
  CHECK(count(text, "is not attnscope's CUDA module") == 1);
  CHECK(count(text, "attnscope_cuda_abi") == 1);
}

TEST_CASE("a name without a folder is a file here, not one of the system's libraries") {
  CHECK(count(load_refusal("libz.so.1"), "./libz.so.1: ") == 1);
}

TEST_CASE("a library that the module needs and that is missing is named") {
  const std::string text = load_refusal(test::cuda_test_file("attnscope_needs_absent.so"));
  INFO(text);
  CHECK(count(text, "attnscope_needs_absent.so") == 1);
  CHECK(count(text, "libattnscope_absent.so") == 1);
}

TEST_CASE("a module of another version is refused, naming both") {
  const Variable part("ATTNSCOPE_STAND_IN", "other-version");
  const std::string text = load_refusal(test::cuda_test_file("attnscope_stand_in.so"));
  INFO(text);
  CHECK(count(text, "expected \"" + cuda_module_abi() + "\"") == 1);
  CHECK(count(text, "got \"attnscope 0.0.1, CUDA module 0\"") == 1);
}

TEST_CASE("without a device the module's reason becomes one line") {
  const Variable part("ATTNSCOPE_STAND_IN", "no-device");
  const CudaModule module = CudaModule::load(test::cuda_test_file("attnscope_stand_in.so"));
  std::string reason;
  CHECK(module.devices(reason) == 0);
  CHECK(reason == "backend cuda: no CUDA device: this one\\nonly plays");
  CHECK(refusal([&] { module.make_backend({}); }) == reason);
}

TEST_CASE("what a module throws is caught as the Error that it is") {
  const Variable part("ATTNSCOPE_STAND_IN", "throws");
  const CudaModule module = CudaModule::load(test::cuda_test_file("attnscope_stand_in.so"));
  std::string caught;
  try {
    module.make_backend({});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::resource);
    caught = error.what();
  } catch (...) {
    caught = "of another type";
  }
  CHECK(caught == "backend cuda: thrown in the module");
}

TEST_CASE("the module is where the environment says, else beside the program") {
  {
    const Variable given("ATTNSCOPE_CUDA_MODULE", "/somewhere/else.so");
    CHECK(cuda_module_path() == "/somewhere/else.so");
  }
  const Variable none("ATTNSCOPE_CUDA_MODULE", "");
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  if (test::cuda_built()) {
    CHECK(cuda_module_path() == folder / "attnscope_cuda.so");
  } else {
    const std::string text = refusal([] { cuda_module_path(); });
    CHECK(count(text, "neither in " + folder.string() + " nor in ") == 1);
    CHECK(count(text, "ATTNSCOPE_CUDA_MODULE") == 1);
  }
}

TEST_CASE("auto takes it where it is usable, and only there") {
  std::string said;
  const auto backend = make_backend(
      BackendKind::automatic, {.notice = [&](const std::string& text) { said += text + "\n"; }});
  CHECK(cuda_state().usable == (backend->name().rfind("cuda", 0) == 0));
  if (!has_cuda_driver() || !test::cuda_built()) {
    CHECK_FALSE(cuda_state().usable);
    CHECK(cuda_state().obstacle.empty());
    CHECK(said.empty());
  } else if (!cuda_state().usable) {
    CHECK(said == cuda_state().obstacle + "; the cpu computes\n");
  }
}

}  // namespace attnscope
