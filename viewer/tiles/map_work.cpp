#include "viewer/tiles/map_work.h"

namespace attnscope {

std::string head_text(const HeadId& id) {
  return "call " + std::to_string(id.call) + ", batch item " + std::to_string(id.batch) +
         ", head " + std::to_string(id.head);
}

}  // namespace attnscope
