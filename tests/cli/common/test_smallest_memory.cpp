#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"

using namespace attnscope::test;

namespace {

/// The figure that an error names as the smallest --memory that works, as it was printed.
std::string named_memory(const std::string& error) {
  const std::string marker = "the smallest that works is ";
  const size_t at = error.find(marker);
  if (at == std::string::npos) return "";
  const std::string rest = error.substr(at + marker.size());
  return rest.substr(0, rest.find(' '));
}

}  // namespace

TEST_CASE("the smallest --memory that an error names is enough for the whole command") {
  const std::string capture = sample("moving-shapes");
  struct Case {
    std::vector<std::string> command;
    std::string out;
    /// More than what is held beside the plan, and less than any plan.
    std::string too_little = "512KiB";
  };
  const std::vector<Case> cases{
      {{"export", capture, "--layers", "2"}, "out.h5"},
      {{"export", capture, "--layers", "2", "--block", "16", "--pyramid"}, "out.h5"},
      {{"export", capture, "--layers", "2", "--topk", "8"}, "out.h5"},
      {{"export", capture, "--layers", "2", "--product", "output"}, "out.h5"},
      {{"query", capture, "--query", "1,2,3"}, "out.npy"},
      {{"query", capture, "--query", "1,2,3", "--reverse"}, "out.npy"},
      {{"rollout", capture, "--query", "1,2,3"}, "out.npy"},
      {{"mask", capture, "--layers", "2", "--heads", "0", "--mask", "topk:keep=0.5", "--mask",
        "vertical-slash"},
       "out.json"},
      {{"mask", capture, "--layers", "2", "--heads", "0", "--mask", "spatial", "--exact"},
       "out.json"},
      {{"mask", capture, "--layers", "2", "--heads", "0", "--mask", "sol", "--mask",
        "sla:keep=0.5"},
       "out.json"},
      {{"lab", capture, "--layers", "2", "--heads", "0", "--edit",
        "sla:keep=0.1/0.2/0.3/0.4,rest=row", "--edit", "sol"},
       "out.json"},
      {{"lab", capture, "--layers", "2", "--heads", "0", "--edit", "sla:keep=0.1/0.2,rest=row",
        "--exact"},
       "out.json"},
      {{"stats", capture, "--layers", "2"}, "out.json"},
      {{"diff", capture, capture, "--heads", "0", "--b-head", "1"}, "out.json"},
      {{"render", capture, "--picture", "frames", "--layers", "2", "--heads", "0"},
       "out.png",
       "2MiB"},
      {{"plot", capture, "--what", "entropy", "--layers", "2"}, "out.png"},
      {{"plot", capture, "--what", "logits", "--layers", "2"}, "out.png"},
  };
  for (const Case& c : cases) {
    for (const std::string threads : {"1", "3"}) {
      if (sanitized() && threads == "1") continue;  // many small pieces
      const TemporaryFolder folder;
      const std::string out = folder / c.out;
      const auto run = [&](const std::string& memory) {
        std::vector<std::string> arguments = c.command;
        arguments.insert(arguments.end(),
                         {"-o", out, "--quiet", "--threads", threads, "--memory", memory});
        return run_attnscope(arguments);
      };
      const auto refused = run(c.too_little);
      INFO(c.command.front() << " -o " << c.out << ": " << refused.err);
      REQUIRE(refused.exit_code == 1);
      const std::string told =
          c.too_little == "512KiB" ? "524288B (512.00 KiB)" : "2097152B (2.00 MiB)";
      CHECK(refused.err.find("a memory budget of " + told) != std::string::npos);
      CHECK_FALSE(std::filesystem::exists(out));
      const std::string smallest = named_memory(refused.err);
      REQUIRE_FALSE(smallest.empty());
      const auto accepted = run(smallest);
      INFO("with " << smallest << ": " << accepted.err);
      CHECK(accepted.exit_code == 0);
      CHECK(std::filesystem::exists(out));
    }
  }
}
