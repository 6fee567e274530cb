#include "cli/program_version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/common/console.h"
#include "core/base/version.h"
#include "io/files/json_types.h"
#include "kernels/cpu/cpu_backend.h"

namespace attnscope {

void print_version(bool json) {
  const BuildFacts build = build_facts();
  std::vector<std::string> backends{make_cpu_backend({.threads = 1})->name()};
  if (build.has_cuda) backends.emplace_back("cuda");
  if (json) {
    print_json({{"format", "attnscope-version/1"},
                {"version", version()},
                {"commit", build.commit.empty() ? OrderedJson() : OrderedJson(build.commit)},
                {"backends", backends},
                {"without", build.lacks}},
               true);
    return;
  }
  fmt::print("attnscope {}{} {}{}{}\n", version(),
             build.commit.empty() ? "" : fmt::format(" ({})", build.commit),
             fmt::join(backends, ", "), build.lacks.empty() ? "" : "; without ",
             fmt::join(build.lacks, ", "));
}

}  // namespace attnscope
