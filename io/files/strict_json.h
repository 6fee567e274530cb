#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/json_types.h"

namespace attnscope {

/// The limits of one JSON text.
struct JsonLimits {
  int64_t values = 1 << 20;             ///< a file of 100 000 tensors stays below it
  int64_t memory = int64_t{256} << 20;  ///< bytes of the text and of what is made of it together
};

/// Parses JSON from a file nobody vouches for: valid UTF-8, at most 64 levels deep, within
/// `limits`, strings of at most 4 MiB and numbers of at most 1024 characters, no key twice in an
/// object, nothing after the value. Throws Error(file) "FILE: WHERE: …" with the byte where the
/// text breaks the grammar, Error(resource) where it would take more memory.
///
/// The grammar is nlohmann's, through its SAX interface; what is here adds what its parser does not
/// offer: limits, and a refusal of a key that occurs twice, of which it keeps the last.
Json parse_strict_json(std::string_view text, const std::string& file, const std::string& where,
                       const JsonLimits& limits = {});

}  // namespace attnscope
