#include "viewer/app/copied_text.h"

#include "core/base/error.h"
#include "viewer/session/view_link.h"

namespace attnscope {
namespace {

std::string export_text(const Document& d, const Session& session) {
  const ViewState& state = d.history.now();
  if (!d.is_computed()) throw usage_error("what is open is an export already");
  if (state.against()) {
    throw usage_error(
        "what is seen is a difference, which has no export: attnscope diff has its numbers, "
        "difference off shows a map that has one");
  }
  const CallLimits& size = d.limits.of_call(state.head);
  if (!state.order.is_stored() && state.rect != fit_rect(size.rows, size.cols)) {
    throw usage_error("exports are cut in the stored order, the matrix shows " +
                      order_text(state.order) + ": take order stored, or all of the map");
  }
  return export_command(session, d.picker, state.head);
}

}  // namespace

std::string copied_text(CommandId what, const Document& d, const DocumentFrame& frame,
                        const Session& session) {
  const ViewState& state = d.history.now();
  switch (what) {
    case CommandId::copy_entry: {
      const auto& readout = frame.readout();
      if (!readout || !readout->entry) throw usage_error("the mouse is over no entry of the map");
      const bool of_b = readout->on_other || d.shows_other;
      const HeadId head = of_b && state.other ? state.other->head : d.shown().head;
      return entry_text(
          *readout->entry, of_b ? "B: " + d.other_picker.title(head) : d.picker.title(head),
          pair_text(TokenNames::of(d.call_of(head), head.batch, false), readout->point.query,
                    TokenNames::of(d.call_of(head), head.batch, true), readout->point.key));
    }
    case CommandId::copy_view:
      return view_command(session, d.picker, state.head,
                          TokenNames::of(d.call_of(state.head), state.head.batch, state.reverse));
    case CommandId::copy_heads:
      if (state.atlas.selected.empty()) throw usage_error("no head is selected");
      return heads_options(state.atlas.selected, d.picker, state.head);
    case CommandId::copy_stats:
      if (!d.is_computed()) throw usage_error("an export has no Q and K, which stats measures");
      return stats_command(session, d.picker, state.head);
    default:
      return export_text(d, session);
  }
}

}  // namespace attnscope
