#include "apps/foretoken/server/slots/slot_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// A text goes on with another where it begins with at least half of that: chats are cut off or
// changed at their end.
bool GoesOnWith(const CachedText& text, const CachedText& earlier) {
  if (earlier.tokens.empty() || text.scope != earlier.scope || text.adapter != earlier.adapter) {
    return false;
  }
  const auto [differs, unused] = std::ranges::mismatch(text.tokens, earlier.tokens);
  return 2 * (differs - text.tokens.begin()) >= std::ssize(earlier.tokens);
}

Error NothingThere(int slot) {
  return InvalidInput(fmt::format("slot {} has no text of yours: it keeps the one that was decoded "
                                  "there last",
                                  slot),
                      "id_slot");
}

}  // namespace

SlotKeeper::SlotKeeper(std::string folder, int slots) : folder_(std::move(folder)), texts_(slots) {}

std::size_t SlotKeeper::PlaceOf(const CachedText& text) const {
  std::size_t best = 0;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (GoesOnWith(text, texts_[i].text)) return i;
    if (texts_[i].noted < texts_[best].noted) best = i;
  }
  return best;
}

void SlotKeeper::Note(int slot, CachedText text) {
  const std::lock_guard lock(mutex_);
  const std::size_t place = slot >= 0 && slot < slots() ? Size(slot) : PlaceOf(text);
  texts_[place] = {std::move(text), ++notes_};
}

std::optional<CachedText> SlotKeeper::TextIn(int slot, const SlotUser& user) const {
  const std::lock_guard lock(mutex_);
  if (slot < 0 || slot >= slots()) return std::nullopt;
  const CachedText& text = texts_[slot].text;
  if (text.tokens.empty() || text.owner != user.name || text.scope != user.scope) {
    return std::nullopt;
  }
  return text;
}

std::size_t SlotKeeper::TokensIn(int slot, const SlotUser& user) const {
  const auto text = TextIn(slot, user);
  return text.has_value() ? text->tokens.size() : 0;
}

// A plain name: no way out of the folder, and nothing that is hidden there.
Result<std::string> SlotKeeper::PathOf(const std::string& filename) const {
  constexpr std::size_t kLongest =
      200;  // File systems have 255, and a file in the making has more.
  const bool plain = std::ranges::all_of(filename, [](char c) {
    return c == '-' || c == '_' || c == '.' || c == ' ' || c == '+' || c == '=' || c == '@' ||
           (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  });
  if (filename.empty() || filename.size() > kLongest || filename.front() == '.' || !plain ||
      !IsUtf8(filename)) {
    return InvalidInput(
        fmt::format("'filename' must be a plain name of letters, digits, '-', '_' and '.', at most "
                    "{} bytes, that does not begin with '.': files lie in the folder of "
                    "--slot-save-path",
                    kLongest),
        "filename");
  }
  return folder_ + "/" + filename;
}

Result<SlotOutcome> SlotKeeper::Do(const SlotAction& action, const SlotUser& user,
                                   const SlotEngine& engine) {
  const std::unique_lock only(files_mutex_, std::try_to_lock);
  if (!only.owns_lock()) {
    return Error{ErrorCode::kUnavailable,
                 "another slot is being saved or restored; try again later"};
  }
  const auto begin = std::chrono::steady_clock::now();
  Result<SlotOutcome> outcome = Run(action, user, engine);
  if (outcome.ok()) {
    outcome->milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  }
  // Clients see names, not where the operator keeps them.
  Error error = outcome.error();
  const std::string folder = folder_ + "/";
  for (std::size_t at = 0; (at = error.message.find(folder)) != error.message.npos;) {
    error.message.erase(at, folder.size());
  }
  return error;
}

Result<SlotOutcome> SlotKeeper::Run(const SlotAction& action, const SlotUser& user,
                                    const SlotEngine& engine) {
  if (action.slot < 0 || action.slot >= slots()) {
    return InvalidInput(
        fmt::format("there is no slot {}: they are 0 to {}", action.slot, slots() - 1), "id_slot");
  }
  if (action.kind == SlotAction::Kind::kErase) {
    const auto text = TextIn(action.slot, user);
    if (!text.has_value()) return SlotOutcome{};
    {
      const std::lock_guard lock(mutex_);
      texts_[action.slot] = {};
    }
    return SlotOutcome{.tokens = ForgetPrefix(*engine.engine, *text, engine.on_engine)};
  }
  FT_ASSIGN_OR_RETURN(const std::string path, PathOf(action.filename));
  if (action.kind == SlotAction::Kind::kSave) {
    const auto text = TextIn(action.slot, user);
    if (!text.has_value()) return NothingThere(action.slot);
    FT_ASSIGN_OR_RETURN(const SavedPrefix saved,
                        SavePrefix(*engine.model, *engine.engine, *text, path, engine.on_engine));
    return SlotOutcome{.tokens = saved.tokens, .bytes = saved.bytes};
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return InvalidInput(fmt::format("there is no file '{}' of a saved slot", action.filename),
                        "filename");
  }
  FT_ASSIGN_OR_RETURN(SavedPrefix restored, RestorePrefix(*engine.model, *engine.engine, user.scope,
                                                          user.name, path, engine.on_engine));
  Note(action.slot, std::move(restored.text));
  return SlotOutcome{.tokens = restored.tokens, .bytes = restored.bytes};
}

}  // namespace foretoken::server
