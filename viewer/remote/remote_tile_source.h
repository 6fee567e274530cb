#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "viewer/remote/messages.h"

namespace attnscope {

/// Tiles of maps that a server has (TileServer), whatever brings the messages. The TileSource's
/// members are the window's thread's; those of the link's thread are said to be so. The two may run
/// at once.
///
/// Items that came are kept within a limit of bytes: the least recently used ones go first, wanted
/// ones never. While there is no connection all that are kept can be found.
class RemoteTileSource : public TileSource {
 public:
  /// `name`: what lines about it begin with. `wake` is called from any thread, without locks.
  RemoteTileSource(std::string name, RemoteHello hello, int64_t memory, std::function<void()> wake);

  MapGeometry geometry(const HeadId& head) const override;
  int64_t order_number(const MapPlaces& places) override;
  void want(Wishes wishes) override;
  Answer find(const Ask& ask) const override;
  std::string problem(const Ask& ask) const override;
  bool offers(const Ask& kind) const override { return hello_.offers[kind.index()]; }
  bool exact(const HeadId& head) const override;
  TileSourceStatus status() const override;

  /// The server's first message when the source was opened.
  const RemoteHello& hello() const { return hello_; }
  /// The additions to the capture since the last call of this function, one after the other.
  std::vector<RemoteAdded> take_added();
  /// The warning of the server's quick check; empty: none.
  std::string warning() const;
  bool connected() const;
  /// Why nothing more may come: the connection broke again after it was tried anew, and nothing new
  /// came in between; one line. It is still tried, for those who look on. Empty: no such reason.
  std::string link_problem() const;
  /// Throws Error(file) where a file there is not as it was when it was opened.
  void require_unchanged() const;
  /// Called from the window's thread when outgoing() has something to say.
  void set_link_wake(std::function<void()> wake) { wake_link_ = std::move(wake); }

  // Of the link's thread:

  /// There is a connection once more. False where there is something else to be looked at now: it
  /// is said by status().problem then, and there should be no further connection.
  bool reopened(const RemoteHello& hello);
  /// Throws Error(file) where it is nothing that a server says here.
  void take(const Message& message);
  /// The messages for the server that came up since the last call of this function.
  std::vector<Message> outgoing();
  /// There is no connection; one line. Empty: there is one again.
  void set_problem(const std::string& problem);
  /// The connection was lost, or could not be opened again; why, one line. The second time, unless
  /// something new came in between, it is link_problem().
  void count_loss(const std::string& why);
  /// "12 ms, 3.4 MB/s". A window is woken when something begins or ends to come (`moving`), not for
  /// another number: one at rest draws nothing.
  void set_speed(const std::string& speed, bool moving);

 private:
  struct Held {
    uint64_t number = 0;
    Answer answer;
    int64_t bytes = 0;
    mutable uint64_t used = 0;
  };

  void store(RemoteItem item);
  void check(const RemoteItem& item) const;
  const MapSource& call_of(const HeadId& head) const;
  void take_calls(RemoteAdded added);
  void make_room();
  std::string named(const std::string& text) const;

  const std::string name_;
  const RemoteHello hello_;
  const int64_t memory_;
  const std::function<void()> wake_;
  std::function<void()> wake_link_ = [] {};
  /// Of hello_ and what was added, as they were sent: what is there after a connection was lost.
  std::vector<std::string> call_bytes_;

  mutable std::mutex mutex_;
  std::vector<MapSource> calls_;
  std::unordered_map<std::string, Held> held_;
  int64_t held_bytes_ = 0;
  mutable uint64_t uses_ = 0;
  std::vector<MapPlaces> orders_;  ///< number i + 1
  size_t orders_told_ = 0;
  Wishes wishes_;
  std::set<std::string> wished_;  ///< keys
  uint64_t wanted_ = 0;           ///< number of the last wishes
  bool wanted_told_ = true;
  uint64_t received_ = 0;  ///< the last item
  bool received_told_ = true;
  RemoteState state_;                                      ///< without its problems
  std::unordered_map<std::string, std::string> problems_;  ///< by key
  std::set<HeadId> exact_;
  std::vector<RemoteAdded> added_;
  std::string refused_, problem_, speed_;
  int losses_ = 0;  ///< since something new came
  std::string loss_;
  bool lost_for_good_ = false, moving_ = false;
};

}  // namespace attnscope
