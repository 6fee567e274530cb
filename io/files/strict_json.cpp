#include "io/files/strict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "io/files/head_memory.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

constexpr size_t kMaxDepth = 64;
/// A list of the words of a prompt, a description: the library's lexer holds a string three times.
constexpr size_t kMaxStringBytes = 4 << 20;
/// Every double has an exact form that is shorter.
constexpr size_t kMaxNumberBytes = 1024;
/// Bytes that the library takes for a value in an array that grows, for a member of an object
/// beside its key and value, and for an object or array itself, with the allocator's share.
constexpr int64_t kValueBytes = 48;
constexpr int64_t kMemberBytes = 112;
constexpr int64_t kContainerBytes = 80;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
         c == '-' || c == '.';
}

/// The library's lexer collects a string or number however long it is, so that it is measured
/// before. Whether it is one is the lexer's business.
void check_lengths(std::string_view text, const std::string& file, const std::string& where) {
  const auto check = [&](size_t begin, size_t end, const char* what, size_t limit) {
    if (end - begin <= limit) return;
    throw file_error(file, where,
                     std::string("a ") + what + " of the JSON is too long (byte " +
                         std::to_string(begin + 1) + ", limit " + std::to_string(limit) + ")");
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
      at = std::min(at + 1, text.size());
      check(begin, at, "string", kMaxStringBytes);
    } else if (is_word(text[at])) {
      while (at < text.size() && is_word(text[at])) ++at;
      check(begin, at, "number", kMaxNumberBytes);
    } else {
      ++at;
    }
  }
}

/// The library's text without its own prefix: "[json.exception…] parse error at line …: ".
std::string plain_message(const std::string& what) {
  const size_t bracket = what.find("] ");
  const std::string text = bracket == std::string::npos ? what : what.substr(bracket + 2);
  const size_t colon = text.rfind("parse error", 0) == 0 ? text.find(": ") : std::string::npos;
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// Builds the value while it is read, so that a text that is too deep, too long or states a key
/// twice is left at once. The library's callback parser would need every key a second time.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(size_t text_bytes, const std::string& file, const std::string& where,
                const JsonLimits& limits)
      : file_(file), where_(where), limits_(limits), memory_(file, limits.memory) {
    take_memory(static_cast<int64_t>(text_bytes));
  }

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override {
    take_memory(string_bytes(value));
    return add(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::value_t::object); }
  bool start_array(size_t) override { return open(Json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    take_memory(kMemberBytes + string_bytes(name));
    const auto [place, fresh] =
        open_.back()->get_ref<Json::object_t&>().emplace(std::move(name), nullptr);
    if (!fresh) throw file_error(file_, where_, "the key \"" + place->first + "\" occurs twice");
    member_ = &place->second;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw file_error(
        file_, where_,
        "is no valid JSON: byte " + std::to_string(position) + ": " + plain_message(error.what()));
  }

 private:
  /// On the heap, beside the value itself.
  static int64_t string_bytes(const string_t& text) {
    return kValueBytes + static_cast<int64_t>(text.capacity());
  }
  void take_memory(int64_t bytes) { memory_.take(bytes, where_, "its JSON"); }
  template <typename Value>
  Json* place(Value&& value) {
    if (++values_ > limits_.values) {
      throw file_error(file_, where_,
                       "JSON has too many values (limit " + std::to_string(limits_.values) + ")");
    }
    take_memory(kValueBytes);
    Json* target = &root_;
    if (!open_.empty() && open_.back()->is_array()) {
      target = &open_.back()->get_ref<Json::array_t&>().emplace_back();
    } else if (!open_.empty()) {
      target = member_;
    }
    *target = Json(std::forward<Value>(value));
    return target;
  }
  template <typename Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json::value_t type) {
    if (open_.size() == kMaxDepth) {
      throw file_error(file_, where_, "JSON is nested deeper than " + std::to_string(kMaxDepth));
    }
    take_memory(kContainerBytes);
    open_.push_back(place(type));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& file_;
  const std::string& where_;
  const JsonLimits limits_;
  int64_t values_ = 0;
  HeadMemory memory_;
  Json root_;
  /// The objects and arrays that are not closed yet, outermost first. An array grows only while it
  /// is the last one here, so the pointers hold.
  std::vector<Json*> open_;
  Json* member_ = nullptr;  ///< of the object that is the last one here
};

}  // namespace

Json parse_strict_json(std::string_view text, const std::string& file, const std::string& where,
                       const JsonLimits& limits) {
  StrictBuilder builder(text.size(), file, where, limits);
  check_lengths(text, file, where);
  Json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace attnscope
