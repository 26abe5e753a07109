#pragma once

#include <string>

#include "weights/model_folder.h"

namespace foretoken {

/// Tells models apart: SHA-256, in hexadecimal digits, of the configuration, of every tensor's name
/// and type, and of a sample of its bytes.
std::string FingerprintModel(const ModelFolder& folder);

}  // namespace foretoken
