#include "foretoken/saved_prefix.h"
#include "base/numbers/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/files/private_files.h"
#include "base/files/replace_file.h"
#include "core/engine/prefix_transfer.h"
#include "core/kv/prefix_file.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/receipt.h"

namespace foretoken {
namespace {

// Copied at once, while the engine waits.
constexpr std::size_t kSliceBytes = std::size_t{8} << 20;

void Run(const OnEngineThread& on_engine, const std::function<void()>& work) {
  on_engine ? on_engine(work) : work();
}

// A PrefixTransfer that begins and ends on the engine's thread, and has found what is cached.
class Transfer {
 public:
  Transfer(Engine& engine, const KvScope& scope, const std::vector<Token>& tokens,
           const OnEngineThread& on_engine)
      : on_engine_(on_engine) {
    Run(on_engine_, [&] {
      transfer_.emplace(engine, scope, tokens);
      found_ = transfer_->Match();
    });
  }
  ~Transfer() {
    Run(on_engine_, [this] { transfer_.reset(); });
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  std::int32_t found() const { return found_; }
  PrefixTransfer* operator->() { return &*transfer_; }
  std::uint64_t BytesOf(std::int32_t begin, std::int32_t end, std::int32_t blocks) const {
    std::uint64_t bytes = 0;
    for (std::int32_t i = begin; i < end; ++i) bytes += transfer_->BytesOf(i, blocks);
    return bytes;
  }
  // Where a slice ends that begins with block `begin`.
  std::int32_t SliceEnd(std::int32_t begin, std::int32_t blocks) const {
    std::int32_t end = begin + 1;
    while (end < blocks && BytesOf(begin, end + 1, blocks) <= kSliceBytes) ++end;
    return end;
  }

 private:
  const OnEngineThread& on_engine_;
  std::optional<PrefixTransfer> transfer_;
  std::int32_t found_ = 0;
};

// How the numbers came about: what gives other bits is called otherwise.
std::string NumbersOf(const LanguageModel& model, const std::string& layout) {
  const Backend& backend = *model.loaded().backend;
  return fmt::format("{}, {} (version {}), KV {}, {}", backend.name(),
                     PrecisionName(backend.precision()), kPortableVersion,
                     KvFormatName(backend.kv_format()), layout);
}

PrefixFileHead PrefixHead(const LanguageModel& model, const CachedText& text,
                          const std::string& layout) {
  const LoadedModel& loaded = model.loaded();
  PrefixFileHead head{.model = FingerprintText(loaded.identity.model),
                      .numbers = NumbersOf(model, layout),
                      .owner = text.owner,
                      .tokens = text.tokens};
  if (text.adapter.index >= 0) {
    head.adapter = loaded.adapter_fingerprints.at(Size(text.adapter.index));
    head.adapter_scale = text.adapter.scale;
  }
  return head;
}

std::string NameOf(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Refuses what is there and not a file of this owner's.
Status MayReplace(const std::string& path, const std::string& owner) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (!fs::exists(there)) return {};
  const Error refused =
      Invalid("'{}' is there and is no file of saved keys and values of yours: choose another name",
              NameOf(path));
  if (!fs::is_regular_file(there)) return refused;
  const auto file = MappedFile::Open(path, WhenLost::kZeros);
  if (!file.ok()) return refused;
  const Result<PrefixFile> old = ParsePrefixFile((*file)->bytes(), NameOf(path));
  if (!old.ok() || old->head.owner != owner) return refused;
  return {};
}

Result<AdapterUse> AdapterOfPrefix(const PrefixFileHead& head, const LoadedModel& loaded,
                                   const std::string& name) {
  if (head.adapter.empty()) return AdapterUse{};
  const auto found = std::ranges::find(loaded.adapter_fingerprints, head.adapter);
  if (found == loaded.adapter_fingerprints.end()) {
    return Invalid("'{}' was computed with an adapter that was not loaded with the model", name);
  }
  return AdapterUse{static_cast<int>(found - loaded.adapter_fingerprints.begin()),
                    head.adapter_scale};
}

// Whether a file's numbers are this engine's. `own` is what this engine would write.
Status CheckFits(const PrefixFileHead& head, const PrefixFileHead& own, int vocabulary, int context,
                 const std::string& name) {
  if (head.numbers != own.numbers) {
    return Invalid("'{}' was computed or kept otherwise ({}) than here ({}): save the text again",
                   name, head.numbers, own.numbers);
  }
  if (std::ranges::max(head.tokens) >= vocabulary) {
    return Invalid("'{}' has tokens that the model has not", name);
  }
  if (std::ssize(head.tokens) > context) {
    return Invalid("'{}' holds {} tokens, and the context only {}", name, head.tokens.size(),
                   context);
  }
  return {};
}

Status CheckPrefixOrigin(const PrefixFileHead& head, const LanguageModel& model,
                         const std::string& owner, const std::string& name) {
  if (head.owner != owner) {
    return Invalid("'{}' holds a text of somebody else's", name);
  }
  const std::string fingerprint = FingerprintText(model.loaded().identity.model);
  if (head.model == fingerprint) return {};
  return Invalid("'{}' is of another model than {}, with the fingerprint {}", name,
                 model.source().label(), head.model);
}

Error GivenAway(const std::string& name) {
  return {ErrorCode::kUnavailable,
          fmt::format("the keys and values of '{}' gave way to running requests; try again later",
                      name)};
}

}  // namespace

Result<SavedPrefix> SavePrefix(const LanguageModel& model, Engine& engine, const CachedText& text,
                               const std::string& path, const OnEngineThread& on_engine) {
  FT_RETURN_IF_ERROR(MayReplace(path, text.owner));
  Transfer transfer(engine, {text.scope, text.adapter}, text.tokens, on_engine);
  const std::int32_t blocks = transfer.found();
  if (blocks == 0) {
    return Invalid(
        "nothing of the text's {} tokens is in the prefix cache, which keeps whole blocks of {}",
        text.tokens.size(), kBlockSize);
  }
  PrefixFileHead head = PrefixHead(model, text, transfer->Layout());
  head.blocks = static_cast<std::uint32_t>(blocks);
  head.bytes = transfer.BytesOf(0, blocks, blocks);
  FT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path, kPrivateFile));
  PrefixDigest digest;
  std::uint64_t written = 0;
  const auto write = [&](std::string_view part) {
    digest.Update(part);
    written += part.size();
    return file.Write(part);
  };
  FT_RETURN_IF_ERROR(write(FormatPrefixFileHead(head)));
  std::vector<std::byte> slice;
  for (std::int32_t begin = 0, end = 0; begin < blocks; begin = end) {
    end = transfer.SliceEnd(begin, blocks);
    slice.resize(transfer.BytesOf(begin, end, blocks));
    bool there = true;
    Run(on_engine, [&] {
      std::span<std::byte> rest = slice;
      for (std::int32_t i = begin; i < end && there; ++i) {
        const std::size_t bytes = transfer->BytesOf(i, blocks);
        there = transfer->CopyOut(i, blocks, rest.first(bytes));
        rest = rest.subspan(bytes);
      }
    });
    if (!there) return GivenAway(NameOf(path));
    FT_RETURN_IF_ERROR(write({reinterpret_cast<const char*>(slice.data()), slice.size()}));
  }
  FT_RETURN_IF_ERROR(file.Write(digest.Finish()));
  FT_RETURN_IF_ERROR(file.Finish());
  return SavedPrefix{
      .text = text, .tokens = blocks * kBlockSize, .bytes = written + PrefixDigest::kBytes};
}

Result<SavedPrefix> RestorePrefix(const LanguageModel& model, Engine& engine, std::uint64_t scope,
                                  const std::string& owner, const std::string& path,
                                  const OnEngineThread& on_engine) {
  const std::string name = NameOf(path);
  // Somebody may cut it off meanwhile; what is then read is no longer what the digest is of.
  FT_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(path, WhenLost::kZeros));
  FT_ASSIGN_OR_RETURN(const PrefixFile file, ParsePrefixFile(mapped->bytes(), name));
  const PrefixFileHead& head = file.head;
  FT_RETURN_IF_ERROR(CheckPrefixOrigin(head, model, owner, name));
  CachedText text{.tokens = head.tokens, .scope = scope, .owner = owner};
  FT_ASSIGN_OR_RETURN(text.adapter, AdapterOfPrefix(head, model.loaded(), name));
  Transfer transfer(engine, {scope, text.adapter}, text.tokens, on_engine);
  FT_RETURN_IF_ERROR(CheckFits(head, PrefixHead(model, text, transfer->Layout()),
                               model.facts().vocabulary, engine.limits().context, name));
  FT_RETURN_IF_ERROR(CheckPrefixDigest(mapped->bytes(), name));
  // The text's last token has nothing there: it was not computed when the text was saved.
  const std::size_t most = (head.tokens.size() - 1) / kBlockSize;
  const auto blocks = static_cast<std::int32_t>(std::min<std::size_t>(head.blocks, most));
  if (head.blocks == 0 || head.blocks > most || transfer.BytesOf(0, blocks, blocks) != head.bytes) {
    return Invalid("'{}' is damaged: {} bytes are no {} blocks of its {} tokens", name, head.bytes,
                   head.blocks, head.tokens.size());
  }
  std::span<const std::byte> rest = file.kept;
  const auto next = [&](std::int32_t index) {
    const auto bytes = rest.first(transfer->BytesOf(index, blocks));
    rest = rest.subspan(bytes.size());
    return bytes;
  };
  for (std::int32_t i = 0; i < std::min(transfer.found(), blocks); ++i) next(i);
  for (std::int32_t begin = transfer.found(), end = 0; begin < blocks; begin = end) {
    end = transfer.SliceEnd(begin, blocks);
    bool room = true;
    bool sound = true;
    Run(on_engine, [&] {
      for (std::int32_t i = begin; i < end && room && sound; ++i) {
        const auto bytes = next(i);
        sound = transfer->AreSound(i, blocks, bytes);
        room = sound && transfer->CopyIn(i, blocks, bytes);
      }
    });
    if (!sound) return Invalid("'{}' is damaged: a state is wrong", name);
    if (!room) {
      return Unavailable("there is no room now for the {} tokens of '{}'; try again later",
                         blocks * kBlockSize, name);
    }
  }
  const bool whole = mapped->lost() == nullptr || !*mapped->lost();
  if (!whole) return Invalid("'{}' was changed while it was read", name);
  bool published = true;
  Run(on_engine, [&] { published = transfer->Publish(); });
  if (!published) return GivenAway(name);
  return SavedPrefix{.text = std::move(text),
                     .tokens = std::max(blocks, transfer.found()) * kBlockSize,
                     .bytes = mapped->bytes().size()};
}

std::int32_t ForgetPrefix(Engine& engine, const CachedText& text, const OnEngineThread& on_engine) {
  std::int32_t forgotten = 0;
  Run(on_engine, [&] {
    forgotten = ForgetPrefix(engine, KvScope{text.scope, text.adapter}, text.tokens);
  });
  return forgotten;
}

}  // namespace foretoken
