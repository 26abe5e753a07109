#include "text/hub/transfer/fetch_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "text/hub/cache/file_lock.h"
#include "text/hub/transfer/checksum.h"
#include "text/hub/transfer/partial_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// One file on its way into the cache.
class FileFetch {
 public:
  using Progress = std::function<void(std::string_view doing, std::uint64_t done)>;

  FileFetch(const HubFile& file, const FileSource& source, Progress progress, PartialFile* partial)
      : file_(file),
        client_(source.client),
        url_(source.client->UrlOf(file, source.commit)),
        progress_(std::move(progress)),
        partial_(partial) {}

  // Until all of it is there.
  Status FetchAll() {
    bool ranges_ignored = false;
    const Status fetched = FetchPieces(/*ranges=*/true, &ranges_ignored);
    if (fetched.ok() || !ranges_ignored) return fetched;
    FT_RETURN_IF_ERROR(partial_->StartOver(file_.size));
    return FetchPieces(/*ranges=*/false, &ranges_ignored);
  }

 private:
  Status FetchPieces(bool ranges, bool* ranges_ignored) {
    std::vector<Fetch> fetches;
    for (std::size_t i = 0; i < partial_->pieces(); ++i) {
      if (partial_->next(i) < partial_->end(i)) fetches.push_back(FetchOf(i, ranges));
    }
    progress_("Fetching", partial_->done());
    const Status status = client_->FetchAll(fetches);
    *ranges_ignored =
        std::ranges::any_of(fetches, [](const Fetch& fetch) { return fetch.ignores_ranges; });
    return status;
  }

  Fetch FetchOf(std::size_t piece, bool ranges) {
    return {.url = url_,
            .size = file_.size,
            .begin = [this, piece, ranges] { return Wanted(piece, ranges); },
            .take = [this, piece](std::string_view bytes) -> Status {
              FT_RETURN_IF_ERROR(partial_->Append(piece, bytes));
              progress_("Fetching", partial_->done());
              return {};
            }};
  }

  // What is to be asked for: the rest of the piece, or the file where that is all of it.
  Result<std::optional<ByteRange>> Wanted(std::size_t piece, bool ranges) {
    if (!ranges) FT_RETURN_IF_ERROR(partial_->Restart(piece));
    const ByteRange rest{partial_->next(piece), partial_->end(piece)};
    if (rest.begin == 0 && rest.end == file_.size) return std::optional<ByteRange>();
    return std::optional<ByteRange>(rest);
  }

  const HubFile& file_;
  HubClient* client_;
  const std::string url_;
  const Progress progress_;
  PartialFile* partial_;
};

Status CheckRoom(const PartialFile& partial, const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  const std::uint64_t missing = partial.size() - partial.done();
  if (error || missing <= space.available) return {};
  return Unavailable("there are {} bytes to fetch, but '{}' has room for {}", missing,
                     folder.string(), space.available);
}

}  // namespace

Status FetchFile(const HubFile& file, const FileSource& source, const HubSettings& settings,
                 const FetchHooks& hooks, std::uint64_t before, std::uint64_t all) {
  const CachedModel& model = *source.model;
  const fs::path blob = model.Blob(file.hash);
  const std::string shown = Printable(file.path);
  const auto progress = [&](std::string_view doing, std::uint64_t done) {
    hooks.progress(fmt::format("{} {}", doing, shown), before + done, all);
  };
  FT_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Acquire(model.Lock(file.hash), FileLock::Kind::kExclusive, hooks.cancelled, [&] {
        hooks.warn(fmt::format("another process is fetching {}: waiting for it", shown));
      }));
  std::error_code ignored;
  if (fs::is_regular_file(blob, ignored)) return {};

  const fs::path path = blob.string() + ".foretoken.incomplete";
  FT_ASSIGN_OR_RETURN(PartialFile partial,
                      PartialFile::Open(path, file.size, settings.piece_bytes));
  FT_RETURN_IF_ERROR(CheckRoom(partial, blob.parent_path()));
  FileFetch fetch(file, source, progress, &partial);
  // What an earlier try has left may be bad: then all of it is fetched once more.
  for (bool resumed = partial.done() > 0;; resumed = false) {
    FT_RETURN_IF_ERROR(fetch.FetchAll());
    FT_ASSIGN_OR_RETURN(
        const std::string hash,
        HashOfFile(path, file.size, file.hash_is_sha256() ? HashKind::kSha256 : HashKind::kGitSha1,
                   [&](std::uint64_t read) {
                     progress("Checking", read);
                     return !hooks.cancelled();
                   }));
    if (hash == file.hash) return partial.Finish(blob);
    FT_RETURN_IF_ERROR(partial.StartOver(settings.piece_bytes));
    if (resumed) continue;
    return Invalid("{} came with the hash {}, but must have {}: it is not used", shown, hash,
                   file.hash);
  }
}

}  // namespace foretoken
