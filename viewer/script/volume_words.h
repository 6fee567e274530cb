#pragma once

#include "viewer/script/script_arguments.h"
#include "viewer/view/looks/volume_look.h"

namespace attnscope {

/// The words behind `volume`: what they change of its look. Throws Error(usage) without a place.
VolumeChange parse_volume_words(const ScriptArguments& words);

}  // namespace attnscope
