#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "foretoken/sampling.h"

namespace foretoken {

/// Options of sampling that a model's files may have a value for.
inline constexpr const char* kModelSamplingOptions[] = {"--temp", "--top-k", "--top-p", "--min-p",
                                                        "--repeat-penalty"};

/// Sets in `sampling` what the makers of a model recommend, in the generation_config.json of its
/// folder (a GGUF file has none), but for the options `given`, of those above. A configuration with
/// `"do_sample": false` recommends nothing.
Status AddModelSampling(const std::string& model, const std::set<std::string>& given,
                        SamplingParams* sampling);

}  // namespace foretoken
