#pragma once

#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace attnscope::test {

using Arguments = std::vector<std::string>;

/// Runs that must succeed.
ProgramResult require_run(const Arguments& arguments);

/// The files of all N parts of a command, whose -o is NAME with {shard}; each must succeed.
std::vector<std::string> run_parts(const Arguments& command, const std::string& name, int count);

/// attnscope merge of these parts to `out`, with more options.
ProgramResult merge(const std::vector<std::string>& parts, const std::string& out,
                    const Arguments& more = {});

/// Changes a byte of a file.
void damage(const std::string& path, int64_t at);

}  // namespace attnscope::test
