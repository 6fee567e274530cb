#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "viewer/remote/messages.h"

namespace attnscope {

/// Shows the maps of a tile source to one client, whatever brings the messages. Not thread-safe.
///
/// The latest wishes are served first: no item is sent while kMostUnderWay bytes or more are not
/// acknowledged, so that new wishes overtake older ones. An item is sent once, and again when there
/// is a better one or the client no longer has it.
class TileServer {
 public:
  static constexpr int64_t kMostUnderWay = int64_t{2} << 20;

  /// Functions that give a state's texts beside the source's status; each may be empty.
  struct Watched {
    std::function<std::string()> warning;  ///< of the quick check
    std::function<std::string()> changed;  ///< which file is not as it was when it was opened
  };

  /// Borrows the source, which it has for itself.
  TileServer(TileSource& tiles, RemoteHello hello, Watched watched);

  /// Takes a message of the client. Throws Error(file) where it is none that a client sends, so
  /// that the connection should end. Wishes that the source refuses are answered.
  void take(const Message& message);
  /// Something new may be found in the source.
  void look();
  /// Tells of calls, pictures and problems that came.
  void add(const RemoteAdded& added);
  /// The next message to be sent, at this time in seconds; nothing until take() or look(), or until
  /// `due()`.
  std::optional<Message> next(double now);
  /// When next() has more to say although nothing happened; nothing: it has not.
  std::optional<double> due() const { return due_; }

 private:
  /// One of the wishes, as the client names it.
  struct Asked {
    Ask ask;
    std::string key;
  };
  /// The item that was last sent for a key.
  struct Sent {
    uint64_t number = 0;
    std::weak_ptr<const void> answer;
  };

  /// An order that the client told.
  struct Order {
    int64_t number = 0;          ///< the source's
    int64_t rows = 0, keys = 0;  ///< tokens that it is of; 0: of any number, which it leaves alone
  };

  void take_wishes(RemoteWanted wanted);
  void take_order(const RemoteOrder& order);
  /// The head as the source calls it. Throws Error(file) where its order was never told, or is one
  /// of other tokens than the head's map has; Error(usage) where there is no such head.
  HeadId own(HeadId head) const;
  /// Throws Error(file) as well where an order is named for what goes by stored tokens.
  Ask own(Ask ask) const;
  /// Queues a message to go before all items. Throws Error(file) where too many already wait.
  void answer(Message message);
  void refuse(const std::string& why);
  std::optional<Message> next_item();
  std::optional<Message> next_state(double now);
  RemoteState state();
  /// Of a picture of which nothing was sent yet the coarsest tile comes before the lines.
  void put_picture_first();
  void forget_unwanted();

  TileSource& tiles_;
  Watched watched_;
  bool greeted_ = false;
  std::vector<Message> urgent_;
  std::map<int64_t, Order> orders_;  ///< by the client's numbers
  uint64_t wanted_number_ = 0;
  std::vector<Asked> asks_;
  size_t cursor_ = 0;  ///< of asks_: what is before it has been sent as it is
  std::unordered_map<std::string, Sent> sent_;
  uint64_t number_ = 0;  ///< of the last item
  /// Bytes of items that are under way, by their numbers.
  std::map<uint64_t, int64_t> under_way_;
  int64_t bytes_under_way_ = 0;
  std::string told_state_;
  double state_at_ = -1e9, checked_at_ = -1e9;
  std::string changed_;
  std::optional<double> due_;
};

}  // namespace attnscope
