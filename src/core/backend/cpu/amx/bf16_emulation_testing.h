#pragma once

#include "core/backend/cpu/kernels.h"

namespace foretoken::cpu::amx_emulated {

/// The AMX kernels on tiles emulated in plain loops: runs their logic on any machine.
const Kernels& Table();

}  // namespace foretoken::cpu::amx_emulated
