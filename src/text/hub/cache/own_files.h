#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// A cache of models may be shared, and another account may have put links into it, so that what is
// written there would land elsewhere. Every file that this layer makes in a cache comes from here.

/// An error where a folder between `cache` and `path`, or `path` itself, is a link that another
/// account than this one and root has made.
Status CheckLinks(const std::filesystem::path& cache, const std::filesystem::path& path);

/// Opens a file to read and write, making it where it is missing; -1, with errno, where that fails.
/// What is no plain file of this account alone (a link, a file with a second name, one of
/// another's) is none that was begun here: it makes way for a new one.
int OpenOwn(const std::filesystem::path& path);

/// A name in `folder` that nobody can have foreseen.
std::filesystem::path FreshName(const std::filesystem::path& folder);

/// Writes a new file of such a name and gives it its own.
Status WriteWhole(const std::filesystem::path& file, const std::filesystem::path& folder,
                  std::string_view content);

/// Why something in a cache cannot be written: kUnavailable where that is the cache's state (it is
/// full, or not to be written to), not what was asked for.
Error CannotWrite(const std::filesystem::path& path, int reason);

}  // namespace foretoken
