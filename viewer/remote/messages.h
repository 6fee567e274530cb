#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/remote/wire.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

// The messages between two sides, of which one has maps and the other shows them.
//
// The one with the maps begins, with the line greeting(), which programs of any version understand.
// Frames follow, both ways: the length of the rest (4 bytes, little-endian), the type (1 byte), how
// the body is packed (1 byte), the body.

/// Programs understand each other that have the same.
inline constexpr int kProtocol = 7;

enum class MessageType : uint8_t {
  hello = 1,      ///< of the server: what there is
  added = 2,      ///< calls and pictures that came since
  item = 3,       ///< a tile, a line …
  state = 4,      ///< where the server stands
  refused = 5,    ///< a text: why something that was asked for is not done
  pong = 6,       ///< the ping's body
  greeted = 16,   ///< of the client: kProtocol
  wanted = 17,    ///< what it would like to have
  order = 18,     ///< an order of tokens that it will name by its number
  received = 19,  ///< the number of the last item that came
  ping = 20,      ///< any few bytes, to be sent back
};

struct Message {
  MessageType type{};
  std::string body;
};

/// "\nattnscope tiles 5 0.1.0\n": what a server writes first.
std::string greeting();
struct Greeting {
  int protocol = 0;
  std::string version;
};
/// Takes it, with everything before it (what a login prints), off the beginning of `bytes`; nothing
/// while it is not there. Throws Error(file) where so much came that it will not.
std::optional<Greeting> take_greeting(std::string& bytes);

/// The longest frames that each side takes.
inline constexpr size_t kMostFromClient = size_t{4} << 20;
inline constexpr size_t kMostFromServer = size_t{64} << 20;

/// The bytes of a message, deflated where that is worth it, unless what carries them deflates.
enum class FramePacking : uint8_t { deflated, plain };
std::string to_frame(const Message& message, FramePacking packing = FramePacking::deflated);
/// Takes the first frame off `bytes`; nothing while it is not whole. Throws Error(file) where its
/// length, or that of its body once inflated, is more than `most`, and where it is no frame.
std::optional<Message> take_frame(std::string& bytes, size_t most);

/// The server's first message: its calls and pictures, and which products it has of them.
struct RemoteHello {
  std::string version;                   ///< of the program
  std::string name;                      ///< what is shown, by its path there; may be empty
  std::vector<MapSource> calls;          ///< of the first capture, then of the second one
  int64_t own_calls = 0;                 ///< of them, that are not the second one's
  bool computed = true;                  ///< no export
  std::array<bool, kAskKinds> offers{};  ///< TileSource::offers(), in the order of Ask
  std::vector<int64_t> pictures;  ///< the latent frame that each picture of the video belongs to
  std::vector<std::string> warnings;
};

/// RemoteHello::offers of a source.
std::array<bool, kAskKinds> offers_of(const TileSource& tiles);

/// The calls and pictures that came to a capture that grows.
struct RemoteAdded {
  std::vector<MapSource> calls;
  std::optional<std::vector<int64_t>> pictures;  ///< where there are others now: all of them
  std::vector<std::string> warnings;
  std::string problem;  ///< why what is added cannot be read, one line; may be empty
};

/// A name of what is asked for, which no other has.
std::string ask_key(const Ask& ask);

struct RemoteWanted {
  uint64_t number = 0;    ///< ascending
  uint64_t received = 0;  ///< the last item that had come
  Wishes wishes;
  std::vector<uint64_t> held;  ///< for each wish: the item that is there already; 0: none
};

struct RemoteOrder {
  int64_t number = 0;               ///< from 1 on; HeadId::order of the client
  std::vector<int32_t> rows, keys;  ///< the token at each place; empty: its own
};

struct RemoteItem {
  uint64_t number = 0;  ///< from 1 on
  Ask ask;
  Answer answer;
};
std::string item_body(uint64_t number, const Ask& ask, const Answer& answer);
/// Throws Error(file).
RemoteItem read_item(std::string_view body);

struct RemoteState {
  uint64_t wanted = 0;  ///< RemoteWanted::number that it is after
  TileSourceStatus status;
  std::vector<HeadId> exact;                          ///< of the heads whose tiles are wanted
  std::vector<std::pair<Ask, std::string>> problems;  ///< TileSource::problem() of what is wanted
  std::string warning;                                ///< of the quick check
  std::string changed;  ///< a file that is not as it was when it was opened; empty: none
};

std::string to_body(const RemoteHello& hello);
std::string to_body(const RemoteAdded& added);
std::string to_body(const RemoteWanted& wanted);
std::string to_body(const RemoteOrder& order);
std::string to_body(const RemoteState& state);
/// Each throws Error(file) where the body is no such thing; calls have been checked to be of the
/// sizes that they say.
RemoteHello read_hello(std::string_view body);
RemoteAdded read_added(std::string_view body);
RemoteWanted read_wanted(std::string_view body);
RemoteOrder read_order(std::string_view body);
RemoteState read_state(std::string_view body);

}  // namespace attnscope
