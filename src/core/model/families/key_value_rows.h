#pragma once

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Folders of models with latent attention keep what makes keys and values of all heads in one
/// tensor, "kv_b", head by head: it becomes "k_b" [heads, rank, key] and "v_b" [heads, value, rank]
/// (Family::arrange). One that does not fit the others of its layer stays, and is found later.
Status ArrangeKeysAndValues(Checkpoint* checkpoint);

}  // namespace foretoken
