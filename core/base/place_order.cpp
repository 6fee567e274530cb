#include "core/base/place_order.h"

namespace attnscope {

PlaceOrder::PlaceOrder(std::vector<int32_t> tokens) {
  auto lists = std::make_shared<Lists>();
  lists->places.resize(tokens.size());
  for (size_t place = 0; place < tokens.size(); ++place) {
    lists->places[static_cast<size_t>(tokens[place])] = static_cast<int32_t>(place);
  }
  lists->tokens = std::move(tokens);
  lists_ = std::move(lists);
}

std::span<const int32_t> PlaceOrder::tokens() const {
  return is_identity() ? std::span<const int32_t>() : lists_->tokens;
}

int64_t PlaceOrder::bytes() const {
  return is_identity() ? 0 : static_cast<int64_t>(lists_->tokens.size() * 2 * sizeof(int32_t));
}

}  // namespace attnscope
