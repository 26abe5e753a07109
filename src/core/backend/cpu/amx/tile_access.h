#pragma once

namespace foretoken {

/// Whether the processor has tiles (AMX) and their products of BF16 numbers, or of 8-bit integers,
/// and the system lets this program use them, for which it is asked.
bool MayUseBf16Tiles();
bool MayUseInt8Tiles();

}  // namespace foretoken
