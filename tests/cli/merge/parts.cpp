#include "tests/cli/merge/parts.h"

#include <fstream>

#include "tests/support/catch.h"

namespace attnscope::test {

ProgramResult require_run(const Arguments& arguments) {
  ProgramResult result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result;
}

std::vector<std::string> run_parts(const Arguments& command, const std::string& name, int count) {
  std::vector<std::string> parts;
  for (int i = 0; i < count; ++i) {
    const std::string share = std::to_string(i) + "/" + std::to_string(count);
    Arguments arguments = command;
    arguments.insert(arguments.end(), {"-o", name, "--shard", share});
    require_run(arguments);
    std::string file = name;
    file.replace(file.find("{shard}"), 7, std::to_string(i) + "-of-" + std::to_string(count));
    parts.push_back(std::move(file));
  }
  return parts;
}

ProgramResult merge(const std::vector<std::string>& parts, const std::string& out,
                    const Arguments& more) {
  Arguments arguments{"merge"};
  // In any order: the last part comes first.
  arguments.insert(arguments.end(), parts.rbegin(), parts.rend());
  arguments.insert(arguments.end(), {"-o", out});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_attnscope(arguments);
}

void damage(const std::string& path, int64_t at) {
  std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(at);
  const int byte = bytes.get();
  bytes.seekp(at);
  bytes.put(static_cast<char>(byte ^ 0x5a));
}

}  // namespace attnscope::test
