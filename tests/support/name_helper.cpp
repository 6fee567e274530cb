// Part of every test whose readers need the helper process (READS_HDF5): names its program before
// the first case.
#include "io/helper/ask_helper.h"
#include "tests/support/project_paths.h"

namespace attnscope::test {
namespace {

const bool named = [] {
  set_helper_program({helper_program(), {}});
  return true;
}();

}  // namespace
}  // namespace attnscope::test
