#include <string>
#include <string_view>

#include "tests/fuzz/targets.h"
#include "viewer/remote/answer_checks.h"
#include "viewer/remote/messages.h"

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

/// What the client shows answers about.
const MapSource& shown_call() {
  static const MapSource call = [] {
    MapSource made;
    made.branches = {"cond"};
    made.batch = made.heads = {0};
    made.queries = made.keys = TokenGrid::video(600, {10, 6, 10}, 0, TextPlace::none);
    made.rows = made.cols = {0, 600};
    return made;
  }();
  return call;
}

void read_body(const Message& message) {
  switch (message.type) {
    case MessageType::hello:
      return expect_error([&] {
        const RemoteHello hello = read_hello(message.body);
        // What was believed can be asked.
        for (const MapSource& call : hello.calls) {
          for (const TokenGrid* side : {&call.queries, &call.keys}) {
            for (const int64_t at : {int64_t{0}, side->tokens() / 2, side->tokens() - 1}) {
              (void)side->segment(at);
              (void)side->any_coord(at);
              if (side->has_map()) (void)side->place_text(at);
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
        if (answer_bytes(item.answer) > static_cast<int64_t>(9 * message.body.size())) std::abort();
      });
    case MessageType::state:
      return expect_error([&] { (void)read_state(message.body); });
    case MessageType::wanted:
      return expect_error([&] {
        // Read, written and read again it is the same.
        const RemoteWanted wanted = read_wanted(message.body);
        if (!(read_wanted(to_body(wanted)).wishes == wanted.wishes)) std::abort();
      });
    case MessageType::order:
      return expect_error([&] { (void)read_order(message.body); });
    default:
      return;
  }
}

}  // namespace

// Bytes of a line between a window and a server: the greeting where there is one, then frames.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  expect_error([&] { (void)take_greeting(bytes); });
  expect_error([&] {
    while (const auto message = take_frame(bytes, size_t{1} << 20)) read_body(*message);
  });
  return 0;
}
