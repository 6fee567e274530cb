#include "viewer/remote/tile_server.h"

#include <algorithm>
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

bool is_null(const Answer& answer) {
  return std::visit([](const auto& value) { return value == nullptr; }, answer);
}
std::shared_ptr<const void> plain(const Answer& answer) {
  return std::visit([](const auto& value) { return std::shared_ptr<const void>(value); }, answer);
}
bool is_same(const std::weak_ptr<const void>& a, const std::shared_ptr<const void>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// Throws Error(file) where the head has an order: only those of tiles and masks may have one.
void require_stored(const HeadId& head) {
  if (head.order != 0) fail_wire("an order of what goes by stored tokens");
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

WantedTiles TileServer::own(WantedTiles wishes) const {
  for (const auto* line : {&wishes.line, &wishes.other_line, &wishes.words_line}) {
    if (*line) require_stored((*line)->head);
  }
  for (const ProbeRequest& probe : wishes.probes) require_stored(probe.head);
  for (const auto* heads : {&wishes.sketches, &wishes.exact_sketches}) {
    for (const HeadId& head : *heads) require_stored(head);
  }
  if (wishes.masses) require_stored(wishes.masses->head);
  if (wishes.tracks) require_stored(*wishes.tracks);
  if (wishes.divergence) {
    require_stored(wishes.divergence->a);
    require_stored(wishes.divergence->b);
  }
  for (TileId& tile : wishes.tiles) {
    tile.head = own(tile.head);
    if (tile.against) tile.against->other = own(tile.against->other);
  }
  for (HeadId& head : wishes.exact) head = own(head);
  for (DifferenceId& each : wishes.exact_differences) {
    each.head = own(each.head);
    each.against.other = own(each.against.other);
  }
  if (wishes.mask) wishes.mask->head = own(wishes.mask->head);
  return wishes;
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
    tiles_.want(own(wanted.wishes));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) throw;
    return refuse(e.what());
  }
  wishes_ = std::move(wanted.wishes);
  asks_.clear();
  std::vector<Ask> asks = asks_of(wishes_);
  for (size_t i = 0; i < asks.size(); ++i) {
    std::string key = ask_key(asks[i]);
    const auto known = sent_.find(key);
    // An item that was sent after the last one that had come is still under way.
    if (known != sent_.end() && known->second.number <= wanted.received &&
        known->second.number != wanted.held[i]) {
      sent_.erase(known);
    }
    asks_.push_back({std::move(asks[i]), std::move(key)});
  }
  put_picture_first();
  if (sent_.size() > kRemembered + asks_.size()) forget_unwanted();
  look();
}

void TileServer::put_picture_first() {
  const auto is_tile = [](const Wish& wish) { return std::holds_alternative<TileId>(wish.ask); };
  const auto first = std::find_if(asks_.begin(), asks_.end(), is_tile);
  const bool any_sent = std::any_of(first, asks_.end(), [&](const Wish& wish) {
    return is_tile(wish) && sent_.contains(wish.key);
  });
  if (first != asks_.end() && !any_sent) std::rotate(asks_.begin(), first, first + 1);
}

void TileServer::forget_unwanted() {
  std::set<std::string_view> wanted;
  for (const Wish& wish : asks_) wanted.insert(wish.key);
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

Answer TileServer::find(const Ask& ask) const {
  struct Find {
    const TileServer& server;
    Answer operator()(const ProbeRequest& request) const {
      const auto found = server.tiles_.find_probe(request);
      return found ? std::make_shared<const ProbedEntry>(*found) : nullptr;
    }
    Answer operator()(const LineRequest& request) const { return server.tiles_.find_line(request); }
    Answer operator()(TileId id) const {
      id.head = server.own(id.head);
      if (id.against) id.against->other = server.own(id.against->other);
      return server.tiles_.find(id);
    }
    Answer operator()(MaskRequest request) const {
      request.head = server.own(request.head);
      return server.tiles_.find_mask(request);
    }
    Answer operator()(const HeadsCompared& heads) const {
      return server.tiles_.find_divergence(heads);
    }
    Answer operator()(const MassRequest& request) const {
      return server.tiles_.find_masses(request);
    }
    Answer operator()(const FrameRequest& request) const {
      return server.tiles_.find_frame(request);
    }
    Answer operator()(const SketchAsked& asked) const {
      return server.tiles_.find_sketch(asked.head);
    }
    Answer operator()(const TracksAsked& asked) const {
      return server.tiles_.find_tracks(asked.head);
    }
  };
  return std::visit(Find{*this}, ask);
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
    const Wish& wish = asks_[cursor_++];
    const auto known = sent_.find(wish.key);
    if (known != sent_.end() && is_constant(wish.ask)) continue;
    const Answer answer = find(wish.ask);
    if (is_null(answer)) continue;
    const std::shared_ptr<const void> value = plain(answer);
    if (known != sent_.end() && is_same(known->second.answer, value)) continue;
    ++number_;
    Message message{MessageType::item, item_body(number_, wish.ask, answer)};
    sent_[wish.key] = {number_, value};
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
  std::set<HeadId> heads(wishes_.exact.begin(), wishes_.exact.end());
  for (const TileId& tile : wishes_.tiles) heads.insert(tile.head);
  for (const HeadId& head : heads) {
    if (tiles_.exact(own(head))) state.exact.push_back(head);
  }
  for (const auto* list : {&wishes_.sketches, &wishes_.exact_sketches}) {
    for (const HeadId& head : *list) {
      const std::string problem = tiles_.sketch_problem(head);
      if (!problem.empty()) state.sketch_problems.emplace_back(head, problem);
    }
  }
  if (wishes_.tracks) {
    const std::string problem = tiles_.tracks_problem(*wishes_.tracks);
    if (!problem.empty()) state.tracks_problems.emplace_back(*wishes_.tracks, problem);
  }
  if (wishes_.divergence) state.divergence_problem = tiles_.divergence_problem();
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
