#pragma once

#include <string>
#include <vector>

#include "io/capture/capture.h"

namespace attnscope {

/// Throws Error(file) where a map of a call would not be the model's: where the call holds a part
/// of its tokens (require_whole_calls), or where something beside q and k shapes the map and is not
/// understood. The message names the way out.
void require_computable(const Capture& capture);

/// The message about such things beside q and k: "FILE: KEY: what it is: the way out"; empty: none.
std::string shaping_fault(const Capture& capture);

/// The keys of the capture and of its calls that nobody understands, each once.
std::vector<std::string> not_understood(const Capture& capture);
/// Those keys in one line, the first five and how many there are; empty: all is understood.
std::string not_understood_text(const Capture& capture);

}  // namespace attnscope
