#include "viewer/remote/messages.h"

#include <algorithm>
#include <iterator>

#include "viewer/remote/wire_values.h"

namespace attnscope {

template <class Wire>
void carry(Wire& wire, IsA<RemoteHello> auto& h) {
  wire(h.version, h.name, h.calls, h.own_calls, h.computed, h.offers, h.pictures, h.warnings);
}
template <class Wire>
void carry(Wire& wire, IsA<RemoteAdded> auto& a) {
  wire(a.calls, a.pictures, a.warnings, a.problem);
}
template <class Wire>
void carry(Wire& wire, IsA<RemoteWanted> auto& w) {
  wire(w.number, w.received, w.wishes, w.held);
}
template <class Wire>
void carry(Wire& wire, IsA<RemoteOrder> auto& o) {
  wire(o.number, o.rows, o.keys);
}
template <class Wire>
void carry(Wire& wire, IsA<RemoteState> auto& s) {
  wire(s.wanted, s.status, s.exact, s.problems, s.warning, s.changed);
}
namespace {

bool is_within(IndexRange range, int64_t count) {
  return range.begin >= 0 && range.begin < range.end && range.end <= count;
}

/// Padding is told once for all batch items, or of each.
bool has_padding_of(const TokenGrid& tokens, size_t items) {
  const auto enough = [&](size_t told) { return told <= 1 || told >= items; };
  const auto& segments = tokens.segments();
  return enough(tokens.text_valid().size()) &&
         std::all_of(segments.begin(), segments.end(), [&](const TokenSegment& segment) {
           return enough(static_cast<size_t>(segment.valid_items()));
         });
}

/// A call is what the window takes for granted of one.
void check_call(const MapSource& call) {
  const auto ascend = [](const std::vector<int64_t>& numbers) {
    return !numbers.empty() && numbers.front() >= 0 &&
           std::is_sorted(numbers.begin(), numbers.end(), std::less_equal<>());
  };
  const int64_t queries = call.queries.tokens(), keys = call.keys.tokens();
  const auto was_there = [&](const EvictedKeys& each) {
    return is_within(each.queries, queries) && is_within(each.keys, keys);
  };
  const size_t items = call.batch.size();
  const bool fits = ascend(call.batch) && ascend(call.heads) && queries > 0 && keys > 0 &&
                    (call.branches.size() == 1 || call.branches.size() == items) &&
                    (call.tokens.size() <= 1 || call.tokens.size() == items) &&
                    is_within(call.rows, queries) && is_within(call.cols, keys) && call.block > 0 &&
                    (call.first_row == -1 || call.rows.contains(call.first_row)) &&
                    std::all_of(call.evicted.begin(), call.evicted.end(), was_there) &&
                    has_padding_of(call.queries, items) && has_padding_of(call.keys, items);
  if (!fits) fail_wire("a call of no such sizes");
}

/// Puts into an answer what was asked, which is not sent twice.
struct Complete {
  void operator()(const ProbeRequest&, ProbedEntry&) const {}
  void operator()(const LineRequest& asked, MapLine& line) const { line.request = asked; }
  void operator()(const TileId& id, MapTile& tile) const { tile.id = id; }
  void operator()(const MaskRequest& asked, HeadMask& mask) const { mask.request = asked; }
  void operator()(const HeadsCompared& heads, RowDivergence& rows) const { rows.heads = heads; }
  void operator()(const MassRequest& asked, KeyMasses& masses) const { masses.request = asked; }
  void operator()(const FrameRequest& asked, VideoFrame& frame) const { frame.request = asked; }
  void operator()(const SketchRequest&, HeadSketch&) const {}
  void operator()(const TracksRequest& asked, HeadTracks& tracks) const {
    tracks.head = asked.head;
  }
};

Answer read_answer(WireReader& wire, const Ask& ask) {
  return std::visit(
      [&]<class Asked>(const Asked& asked) -> Answer {
        auto value =
            std::make_shared<std::remove_const_t<typename AnswerTo<Asked>::element_type>>();
        wire(*value);
        Complete{}(asked, *value);
        return AnswerTo<Asked>(std::move(value));
      },
      ask);
}

template <size_t... Kind>
std::array<bool, kAskKinds> offered(const TileSource& tiles, std::index_sequence<Kind...>) {
  return {tiles.offers(std::variant_alternative_t<Kind, Ask>{})...};
}

}  // namespace

std::array<bool, kAskKinds> offers_of(const TileSource& tiles) {
  return offered(tiles, std::make_index_sequence<kAskKinds>());
}

std::string ask_key(const Ask& ask) {
  return std::visit(
      [&](const auto& asked) { return static_cast<char>('a' + ask.index()) + to_wire(asked); },
      ask);
}

std::string item_body(uint64_t number, const Ask& ask, const Answer& answer) {
  WireWriter wire;
  wire(number, ask);
  std::visit([&](const auto& answered) { wire(*answered); }, answer);
  return wire.take();
}

RemoteItem read_item(std::string_view body) {
  WireReader wire(body);
  RemoteItem item;
  wire(item.number, item.ask);
  item.answer = read_answer(wire, item.ask);
  wire.finish();
  return item;
}

std::string to_body(const RemoteHello& hello) { return to_wire(hello); }
std::string to_body(const RemoteAdded& added) { return to_wire(added); }
std::string to_body(const RemoteWanted& wanted) { return to_wire(wanted); }
std::string to_body(const RemoteOrder& order) { return to_wire(order); }
std::string to_body(const RemoteState& state) { return to_wire(state); }

RemoteHello read_hello(std::string_view body) {
  auto hello = from_wire<RemoteHello>(body);
  for (const MapSource& call : hello.calls) check_call(call);
  if (hello.calls.empty()) fail_wire("no calls at all");
  if (hello.own_calls < 1 || hello.own_calls > std::ssize(hello.calls)) {
    fail_wire("a first capture of no calls");
  }
  return hello;
}

RemoteAdded read_added(std::string_view body) {
  auto added = from_wire<RemoteAdded>(body);
  for (const MapSource& call : added.calls) check_call(call);
  return added;
}

RemoteWanted read_wanted(std::string_view body) {
  auto wanted = from_wire<RemoteWanted>(body);
  if (wanted.held.size() != wanted.wishes.size()) {
    fail_wire("wishes that do not say what is there");
  }
  return wanted;
}

RemoteOrder read_order(std::string_view body) {
  auto order = from_wire<RemoteOrder>(body);
  for (const auto* side : {&order.rows, &order.keys}) {
    std::vector<uint8_t> seen(side->size());
    for (const int32_t token : *side) {
      const bool fits = token >= 0 && static_cast<size_t>(token) < seen.size();
      if (!fits || seen[static_cast<size_t>(token)] != 0) fail_wire("an order that is none");
      seen[static_cast<size_t>(token)] = 1;
    }
  }
  return order;
}

RemoteState read_state(std::string_view body) { return from_wire<RemoteState>(body); }

}  // namespace attnscope
