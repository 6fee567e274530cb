#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "io/export/read/stored_call.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"

namespace attnscope {

/// Batch items and heads of a group at most.
inline constexpr int64_t kMostIndices = 1 << 20;

/// Reads the attributes in which a group of an export describes its call, in the helper process.
Json read_call_attributes(const Hdf5Reader& reader, hid_t group);

/// The JSON that `read` makes of each of these groups (names) of the export at `path`, in their
/// order; in the helper process, too.
Json read_groups(const std::string& path, const Json& groups,
                 Json (*read)(const Hdf5Reader&, const std::string& group));

/// Parses the JSON of read_call_attributes() to facts, without sequences.
StoredFacts call_attributes(const Json& json);

/// The sequences of a call whose last exported row and key are rows_end − 1 and keys_end − 1.
/// Throws Error(usage) where grid and text cannot be.
void set_sequences(StoredFacts& facts, const Json& attributes, int64_t rows_end, int64_t keys_end);

}  // namespace attnscope
