#pragma once

#include <string>
#include <utility>
#include <vector>

#include "viewer/settings/script_arguments.h"
#include "viewer/view/heads/head_picker.h"

namespace attnscope {

/// A head by recorded values: `step 10`, `head 3 2`, `step 10 layer 3 branch cond`.
struct HeadWords {
  std::vector<std::pair<HeadAxis, std::string>> values;
  /// The head must have all of the values. False: the last one, and of the others the nearest.
  bool together = false;
};
/// The words from `at` on. Throws Error(usage) without a place.
HeadWords parse_head_words(ScriptArguments words, size_t at);
/// Throws Error(usage) for a value that the capture does not have.
HeadId head_of(const HeadWords& words, const HeadPicker& picker, HeadId from);
/// As parse_head_words() reads it: all that was recorded of the head.
std::string head_text(const HeadValues& values);

}  // namespace attnscope
