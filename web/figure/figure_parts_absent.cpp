#include "web/figure/figure_parts.h"

namespace attnscope {

std::span<const unsigned char> figure_engine() { return {}; }

}  // namespace attnscope
