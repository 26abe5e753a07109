#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foretoken/adapter.h"
#include "foretoken/engine.h"
#include "foretoken/model.h"
#include "foretoken/result.h"
#include "foretoken/types.h"

namespace foretoken {

/// A text of which an engine may have the keys and values of the beginning, and whose it is.
struct CachedText {
  std::vector<Token> tokens;
  AdapterUse adapter = {};  ///< Request::adapter.
  std::uint64_t scope = 0;  ///< Request::prefix_scope.
  std::string owner;        ///< Who may take a saved one back; empty: who is nobody, too.
};

/// Does some work, a few milliseconds of it, on the thread that steps an engine, between two steps,
/// and returns when that is done. May be null where this is that thread.
using OnEngineThread = std::function<void(const std::function<void()>& work)>;

/// A file of keys and values.
struct SavedPrefix {
  CachedText text;          ///< The text; what is kept is the first `tokens` tokens of it.
  std::int32_t tokens = 0;  ///< How many of the text's first tokens are kept.
  std::uint64_t bytes = 0;  ///< The size of the file.
};

/// Writes what the engine of `model` has of the text to a file, its owner's alone, that
/// RestorePrefix takes back in another run of the same model on a machine of the same kind: so many
/// tokens of a prompt need not be computed again. That is whole blocks of 32 tokens of what is in
/// the prefix cache. An error where this is nothing, or the file cannot be written, which then
/// stays as it was (kUnavailable); and where it holds a text of another owner.
Result<SavedPrefix> SavePrefix(const LanguageModel& model, Engine& engine, const CachedText& text,
                               const std::string& path, const OnEngineThread& on_engine = {});

/// Puts what a file holds into the engine's prefix cache, in `scope`: tokens are then as if the
/// engine had computed it. Refuses a file of another model, adapter or owner, of another precision
/// or kind of machine, and a damaged one. kUnavailable: there is no room for it now.
Result<SavedPrefix> RestorePrefix(const LanguageModel& model, Engine& engine, std::uint64_t scope,
                                  const std::string& owner, const std::string& path,
                                  const OnEngineThread& on_engine = {});

/// Has the engine forget the text, as far as no sequence and no other cached text needs it. Returns
/// how many tokens' keys and values are gone.
std::int32_t ForgetPrefix(Engine& engine, const CachedText& text,
                          const OnEngineThread& on_engine = {});

}  // namespace foretoken
