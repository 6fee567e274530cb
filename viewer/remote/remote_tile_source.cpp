#include "viewer/remote/remote_tile_source.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "viewer/remote/answer_checks.h"
#include "viewer/remote/wire_values.h"

namespace attnscope {
namespace {

/// Calls that may be added, and problems that may be told, before anybody asks for them.
constexpr size_t kMostAdded = 1000;

std::vector<std::string> bytes_of_calls(const std::vector<MapSource>& calls) {
  std::vector<std::string> bytes;
  for (const MapSource& call : calls) bytes.push_back(to_wire(call));
  return bytes;
}

}  // namespace

RemoteTileSource::RemoteTileSource(std::string name, RemoteHello hello, int64_t memory,
                                   std::function<void()> wake)
    : name_(std::move(name)),
      hello_(std::move(hello)),
      memory_(memory),
      wake_(std::move(wake)),
      call_bytes_(bytes_of_calls(hello_.calls)),
      calls_(hello_.calls) {}

const MapSource& RemoteTileSource::call_of(const HeadId& head) const {
  const bool known = head.call >= 0 && head.call < std::ssize(calls_);
  const MapSource* const call = known ? &calls_[static_cast<size_t>(head.call)] : nullptr;
  if (call == nullptr || head.batch < 0 || head.batch >= std::ssize(call->batch) || head.head < 0 ||
      head.head >= std::ssize(call->heads)) {
    throw usage_error(name_ + ": there is no such head");
  }
  return *call;
}

MapGeometry RemoteTileSource::geometry(const HeadId& head) const {
  const std::lock_guard lock(mutex_);
  const MapSource& call = call_of(head);
  return MapGeometry::of(call.queries.tokens(), call.keys.tokens());
}

int64_t RemoteTileSource::order_number(const MapPlaces& places) {
  if (!hello_.computed) return TileSource::order_number(places);
  if (places.is_identity()) return 0;
  const std::lock_guard lock(mutex_);
  const auto known = std::find(orders_.begin(), orders_.end(), places);
  if (known != orders_.end()) return known - orders_.begin() + 1;
  orders_.push_back(places);
  return std::ssize(orders_);
}

void RemoteTileSource::want(Wishes wishes) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_ > 0 && wishes == wishes_) return;
    wished_.clear();
    for (const Wish& wish : wishes) wished_.insert(ask_key(wish.ask));
    wishes_ = std::move(wishes);
    refused_.clear();
    ++wanted_;
    wanted_told_ = false;
    make_room();
  }
  wake_link_();
}

Answer RemoteTileSource::find(const Ask& ask) const {
  const std::string key = ask_key(ask);
  const std::lock_guard lock(mutex_);
  const auto known = held_.find(key);
  if (known == held_.end()) return no_answer(ask);
  known->second.used = ++uses_;
  return known->second.answer;
}

std::string RemoteTileSource::problem(const Ask& ask) const {
  const std::lock_guard lock(mutex_);
  if (problems_.empty() && !lost_for_good_) return "";
  const std::string key = ask_key(ask);
  // Nothing more will come.
  if (lost_for_good_ && !held_.contains(key)) return problem_;
  // The server may try anew what went wrong when it was asked for before.
  const bool may_come = std::holds_alternative<LineRequest>(ask) ||
                        std::holds_alternative<TileId>(ask) ||
                        std::holds_alternative<MassRequest>(ask);
  if (may_come && state_.wanted != wanted_) return "";
  const auto told = problems_.find(key);
  return told == problems_.end() ? "" : told->second;
}

bool RemoteTileSource::exact(const HeadId& head) const {
  const std::lock_guard lock(mutex_);
  return exact_.contains(head);
}

TileSourceStatus RemoteTileSource::status() const {
  const std::lock_guard lock(mutex_);
  TileSourceStatus status = state_.status;
  if (state_.wanted != wanted_) {
    // The server's last status is about other wishes.
    status.busy = true;
    status.queue = std::max<int64_t>(status.queue, 1);
  }
  status.host_bytes = held_bytes_;
  status.link = problem_.empty() ? speed_ : "no connection";
  for (const std::string* problem : {&refused_, &problem_}) {
    if (!problem->empty()) status.problem = *problem;
  }
  if (lost_for_good_) {
    // Nothing more will come: whoever waits should not.
    status.busy = false;
    status.queue = 0;
  }
  return status;
}

std::vector<RemoteAdded> RemoteTileSource::take_added() {
  const std::lock_guard lock(mutex_);
  return std::exchange(added_, {});
}

std::string RemoteTileSource::warning() const {
  const std::lock_guard lock(mutex_);
  return state_.warning;
}

std::string RemoteTileSource::link_problem() const {
  const std::lock_guard lock(mutex_);
  return losses_ > 1 ? loss_ : "";
}

bool RemoteTileSource::connected() const {
  const std::lock_guard lock(mutex_);
  return problem_.empty();
}

void RemoteTileSource::require_unchanged() const {
  const std::lock_guard lock(mutex_);
  if (!state_.changed.empty()) {
    throw Error(ErrorCode::file, name_ + ": " + one_line(state_.changed));
  }
}

bool RemoteTileSource::reopened(const RemoteHello& hello) {
  {
    const std::lock_guard lock(mutex_);
    const std::vector<std::string> now = bytes_of_calls(hello.calls);
    const bool as_before =
        now.size() >= call_bytes_.size() && hello.computed == hello_.computed &&
        std::equal(call_bytes_.begin(), call_bytes_.end(), now.begin()) &&
        (now.size() == call_bytes_.size() || hello.own_calls == std::ssize(hello.calls));
    if (!as_before) {
      problem_ = name_ + ": holds other calls than before the connection was lost: open it again";
      lost_for_good_ = true;
    } else {
      orders_told_ = 0;
      wanted_told_ = wanted_ == 0;
      received_ = 0;
      received_told_ = true;
      // Nothing that is held has a number of the new connection.
      for (auto& [key, held] : held_) held.number = 0;
      if (now.size() > call_bytes_.size()) {
        RemoteAdded added;
        const auto first = static_cast<ptrdiff_t>(call_bytes_.size());
        added.calls.assign(hello.calls.begin() + first, hello.calls.end());
        added.pictures = hello.pictures;
        take_calls(std::move(added));
      }
      problem_.clear();
    }
  }
  wake_();
  return !lost_for_good_;
}

void RemoteTileSource::check(const RemoteItem& item) const {
  if (item.number != received_ + 1) fail_wire("items out of turn");
  const int64_t call = call_of_ask(item.ask);
  if (call < 0 || call >= std::ssize(calls_)) fail_wire("an answer about no call that there is");
  check_answer(item, calls_[static_cast<size_t>(call)]);
}

void RemoteTileSource::store(RemoteItem item) {
  check(item);
  received_ = item.number;
  received_told_ = false;
  std::string key = ask_key(item.ask);
  Held held{item.number, std::move(item.answer), 0, ++uses_};
  held.bytes = answer_bytes(held.answer) + static_cast<int64_t>(2 * key.size()) + 200;
  const auto known = held_.find(key);
  if (known != held_.end()) {
    held_bytes_ -= known->second.bytes;
  } else {
    losses_ = 0;
  }
  held_bytes_ += held.bytes;
  held_.insert_or_assign(std::move(key), std::move(held));
  make_room();
}

/// Drops the items used longest ago until a tenth of the limit is free: each time sorts them all.
void RemoteTileSource::make_room() {
  if (held_bytes_ <= memory_) return;
  std::vector<std::pair<uint64_t, const std::string*>> old;
  for (const auto& [key, held] : held_) {
    if (!wished_.contains(key)) old.emplace_back(held.used, &key);
  }
  std::sort(old.begin(), old.end());
  for (const auto& [used, key] : old) {
    if (held_bytes_ <= memory_ - memory_ / 10) return;
    const auto gone = held_.find(*key);
    held_bytes_ -= gone->second.bytes;
    held_.erase(gone);
  }
}

void RemoteTileSource::take_calls(RemoteAdded added) {
  for (const MapSource& call : added.calls) {
    call_bytes_.push_back(to_wire(call));
    calls_.push_back(call);
  }
  added_.push_back(std::move(added));
}

void RemoteTileSource::take(const Message& message) {
  {
    const std::lock_guard lock(mutex_);
    switch (message.type) {
      case MessageType::item:
        store(read_item(message.body));
        break;
      case MessageType::state: {
        state_ = read_state(message.body);
        for (const HeadId& head : state_.exact) exact_.insert(head);
        problems_.clear();
        for (auto& [ask, problem] : std::exchange(state_.problems, {})) {
          problems_[ask_key(ask)] = std::move(problem);
        }
        break;
      }
      case MessageType::added: {
        if (added_.size() >= kMostAdded) fail_wire("more calls than anybody asks for");
        take_calls(read_added(message.body));
        break;
      }
      case MessageType::refused:
        refused_ = name_ + ": " + one_line(from_wire<std::string>(message.body));
        break;
      default:
        fail_wire("what no server says here");
    }
  }
  wake_();
}

std::vector<Message> RemoteTileSource::outgoing() {
  const std::lock_guard lock(mutex_);
  std::vector<Message> messages;
  for (; orders_told_ < orders_.size(); ++orders_told_) {
    RemoteOrder order;
    order.number = static_cast<int64_t>(orders_told_) + 1;
    const auto rows = orders_[orders_told_].rows.tokens(),
               keys = orders_[orders_told_].keys.tokens();
    order.rows.assign(rows.begin(), rows.end());
    order.keys.assign(keys.begin(), keys.end());
    messages.push_back({MessageType::order, to_body(order)});
  }
  if (!wanted_told_) {
    RemoteWanted wanted{wanted_, received_, wishes_, {}};
    for (const Wish& wish : wishes_) {
      const auto known = held_.find(ask_key(wish.ask));
      wanted.held.push_back(known == held_.end() ? 0 : known->second.number);
    }
    messages.push_back({MessageType::wanted, to_body(wanted)});
    wanted_told_ = true;
  }
  if (!received_told_) {
    messages.push_back({MessageType::received, to_wire(received_)});
    received_told_ = true;
  }
  return messages;
}

/// One line that begins with the name, once.
std::string RemoteTileSource::named(const std::string& text) const {
  const std::string line = one_line(text);
  return line.starts_with(name_ + ": ") ? line : name_ + ": " + line;
}

void RemoteTileSource::set_problem(const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_for_good_) problem_ = problem.empty() ? "" : named(problem);
  }
  wake_();
}

void RemoteTileSource::count_loss(const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++losses_;
  loss_ = named(why);
}

void RemoteTileSource::set_speed(const std::string& speed, bool moving) {
  {
    const std::lock_guard lock(mutex_);
    speed_ = speed;
    if (std::exchange(moving_, moving) == moving) return;
  }
  wake_();
}

}  // namespace attnscope
