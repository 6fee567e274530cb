#include <string>
#include <string_view>

#include "core/problem/key_segments.h"
#include "tests/fuzz/targets.h"
#include "viewer/remote/answer_checks.h"
#include "viewer/remote/messages.h"
#include "viewer/remote/remote_tile_source.h"
#include "viewer/remote/tile_server.h"
#include "viewer/tiles/check_wishes.h"

namespace {

using namespace attnscope;

template <class Read>
void expect_error(const Read& read) {
  try {
    read();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::file) std::abort();
  }
}

void require(bool holds) {
  if (!holds) std::abort();
}

/// The call that the server serves, and that the client shows answers about.
const MapSource& shown_call() {
  static const MapSource call = [] {
    MapSource made;
    made.branches = {"cond"};
    made.batch = made.heads = {0, 1};
    made.queries = made.keys = TokenGrid::video(12, {2, 2, 2}, 4, TextPlace::end);
    made.rows = made.cols = {0, 12};
    return made;
  }();
  return call;
}

/// Reads of an answer that was believed what a window does.
struct Look {
  const TokenGrid& queries = shown_call().queries;
  const TokenGrid& keys = shown_call().keys;

  template <class See>
  void at_entries(const See& see) const {
    for (int64_t query = 0; query < queries.tokens(); ++query) {
      for (int64_t key = 0; key < keys.tokens(); ++key) see(query, key);
    }
  }
  void operator()(const HeadTracks& tracks) const {
    at_entries([&](int64_t query, int64_t key) {
      (void)tracks.mean_at_dt(queries, query, keys, key);
      const int64_t at = group_at(queries, query) * tracks.key_groups + group_at(keys, key);
      require(at < std::ssize(tracks.group_mass));
    });
  }
  void operator()(const HeadMask& mask) const {
    if (!mask.problem.empty()) return;
    at_entries([&](int64_t query, int64_t key) {
      const int64_t at = query / mask.block * mask.key_blocks + key / mask.block;
      require(at < std::ssize(mask.kept));
    });
    (void)most_lost(mask);
  }
  void operator()(const auto&) const {}
};

/// The maps of one call, of which nothing is ever found, and a server's claims about them: what it
/// asks for it has checked.
class ServedMaps : public TileSource {
 public:
  MapGeometry geometry(const HeadId& head) const override {
    const MapSource& call = shown_call();
    if (head.call != 0 || head.batch < 0 || head.batch >= std::ssize(call.batch) || head.head < 0 ||
        head.head >= std::ssize(call.heads)) {
      throw usage_error("no such head");
    }
    const MapGeometry map = MapGeometry::of(call.queries.tokens(), call.keys.tokens());
    if (head.order == 0) return map;
    require(head.order > 0 && head.order <= std::ssize(orders_));
    const MapPlaces& places = orders_[static_cast<size_t>(head.order - 1)];
    const auto fits = [](const PlaceOrder& order, int64_t tokens) {
      return order.is_identity() || std::ssize(order.tokens()) == tokens;
    };
    require(fits(places.rows, map.rows) && fits(places.keys, map.cols));
    return map;
  }
  int64_t order_number(const MapPlaces& places) override {
    if (places.is_identity()) return 0;
    if (orders_.size() > 4) throw Error(ErrorCode::resource, "no room for another order");
    orders_.push_back(places);
    return std::ssize(orders_);
  }
  void want(Wishes wishes) override {
    check_wishes(wishes, [this](const HeadId& head) { return geometry(head); });
  }
  Answer find(const Ask& ask) const override {
    check(ask);
    return no_answer(ask);
  }
  std::string problem(const Ask& ask) const override {
    check(ask);
    return "";
  }
  bool offers(const Ask&) const override { return true; }
  bool exact(const HeadId& head) const override {
    geometry(head);
    return false;
  }
  TileSourceStatus status() const override { return {}; }

 private:
  /// Its heads are there, and in an order only where that may be.
  void check(const Ask& ask) const {
    const bool may_be_ordered =
        std::holds_alternative<TileId>(ask) || std::holds_alternative<MaskRequest>(ask);
    std::visit(
        [&](const auto& asked) {
          for_each_head(asked, [&](const HeadId& head) {
            require(may_be_ordered || head.order == 0);
            geometry(head);
          });
        },
        ask);
  }

  std::vector<MapPlaces> orders_;
};

RemoteHello hello_of_served() {
  RemoteHello hello;
  hello.calls = {shown_call()};
  hello.own_calls = 1;
  return hello;
}

/// Both ends, which take what may have been meant for them.
class Ends {
 public:
  Ends() {
    server_.take({MessageType::greeted, to_wire(kProtocol)});
    (void)server_.next(now_);
  }
  void take(const Message& message) {
    if (message.type < MessageType::greeted) return client_.take(message);
    if (message.type == MessageType::greeted) return;
    server_.take(message);
    while (server_.next(now_ += 1)) {
    }
  }

 private:
  ServedMaps maps_;
  TileServer server_{maps_, hello_of_served(), {}};
  RemoteTileSource client_{"there", hello_of_served(), int64_t{1} << 20, [] {}};
  double now_ = 0;
};

void read_body(const Message& message) {
  switch (message.type) {
    case MessageType::hello:
      return expect_error([&] {
        const RemoteHello hello = read_hello(message.body);
        // The calls of a hello that was believed can be asked, also of the last batch item.
        for (const MapSource& call : hello.calls) {
          const int64_t batch = std::ssize(call.batch) - 1;
          for (const TokenGrid* side : {&call.queries, &call.keys}) {
            for (const int64_t at : {int64_t{0}, side->tokens() / 2, side->tokens() - 1}) {
              (void)side->segment(at, batch);
              (void)side->any_coord(at);
              if (side->has_map()) (void)side->place_text(at, batch);
            }
          }
        }
      });
    case MessageType::added:
      return expect_error([&] { (void)read_added(message.body); });
    case MessageType::item:
      return expect_error([&] {
        const RemoteItem item = read_item(message.body);
        check_answer(item, shown_call());
        // Bytes that were believed are those that are held.
        require(answer_bytes(item.answer) <= static_cast<int64_t>(9 * message.body.size()));
        std::visit([](const auto& answer) { Look{}(*answer); }, item.answer);
      });
    case MessageType::state:
      return expect_error([&] { (void)read_state(message.body); });
    case MessageType::wanted:
      return expect_error([&] {
        // Read, written and read again it is the same.
        const RemoteWanted wanted = read_wanted(message.body);
        require(read_wanted(to_body(wanted)).wishes == wanted.wishes);
      });
    case MessageType::order:
      return expect_error([&] { (void)read_order(message.body); });
    default:
      return;
  }
}

}  // namespace

// Bytes of a line between a window and a server: the greeting where there is one, then frames, of
// which each end takes its own.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  expect_error([&] { (void)take_greeting(bytes); });
  std::vector<Message> messages;
  expect_error([&] {
    while (auto message = take_frame(bytes, size_t{1} << 20)) messages.push_back(*message);
  });
  for (const Message& message : messages) read_body(message);
  expect_error([&] {
    Ends ends;
    for (const Message& message : messages) ends.take(message);
  });
  return 0;
}
