#pragma once

#include "viewer/view/view_actions.h"

namespace attnscope {

struct MapSource;

/// Goes to a pin, wherever the matrix' order has put its tokens. `call` is the call of the state's
/// head.
action::GoToPin go_to_pin(const ViewState& state, const MapSource& call, int64_t number);

}  // namespace attnscope
