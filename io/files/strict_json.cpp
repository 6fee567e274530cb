#include "io/files/strict_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxDepth = 64;

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
  StrictBuilder(const std::string& file, const std::string& where, int64_t max_values)
      : file_(file), where_(where), max_values_(max_values) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::value_t::object); }
  bool start_array(size_t) override { return open(Json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
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
  template <typename Value>
  Json* place(Value&& value) {
    if (++values_ > max_values_) {
      throw file_error(file_, where_,
                       "JSON has too many values (limit " + std::to_string(max_values_) + ")");
    }
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
    open_.push_back(place(type));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& file_;
  const std::string& where_;
  const int64_t max_values_;
  int64_t values_ = 0;
  Json root_;
  /// The objects and arrays that are not closed yet, outermost first. An array grows only while it
  /// is the last one here, so the pointers hold.
  std::vector<Json*> open_;
  Json* member_ = nullptr;  ///< of the object that is the last one here
};

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& file,
                                 const std::string& where, int64_t max_values) {
  StrictBuilder builder(file, where, max_values);
  Json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace attnscope
