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
  void want(WantedTiles wishes) override {
    check_wishes(wishes, [this](const HeadId& head) { return geometry(head); });
  }
  std::shared_ptr<const MapTile> find(const TileId& id) const override {
    if (id.against) geometry(id.against->other);
    return nothing<MapTile>(id.head);
  }
  std::shared_ptr<const MapLine> find_line(const LineRequest& request) const override {
    return nothing<MapLine>(stored(request.head));
  }
  bool exact(const HeadId& head) const override { return nothing<MapTile>(head) != nullptr; }
  std::optional<ProbedEntry> find_probe(const ProbeRequest& request) const override {
    geometry(stored(request.head));
    return std::nullopt;
  }
  std::shared_ptr<const HeadSketch> find_sketch(const HeadId& head) const override {
    return nothing<HeadSketch>(stored(head));
  }
  std::string sketch_problem(const HeadId& head) const override {
    geometry(stored(head));
    return "";
  }
  bool has_sketches() const override { return true; }
  std::shared_ptr<const RowDivergence> find_divergence(const HeadsCompared& of) const override {
    geometry(stored(of.b));
    return nothing<RowDivergence>(stored(of.a));
  }
  std::shared_ptr<const KeyMasses> find_masses(const MassRequest& request) const override {
    return nothing<KeyMasses>(stored(request.head));
  }
  std::shared_ptr<const HeadTracks> find_tracks(const HeadId& head) const override {
    return nothing<HeadTracks>(stored(head));
  }
  std::shared_ptr<const HeadMask> find_mask(const MaskRequest& request) const override {
    return nothing<HeadMask>(request.head);
  }
  TileSourceStatus status() const override { return {}; }

 private:
  static const HeadId& stored(const HeadId& head) {
    require(head.order == 0);
    return head;
  }
  template <class T>
  std::shared_ptr<const T> nothing(const HeadId& head) const {
    geometry(head);
    return nullptr;
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
