#pragma once

#include <functional>
#include <string>

#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// Where choosing side B begins: what it is now, or the head that is most like A's.
HeadId first_other(const ViewState& state, const HeadPicker& picker, const HeadPicker& others);

/// Where the button of side B begins: as first_other(), but never at A's own head where another
/// `suits`: that of the next layer, else of the layer before, else the next head, step, chunk,
/// branch, batch item, block or slot, else the one before.
HeadId suggested_other(const ViewState& state, const HeadPicker& picker, const HeadPicker& others,
                       const std::function<bool(const HeadId&)>& suits);

/// "step 0 layer 3 branch cond head 2", with the chunk, the block and the slot where they were
/// recorded: what scripts compare.
std::string other_text(const HeadValues& values);

/// The state in which side B is what is seen, in place of A. The state has a side B.
ViewState seen_as_other(const ViewState& state);
/// The part of the map that side B shows.
const MapRect& other_rect(const ViewState& state);

/// "A − B", "|A − B|", "log₂ A/B".
std::string difference_sign(Difference how);
/// "L3 H1 − L3 H2": what tells the two heads apart, and no more. "of another capture" where that
/// is all.
std::string sides_text(const HeadValues& a, const HeadValues& b, bool other_capture);

/// The next of the differences that suit what is shown, off after the last.
Difference next_difference(const ViewState& state);

}  // namespace attnscope
