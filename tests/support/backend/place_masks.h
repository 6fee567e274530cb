#pragma once

#include <optional>
#include <string_view>

#include "tests/support/backend/attention_case.h"

namespace attnscope::test {

/// The masks and biases of mask_case() that are told by the places of query and key and a few
/// numbers; nothing of another name.
std::optional<MaskCase> place_mask_case(std::string_view name, const Shape& shape);

}  // namespace attnscope::test
