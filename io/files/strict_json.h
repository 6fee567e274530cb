#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace attnscope {

/// Values in one JSON text unless told otherwise: a file of 100 000 tensors stays below it, and a
/// hostile one takes about 100 MiB of memory, however long it is.
constexpr int64_t kMaxJsonValues = 1 << 20;

/// Parses JSON from a file nobody vouches for: valid UTF-8, at most 64 levels deep, at most
/// `max_values` values, no key twice in an object, nothing after the value. Throws Error(file)
/// "FILE: WHERE: …" with the byte where the text breaks the grammar.
///
/// The grammar is nlohmann's, through its SAX interface; what is here adds what its parser does not
/// offer: limits, and a refusal of a key that occurs twice, of which it keeps the last.
nlohmann::json parse_strict_json(std::string_view text, const std::string& file,
                                 const std::string& where, int64_t max_values = kMaxJsonValues);

}  // namespace attnscope
