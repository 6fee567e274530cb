#include "viewer/view/pin_places.h"

#include "viewer/view/maps/map_source.h"
#include "viewer/view/placed_map.h"

namespace attnscope {

action::GoToPin go_to_pin(const ViewState& state, const MapSource& call, int64_t number) {
  const std::optional<Pin> pin = state.pins.at(number);
  if (!pin || state.order.is_stored()) return {number, pin};
  return {number, Pin{placed_side(state.order.rows, call.queries).place(pin->query),
                      placed_side(state.order.keys, call.keys).place(pin->key)}};
}

}  // namespace attnscope
