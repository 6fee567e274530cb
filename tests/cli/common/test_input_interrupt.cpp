#include <csignal>

#include "tests/cli/common/large_inputs.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

using namespace attnscope::test;

TEST_CASE("a signal ends the check of a large member of an archive") {
  // Their checksums take seconds; the file is all holes, or packs to little.
  struct Case {
    InputForm form;
    int64_t tokens;
  };
  const int64_t scale = sanitized() ? 8 : 1;
  for (const Case& c :
       {Case{InputForm::npz_stored, (9 << 20) / scale}, Case{InputForm::torch, (9 << 20) / scale},
        Case{InputForm::npz_deflated, (4 << 20) / scale}}) {
    const TemporaryFolder folder;
    const TemporaryFolder out;
    const auto input = write_large_input(c.form, folder.path(), 1, c.tokens, 64);
    const std::vector<std::vector<std::string>> runs{
        {"info", input[0], "--scan"}, {"convert", input[0], "-o", out / "copy.safetensors"}};
    for (const auto& run : runs) {
      const auto result = run_attnscope(run, {.signal = SIGTERM});
      INFO(run[0] << " " << input[0] << "\n" << result.err);
      CHECK(result.exit_code == 4);
      // On a fast machine the signal may come after the checksums; test_npz stops
      // them for certain.
      CHECK(result.err.find("interrupted") != std::string::npos);
      CHECK(std::filesystem::is_empty(out.path()));
    }
  }
}

TEST_CASE("the check of a large member of an archive tells how far it is") {
  if (sanitized()) {
    skip_test("reads for seconds, and for minutes under a sanitizer");
    return;
  }
  const TemporaryFolder folder;
  // The lines come after the first second: a faster machine is given more to read.
  using Size = std::pair<InputForm, int64_t>;
  bool told = false;
  for (const auto& [form, tokens] :
       {Size{InputForm::npz_stored, 9 << 20}, Size{InputForm::npz_deflated, 9 << 20},
        Size{InputForm::npz_deflated, 31 << 20}}) {
    if (told) break;
    const auto input = write_large_input(form, folder.path(), 1, tokens, 64);
    const auto loud = run_attnscope({"info", input[0], "--scan"});
    INFO(loud.err);
    CHECK(loud.exit_code == 0);
    told = loud.err.find("checking " + input[0] + ": member ") != std::string::npos;
    if (!told) continue;
    const auto quiet = run_attnscope({"info", input[0], "--scan", "--quiet"});
    CHECK(quiet.exit_code == 0);
    CHECK(quiet.err.find("checking ") == std::string::npos);
  }
  CHECK(told);
}
