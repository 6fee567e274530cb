#pragma once

#include <span>

#include "io/helper/helper_question.h"

namespace attnscope {

/// All questions of this program's readers, for serve_helper.
std::span<const HelperQuestion* const> helper_questions();

}  // namespace attnscope
