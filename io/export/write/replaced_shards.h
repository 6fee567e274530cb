#pragma once

#include <string>

#include "io/files/output_file.h"

namespace attnscope {

/// What becomes of an export in shards when one without shards takes its name: the shards that OUT
/// names go from OUT.d when it does, and nothing else. A run that is killed in between leaves them
/// to remove_replaced_shards() of the next one.

/// To be called before OUT gets its new name. Throws Error(file).
void note_replaced_shards(const OutputFile& file, bool sync);

/// To be called when OUT has it. Removes what was noted but for what OUT names, and OUT.d, where
/// nothing else stands in it. Gives a line for people where something does; else an empty one.
/// Throws Error(file) that says that OUT is complete.
std::string remove_replaced_shards(const OutputFile& file);

}  // namespace attnscope
