#pragma once

#include <string>

#include "viewer/app/document_frame.h"
#include "viewer/commands/commands.h"

namespace attnscope {

/// The text that a command of copying gives: the entry under the mouse, the view, the selected
/// heads, or a command for what is seen or selected. Throws Error(usage) where there is none.
std::string copied_text(CommandId what, const Document& document, const DocumentFrame& frame,
                        const Session& session);

}  // namespace attnscope
