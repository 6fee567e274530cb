#include "tests/cuda/emulation_helpers.h"
