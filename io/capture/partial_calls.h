#pragma once

#include "io/capture/capture.h"

namespace attnscope {

/// True where a call of the capture holds a part of its tokens: what one of several processes had.
bool has_partial_calls(const Capture& capture);

/// Throws Error(file) where one does: no row, number or picture of it would be the model's.
void require_whole_calls(const Capture& capture);

}  // namespace attnscope
