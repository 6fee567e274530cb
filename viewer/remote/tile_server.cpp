#include "viewer/remote/tile_server.h"

#include <algorithm>
#include <concepts>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Seconds between states while much happens, and between looks at the capture's files.
constexpr double kStateSeconds = 0.1;
constexpr double kCheckSeconds = 2;
/// Keys of what was sent that are remembered at least.
constexpr size_t kRemembered = 20000;
constexpr int64_t kRefusedOrder = -1;
constexpr size_t kMostPing = 64;
constexpr size_t kMostUrgent = 1024;

std::shared_ptr<const void> plain(const Answer& answer) {
  return std::visit([](const auto& value) { return std::shared_ptr<const void>(value); }, answer);
}
bool is_same(const std::weak_ptr<const void>& a, const std::shared_ptr<const void>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// Of an entry, which never changes, one is as good as another.
bool is_constant(const Ask& ask) { return std::holds_alternative<ProbeRequest>(ask); }

}  // namespace

TileServer::TileServer(TileSource& tiles, RemoteHello hello, Watched watched)
    : tiles_(tiles), watched_(std::move(watched)) {
  urgent_.push_back({MessageType::hello, to_body(hello)});
}

void TileServer::take(const Message& message) {
  if (!greeted_ && message.type != MessageType::greeted) fail_wire("no greeting");
  switch (message.type) {
    case MessageType::greeted:
      if (greeted_ || from_wire<int>(message.body) != kProtocol) fail_wire("another protocol");
      greeted_ = true;
      return;
    case MessageType::wanted:
      return take_wishes(read_wanted(message.body));
    case MessageType::order:
      return take_order(read_order(message.body));
    case MessageType::received: {
      const auto number = from_wire<uint64_t>(message.body);
      if (number > number_) fail_wire("thanks for what was never sent");
      while (!under_way_.empty() && under_way_.begin()->first <= number) {
        bytes_under_way_ -= under_way_.begin()->second;
        under_way_.erase(under_way_.begin());
      }
      return;
    }
    case MessageType::ping:
      if (message.body.size() > kMostPing) fail_wire("a ping that is too long");
      return answer({MessageType::pong, message.body});
    default:
      fail_wire("what only a server says");
  }
}

HeadId TileServer::own(HeadId head) const {
  if (head.order == 0) return head;
  const auto known = orders_.find(head.order);
  if (known == orders_.end()) fail_wire("an order that was never told");
  const Order& order = known->second;
  head.order = 0;
  const MapGeometry map = tiles_.geometry(head);
  const auto fits = [](int64_t ordered, int64_t tokens) {
    return ordered == 0 || ordered == tokens;
  };
  if (!fits(order.rows, map.rows) || !fits(order.keys, map.cols)) {
    fail_wire("an order of other tokens than the map's");
  }
  if (order.number == kRefusedOrder) throw usage_error("maps cannot be had in this order");
  head.order = order.number;
  return head;
}

Ask TileServer::own(Ask ask) const {
  std::visit(
      [this]<class Asked>(Asked& asked) {
        for_each_head(asked, [this](HeadId& head) {
          if constexpr (std::same_as<Asked, TileId> || std::same_as<Asked, MaskRequest>) {
            head = own(head);
          } else if (head.order != 0) {
            fail_wire("an order of what goes by stored tokens");
          }
        });
      },
      ask);
  return ask;
}

void TileServer::answer(Message message) {
  if (urgent_.size() >= kMostUrgent) fail_wire("more than anybody reads answers to");
  urgent_.push_back(std::move(message));
}

void TileServer::refuse(const std::string& why) { answer({MessageType::refused, to_wire(why)}); }

void TileServer::take_wishes(RemoteWanted wanted) {
  if (wanted.number <= wanted_number_) fail_wire("wishes out of turn");
  wanted_number_ = wanted.number;
  try {
    Wishes own_wishes;
    for (const Wish& wish : wanted.wishes) own_wishes.push_back({own(wish.ask), wish.stage});
    tiles_.want(std::move(own_wishes));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) throw;
    return refuse(e.what());
  }
  asks_.clear();
  for (size_t i = 0; i < wanted.wishes.size(); ++i) {
    Ask& ask = wanted.wishes[i].ask;
    std::string key = ask_key(ask);
    const auto known = sent_.find(key);
    // An item that was sent after the last one that had come is still under way.
    if (known != sent_.end() && known->second.number <= wanted.received &&
        known->second.number != wanted.held[i]) {
      sent_.erase(known);
    }
    asks_.push_back({std::move(ask), std::move(key)});
  }
  put_picture_first();
  if (sent_.size() > kRemembered + asks_.size()) forget_unwanted();
  look();
}

void TileServer::put_picture_first() {
  const auto is_tile = [](const Asked& each) { return std::holds_alternative<TileId>(each.ask); };
  const auto first = std::find_if(asks_.begin(), asks_.end(), is_tile);
  const bool any_sent = std::any_of(first, asks_.end(), [&](const Asked& each) {
    return is_tile(each) && sent_.contains(each.key);
  });
  if (first != asks_.end() && !any_sent) std::rotate(asks_.begin(), first, first + 1);
}

void TileServer::forget_unwanted() {
  std::set<std::string_view> wanted;
  for (const Asked& each : asks_) wanted.insert(each.key);
  std::erase_if(sent_, [&](const auto& each) { return !wanted.contains(each.first); });
}

void TileServer::take_order(const RemoteOrder& order) {
  if (order.number < 1 || orders_.contains(order.number)) fail_wire("an order of no new number");
  Order& known = orders_[order.number];
  known = {kRefusedOrder, std::ssize(order.rows), std::ssize(order.keys)};
  try {
    MapPlaces places;
    if (!order.rows.empty()) places.rows = PlaceOrder(order.rows);
    if (!order.keys.empty()) places.keys = PlaceOrder(order.keys);
    // One list for both sides is one order.
    if (order.rows == order.keys) places.keys = places.rows;
    known.number = tiles_.order_number(places);
  } catch (const Error& e) {
    refuse(e.what());
  }
}

void TileServer::look() { cursor_ = 0; }

void TileServer::add(const RemoteAdded& added) {
  urgent_.push_back({MessageType::added, to_body(added)});
}

std::optional<Message> TileServer::next(double now) {
  due_.reset();
  if (!urgent_.empty()) {
    Message first = std::move(urgent_.front());
    urgent_.erase(urgent_.begin());
    return first;
  }
  if (!greeted_) return std::nullopt;
  if (auto item = next_item()) return item;
  return next_state(now);
}

std::optional<Message> TileServer::next_item() {
  while (bytes_under_way_ < kMostUnderWay && cursor_ < asks_.size()) {
    const Asked& asked = asks_[cursor_++];
    const auto known = sent_.find(asked.key);
    if (known != sent_.end() && is_constant(asked.ask)) continue;
    const Answer answer = tiles_.find(own(asked.ask));
    if (!is_there(answer)) continue;
    const std::shared_ptr<const void> value = plain(answer);
    if (known != sent_.end() && is_same(known->second.answer, value)) continue;
    ++number_;
    Message message{MessageType::item, item_body(number_, asked.ask, answer)};
    sent_[asked.key] = {number_, value};
    const auto bytes = static_cast<int64_t>(message.body.size());
    under_way_[number_] = bytes;
    bytes_under_way_ += bytes;
    return message;
  }
  return std::nullopt;
}

RemoteState TileServer::state() {
  RemoteState state;
  state.wanted = wanted_number_;
  state.status = tiles_.status();
  if (cursor_ < asks_.size()) {
    // There is more to be sent when the client has thanked for what is under way.
    state.status.busy = true;
    state.status.queue = std::max<int64_t>(state.status.queue, 1);
  }
  std::set<HeadId> heads;
  for (const Asked& asked : asks_) {
    if (const auto* tile = std::get_if<TileId>(&asked.ask)) heads.insert(tile->head);
    const std::string problem = tiles_.problem(own(asked.ask));
    if (!problem.empty()) state.problems.emplace_back(asked.ask, problem);
  }
  for (const HeadId& head : heads) {
    if (tiles_.exact(own(head))) state.exact.push_back(head);
  }
  if (watched_.warning) state.warning = watched_.warning();
  state.changed = changed_;
  return state;
}

std::optional<Message> TileServer::next_state(double now) {
  if (watched_.changed && now - checked_at_ >= kCheckSeconds && changed_.empty()) {
    changed_ = watched_.changed();
    checked_at_ = now;
  }
  if (now - state_at_ < kStateSeconds) {
    due_ = state_at_ + kStateSeconds;
    return std::nullopt;
  }
  std::string body = to_body(state());
  if (body == told_state_) return std::nullopt;
  told_state_ = body;
  state_at_ = now;
  return Message{MessageType::state, std::move(body)};
}

}  // namespace attnscope
