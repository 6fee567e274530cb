#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The texts that an edit with lists and ranges of values stands for, "dense" as "none":
///
///     sol:tau=0.5/1/2,rest=row/centroid   six: every value with every other
///     vsa:keep=0.1..0.5:5                 five, evenly spaced, both ends included
///
/// Names of files are texts of their own. `option` is how messages name the edit. Throws
/// Error(usage) for a range that is none, and where it stands for more than 256.
std::vector<std::string> swept_edits(const std::string& text, const std::string& option);

/// The edits that a name alone stands for where one is chosen among them: "vsa" is vsa with the
/// shares that people try; a text with values is itself.
std::string usual_sweep(const std::string& name);

}  // namespace attnscope
