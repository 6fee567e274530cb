#include "io/files/base64.h"

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/binary_from_base64.hpp>
#include <boost/archive/iterators/dataflow_exception.hpp>
#include <boost/archive/iterators/transform_width.hpp>

namespace attnscope {
namespace {

namespace iterators = boost::archive::iterators;
using Digits =
    iterators::base64_from_binary<iterators::transform_width<const unsigned char*, 6, 8>>;
using Bytes = iterators::transform_width<iterators::binary_from_base64<const char*>, 8, 6>;

/// Digits of the text of so many bytes without its padding.
size_t digit_count(size_t bytes) { return (bytes * 8 + 5) / 6; }
size_t text_size(size_t bytes) { return (bytes + 2) / 3 * 4; }

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  std::string text;
  text.reserve(text_size(bytes.size()));
  const Digits end(data + bytes.size());
  for (Digits digit(data); digit != end; ++digit) text += *digit;
  text.resize(text_size(bytes.size()), '=');
  return text;
}

bool from_base64(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() != text_size(bytes.size())) return false;
  const std::string_view digits = text.substr(0, digit_count(bytes.size()));
  if (text.substr(digits.size()) != std::string(text.size() - digits.size(), '=')) return false;
  if (digits.find('=') != std::string_view::npos) return false;  // Boost reads it as a zero
  try {
    Bytes byte(digits.data());
    for (std::byte& to : bytes) to = static_cast<std::byte>(*byte++);
  } catch (const iterators::dataflow_exception&) {
    return false;
  }
  return true;
}

}  // namespace attnscope
