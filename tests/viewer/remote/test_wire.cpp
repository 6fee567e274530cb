// Messages come out as they went in, and nothing that a peer sends does more than throw.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/wishes.h"
#include "viewer/remote/messages.h"
#include "viewer/remote/wire_values.h"

using namespace attnscope;

namespace {

MapSource some_call() {
  MapSource call;
  call.name = "step 3 layer 7";
  call.step = 3;
  call.layer = 7;
  call.kind = CallKind::joint;
  call.place = {"blocks.7.attn", "", 2, {true, false, true}};
  call.branches = {"cond", "uncond"};
  call.batch = {0, 1};
  call.heads = {0, 1, 2};
  call.queries = TokenGrid::video(70, {4, 4, 4}, 6, TextPlace::end);
  call.queries.set_text_valid({3, 5});
  call.keys = call.queries;
  call.tokens = {{"a", "\u00e9t\u00e9"}, {}};
  call.mask = "causal";
  call.evicted = {{{3, 5}, {0, 2}}};
  call.rows = {0, 70};
  call.cols = {0, 70};
  call.precision = "q, k bf16";
  return call;
}

/// Segments of every kind.
TokenGrid some_map() {
  std::vector<TokenSegment> segments(3);
  segments[0].name = "words";
  segments[0].modality = Modality::text;
  segments[0].tokens = {0, 5};
  segments[0].valid_tokens = std::make_shared<const std::vector<std::vector<uint8_t>>>(
      2, std::vector<uint8_t>{1, 1, 0, 1, 0});
  segments[1].name = "ref";
  segments[1].modality = Modality::video;
  segments[1].tokens = {5, 13};
  segments[1].grid = {2, 2, 2};
  segments[1].order = CellOrder::listed;
  segments[1].cells =
      std::make_shared<const std::vector<int32_t>>(std::vector{7, 6, 5, 4, 3, 2, 1, 0});
  segments[2].name = "clip";
  segments[2].modality = Modality::video;
  segments[2].tokens = {13, 25};
  segments[2].grid = {3, 2, 2};
  segments[2].position = 40;
  return TokenGrid::of_segments(std::move(segments)).with_video("clip");
}

RemoteWanted some_wishes() {
  RemoteWanted wanted;
  wanted.number = 9;
  wanted.received = uint64_t{1} << 40;
  test::WishesByKind w;
  const HeadId head{0, 1, 2, 0};
  w.line = LineRequest{head, Quantity::logits, true, {1, 5, 900}, false};
  w.tiles = {{head, Quantity::weights, 3, 2, 1, {}},
             {{0, 0, 1, 4}, Quantity::weights, 0, 0, 0, Against{head, Difference::log_ratio}}};
  w.exact = {head};
  w.probes = {{head, 5, 6}};
  w.sketches = {head, {0, 0, 0, 0}};
  w.exact_sketches = {head};
  w.masses = MassRequest{head, {0, 70}, {64, 70}};
  w.frames = {{0, 64, 48}};
  w.exact_differences = {{head, Quantity::weights, {head, Difference::absolute}}};
  w.tracks = head;
  w.divergence = HeadsCompared{head, {0, 0, 0, 0}};
  w.mask = MaskRequest{head, "spatial:frames=1", 64, {{0, 5, 1, 2, true}}, true};
  wanted.wishes = w;
  wanted.held.assign(wanted.wishes.size(), 7);
  return wanted;
}

}  // namespace

TEST_CASE("numbers, texts and lists come out of the wire as they went in") {
  const std::vector<int64_t> whole{0,
                                   -1,
                                   1,
                                   63,
                                   64,
                                   -64,
                                   -65,
                                   int64_t{1} << 40,
                                   std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max()};
  CHECK(from_wire<std::vector<int64_t>>(to_wire(whole)) == whole);
  CHECK(from_wire<uint64_t>(to_wire(~uint64_t{0})) == ~uint64_t{0});
  const std::vector<float> floats{0.0f,
                                  -0.0f,
                                  1e-42f,
                                  std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN(),
                                  0.1f};
  const auto back = from_wire<std::vector<float>>(to_wire(floats));
  REQUIRE(back.size() == floats.size());
  CHECK(std::memcmp(back.data(), floats.data(), floats.size() * sizeof(float)) == 0);
  CHECK(from_wire<std::string>(to_wire(std::string("a\0b", 3))) == std::string("a\0b", 3));
  // Numbers that are too large, and lists that are longer than what is there.
  CHECK_THROWS_AS(from_wire<int32_t>(to_wire(int64_t{1} << 40)), Error);
  CHECK_THROWS_AS(from_wire<uint64_t>(std::string(10, '\xff') + '\x01'), Error);
  CHECK_THROWS_AS(from_wire<std::vector<double>>(to_wire(uint64_t{1} << 60)), Error);
  CHECK_THROWS_AS(from_wire<std::vector<std::string>>(to_wire(uint64_t{1} << 60)), Error);
}

TEST_CASE("calls, token maps and wishes come out of the wire as they went in") {
  RemoteHello hello;
  hello.version = "1";
  hello.calls = {some_call(), some_call()};
  hello.calls[1].queries = hello.calls[1].keys = some_map();
  hello.calls[1].rows = hello.calls[1].cols = {0, 25};
  hello.calls[1].queries = TokenGrid::text_only(25);
  hello.own_calls = 1;
  hello.pictures = {0, 0, 3};
  hello.warnings = {"w"};
  hello.offers[Ask(MaskRequest{}).index()] = true;
  const RemoteHello back = read_hello(to_body(hello));
  REQUIRE(back.calls.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const MapSource &a = hello.calls[i], &b = back.calls[i];
    CHECK(a.queries == b.queries);
    CHECK(a.keys == b.keys);
    CHECK(a.keys.video_range() == b.keys.video_range());
    CHECK(a.tokens == b.tokens);
    CHECK(a.branches == b.branches);
    CHECK(a.heads == b.heads);
    CHECK(a.place == b.place);
    CHECK(a.place.unrecorded.text() == b.place.unrecorded.text());
    CHECK(a.evicted == b.evicted);
    CHECK(a.kind == b.kind);
    CHECK(a.precision == b.precision);
    // All of it, also what has no comparison.
    CHECK(to_wire(a) == to_wire(b));
  }
  CHECK(back.pictures == hello.pictures);
  CHECK(back.offers == hello.offers);
  const RemoteWanted wanted = some_wishes();
  const RemoteWanted same = read_wanted(to_body(wanted));
  CHECK(same.wishes == wanted.wishes);
  CHECK(same.held == wanted.held);
  CHECK(same.received == wanted.received);
}

TEST_CASE("of a call with impossible sizes nothing is believed") {
  const auto refused = [](const std::function<void(MapSource&)>& change) {
    RemoteHello hello;
    hello.calls = {some_call()};
    hello.own_calls = 1;
    change(hello.calls[0]);
    CHECK_THROWS_AS(read_hello(to_body(hello)), Error);
  };
  refused([](MapSource& c) { c.heads = {}; });
  refused([](MapSource& c) { c.heads = {2, 1}; });
  refused([](MapSource& c) { c.branches = {"a", "b", "c"}; });
  refused([](MapSource& c) { c.tokens.resize(3); });
  refused([](MapSource& c) { c.rows = {0, 71}; });
  refused([](MapSource& c) { c.cols = {5, 5}; });
  refused([](MapSource& c) { c.block = 0; });
  refused([](MapSource& c) { c.queries = TokenGrid::unknown(0); });
  // A row to be looked at, and keys that a cache had dropped.
  refused([](MapSource& c) { c.first_row = 70; });
  refused([](MapSource& c) { c.first_row = -2; });
  refused([](MapSource& c) { c.evicted = {{{3, 71}, {0, 2}}}; });
  refused([](MapSource& c) { c.evicted = {{{3, 5}, {-1, 2}}}; });
  // Padding of some batch items and not of the last.
  const auto of_three = [](MapSource& c) {
    c.batch = {0, 1, 2};
    c.branches = {"cond"};
    c.tokens.resize(1);
  };
  {
    RemoteHello hello;
    hello.calls = {some_call()};
    hello.own_calls = 1;
    of_three(hello.calls[0]);
    hello.calls[0].queries.set_text_valid({3, 5, 6});
    hello.calls[0].keys = hello.calls[0].queries;
    CHECK_NOTHROW(read_hello(to_body(hello)));
  }
  refused(of_three);
  refused([&](MapSource& c) {
    of_three(c);
    c.queries = TokenGrid::unknown(70);
    c.keys = some_map();
    c.cols = {0, 25};
  });
  RemoteHello none;
  CHECK_THROWS_AS(read_hello(to_body(none)), Error);
}

TEST_CASE("an order is one of all places, each once") {
  CHECK(read_order(to_body(RemoteOrder{1, {2, 0, 1}, {}})).rows == std::vector<int32_t>{2, 0, 1});
  CHECK_THROWS_AS(read_order(to_body(RemoteOrder{1, {2, 0, 2}, {}})), Error);
  CHECK_THROWS_AS(read_order(to_body(RemoteOrder{1, {}, {0, 3}})), Error);
  CHECK_THROWS_AS(read_order(to_body(RemoteOrder{1, {-1}, {}})), Error);
}

TEST_CASE("frames come apart again whatever pieces they come in, long ones deflated") {
  std::string bytes = "motd: welcome\n" + greeting();
  const Message small{MessageType::ping, "x"};
  const Message large{MessageType::state, std::string(100000, 'a')};
  bytes += to_frame(small) + to_frame(large);
  CHECK(to_frame(large).size() < 2000);
  std::string got;
  std::optional<Greeting> greeted;
  std::vector<Message> messages;
  for (const char c : bytes) {
    got += c;
    if (!greeted) greeted = take_greeting(got);
    if (!greeted) continue;
    while (auto message = take_frame(got, kMostFromServer)) messages.push_back(*message);
  }
  REQUIRE(greeted);
  CHECK(greeted->protocol == kProtocol);
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].body == "x");
  CHECK(messages[1].body == large.body);
  CHECK(got.empty());
}

TEST_CASE("frames that are none, too long, or inflate without end are refused") {
  const auto refused = [](std::string bytes) { CHECK_THROWS_AS(take_frame(bytes, 1000), Error); };
  refused(std::string("\x01\0\0\0", 4));
  refused(std::string("\xff\xff\xff\x7f", 4));
  refused(std::string("\x02\0\0\0\x63\0", 6));
  refused(std::string("\x02\0\0\0\x01\x02", 6));
  // 3 MB in a few bytes, where 1000 are taken.
  refused(to_frame({MessageType::state, std::string(3000000, '\0')}));
  // A length that deflate cannot have made of so little.
  refused(std::string("\x0c\0\0\0\x04\x01\xe8\x03\0\0abcdef", 16));
  std::string noise(300 << 10, 'n');
  CHECK_THROWS_AS(take_greeting(noise), Error);
  std::string strange = "\nattnscope tiles many\n";
  CHECK_THROWS_AS(take_greeting(strange), Error);
}

TEST_CASE("messages that were cut or changed throw, and nothing else") {
  const std::vector<std::string> bodies{to_body(some_wishes()), [] {
                                          RemoteHello hello;
                                          hello.calls = {some_call()};
                                          hello.calls[0].keys = some_map();
                                          hello.calls[0].cols = {0, 25};
                                          hello.own_calls = 1;
                                          return to_body(hello);
                                        }()};
  const auto read_both = [](const std::string& body) {
    int read = 0;
    try {
      (void)read_wanted(body);
      ++read;
    } catch (const Error&) {
    }
    try {
      (void)read_hello(body);
      ++read;
    } catch (const Error&) {
    }
    return read;
  };
  std::mt19937 random(7);
  for (const std::string& body : bodies) {
    CHECK(read_both(body) == 1);
    for (size_t cut = 0; cut < body.size(); ++cut) CHECK(read_both(body.substr(0, cut)) == 0);
    for (int i = 0; i < 3000; ++i) {
      std::string changed = body;
      for (int k = 0; k <= i % 3; ++k) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      read_both(changed);
    }
  }
}
