#pragma once

#include <filesystem>
#include <functional>

#include "io/files/output_file.h"

namespace attnscope {

/// Ends an output whose work was kept in OUT.part in another form: `build` creates the final form
/// at the path that it is given, OUT.part.new, which then takes the name OUT; until it has it,
/// OUT.part is as it was. Where any of that fails, OUT.part.new is gone. Throws what `build` and
/// commit_new_part() throw.
void commit_built(OutputFile& file, const std::function<void(const std::filesystem::path&)>& build);

}  // namespace attnscope
