#pragma once

namespace attnscope {

/// Whether a field of ImGui's takes what is typed, in the frame that comes next: it was drawn in
/// the last one and has the keys. (io.WantTextInput is a frame late.)
bool takes_text();

}  // namespace attnscope
