#pragma once

#include <string>

#include "core/base/error.h"

namespace attnscope {

/// A page cannot carry this head: what was asked for can be meant, so that something else may be
/// shown in the page's place.
class FigureRefusal : public Error {
 public:
  using Error::Error;
};

}  // namespace attnscope
