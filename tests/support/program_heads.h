#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

namespace attnscope::test {

/// run_attnscope(), which has to end well.
inline ProgramResult run_well(const std::vector<std::string>& arguments) {
  ProgramResult result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result;
}

/// The heads that such a command prints with --json.
inline Json heads_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  return Json::parse(run_well(arguments).out)["heads"];
}

}  // namespace attnscope::test
