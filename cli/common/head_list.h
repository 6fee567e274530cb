#pragma once

#include <memory>
#include <string>

#include "core/problem/head_set.h"

namespace attnscope {

/// The heads that a file lists: attnscope-heads/1, other JSON of ours with rows called `heads`
/// (stats, masks) or `pairs` (diff, whose side A counts), and tables of `stats` and probes (.csv,
/// .h5). A fact that a row does not have is any. Throws Error(file) naming the place where the file
/// is no such list or lists none.
std::shared_ptr<const HeadSet> read_head_list(const std::string& path);

/// Throws Error(usage) where the output would replace the list that the heads come from, also with
/// --force. Either may be empty.
void refuse_list_as_output(const std::string& list, const std::string& out);

}  // namespace attnscope
