#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/base/error.h"
#include "core/base/failure_text.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("failures of all kinds are told without a library's text") {
  CHECK(failure_text(file_error("a.h5", "here", "is odd")) == "a.h5: here: is odd");
  CHECK(failure_text(std::bad_alloc()) == "out of memory");
  const auto denied = std::make_error_code(std::errc::permission_denied);
  CHECK(failure_text(std::filesystem::filesystem_error("cannot do it", "dir/a\nb", denied)) ==
        "dir/a\\nb: Permission denied");
  const auto again = std::make_error_code(std::errc::resource_unavailable_try_again);
  CHECK(failure_text(std::system_error(again, "thread")).find("ulimit -u") != std::string::npos);
  CHECK(failure_text(std::length_error("basic_string::_M_create")) ==
        "a defect of attnscope: please report it with its input");
}
