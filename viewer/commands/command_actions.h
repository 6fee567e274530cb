#pragma once

#include <optional>

#include "viewer/commands/commands.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

/// The action of a command that only changes the state (moves by an eighth of the view, zooms by
/// √2 about the middle, to the frames that the middle is in, to the quadrants of text and video and
/// all of it in turn; scales and colour maps come round again); nothing for the others and where
/// there is nothing further to go to.
std::optional<Action> command_action(CommandId id, const ViewState& state,
                                     const HeadPicker& picker);

}  // namespace attnscope
