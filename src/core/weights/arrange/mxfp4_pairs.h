#pragma once

#include "base/result.h"
#include "core/weights/checkpoint.h"
#include "core/weights/file_tensors.h"

namespace foretoken {

/// Adds the tensors that folders keep in MXFP4 as pairs of bytes: NAME_blocks [..., blocks, 16],
/// the elements of a block two by two, the first in the low half, and NAME_scales [..., blocks]
/// become NAME [..., blocks * 32] when it is read. Bytes that are no such pair are refused.
Status ArrangePairs(const ByteTensorMap& bytes, Checkpoint* checkpoint);

}  // namespace foretoken
