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
/// The line that leads from one head to another, with its line break: all that was recorded of it,
/// and where that leads elsewhere also the values of what was not. Throws Error(file) where no
/// words lead there.
std::string head_line(const HeadPicker& picker, const HeadId& from, const HeadId& head);

}  // namespace attnscope
