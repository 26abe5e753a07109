#pragma once

#include "apps/foretoken/options/options.h"

namespace foretoken {

// For a command that has several targets, each with options of its own.

/// Like AddModelOptions, without the options that say which target.
void AddDraftAndFormatOptions(CLI::App* app, ModelOptions* options, int most_drafts = 1);

/// The cores that the target gets when it is loaded: its own, or the draft's too where
/// `decoding_mode` never leaves these to a draft and the user named none.
const CoreSet& TargetCores(const DecodingOptions& options, const Cores& from,
                           std::optional<Mode> decoding_mode);

/// DecodingOptions::Load, with `progress` in place of a bar on the terminal.
Result<Decoding> LoadDecoding(DecodingOptions* options, std::optional<Mode> decoding_mode,
                              LoadProgress progress);

}  // namespace foretoken
