#pragma once

#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>

#include "io/files/json_types.h"

namespace attnscope {

struct HelperQuestion;

/// The structure of a foreign file as the HDF5 library tells it; each call asks it in the helper
/// process and throws as ask_helper. Nothing of it is checked against the file.
///
/// {"attributes": {name: value}, "datasets": [{"path", "shape", "dtype", "big_endian", "layout":
/// "contiguous" | "chunked", "address", "chunk", "filters": [{"id", "name", "values"}]},
/// {"path", "text"} of a single string, or {"path", "error"}]}; attributes are the strings, truth
/// values, numbers and lists of a few numbers of the root, of groups (GROUP/NAME), and of datasets
/// (DATASET/NAME) where their name is one of value_names.h.
Json read_hdf5_structure(const std::string& path, const std::stop_token& stop = {});

/// The root's attributes alone.
Json read_hdf5_attributes(const std::string& path);

/// The chunks of a dataset: [[first index of each axis …, address, stored bytes, filter mask], …].
Json read_hdf5_chunks(const std::string& path, const std::string& dataset,
                      const std::stop_token& stop = {});

/// The questions that these functions ask the helper process (io/helper).
extern const HelperQuestion kHdf5StructureQuestion;
extern const HelperQuestion kHdf5AttributesQuestion;
extern const HelperQuestion kHdf5ChunksQuestion;

}  // namespace attnscope
