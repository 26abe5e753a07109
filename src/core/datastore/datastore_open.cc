#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "core/datastore/datastore.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// When a file was last written to, in days since the first of January 1970; 0 where it is not
// there.
int DayOf(const fs::path& path) {
  constexpr std::int64_t kSeconds = std::int64_t{24} * 60 * 60;
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? static_cast<int>(status.st_mtim.tv_sec / kSeconds) : 0;
}

// The files of a directory; none where it cannot be read.
std::vector<fs::path> FilesIn(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

Result<fs::path> NamespaceDirectory(const fs::path& directory, std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  if (name.empty() || name.size() > 64 ||
      name.find_first_not_of(kAllowed) != std::string_view::npos) {
    return InvalidInput(
        "a datastore's namespace must be 1 to 64 letters, digits, '-' and '_' long");
  }
  return directory / name;
}

Datastore::Datastore(fs::path directory, const DatastoreOptions& options)
    : directory_(std::move(directory)),
      options_(options),
      files_(options.files != nullptr ? options.files : MakePosixFiles()) {}

Result<std::unique_ptr<Datastore>> Datastore::Open(const fs::path& directory,
                                                   const DatastoreOptions& options) {
  FT_CHECK(IsFingerprint(options.tokenizer.fingerprint) && options.tokenizer.vocabulary > 0);
  FT_CHECK(options.limits.max_segments > 0 && options.threads > 0);
  std::unique_ptr<Datastore> datastore(new Datastore(directory, options));
  FT_RETURN_IF_ERROR(datastore->Recover());
  datastore->Publish();
  if (!options.read_only) {
    datastore->merge_wanted_ = true;
    // Where the second does not start, the destructor ends the first.
    datastore->writer_ = std::thread([store = datastore.get()] { store->WriterLoop(); });
    datastore->merger_ = std::thread([store = datastore.get()] { store->MergerLoop(); });
  }
  return datastore;
}

Status Datastore::Recover() {
  std::error_code error;
  if (!options_.read_only) {
    FT_RETURN_IF_ERROR(files_->CreateDirectories(directory_));
    FT_ASSIGN_OR_RETURN(lock_, DirectoryLock::Take(directory_));
    if (!fs::exists(ManifestPath(directory_), error)) {
      for (const fs::path& path : FilesIn(directory_)) {
        if (path.extension() != ".segment") continue;
        return Invalid(
            "{}: has segments but no MANIFEST; restore that file or remove the directory",
            directory_.string());
      }
      manifest_.tokenizer = options_.tokenizer;
      FT_RETURN_IF_ERROR(WriteManifest(files_.get(), directory_, manifest_));
    }
  } else if (!fs::exists(ManifestPath(directory_), error)) {
    return Invalid("{}: holds no datastore; `foretoken datastore build` makes one",
                   directory_.string());
  }
  // A process that writes may remove a file between our reading the manifest and the file.
  for (int attempt = 1;; ++attempt) {
    const Status status = ReadAll();
    if (status.ok() || !options_.read_only || attempt == 3) return status;
  }
}

Status Datastore::ReadAll() {
  segments_.clear();
  runs_.clear();
  FT_RETURN_IF_ERROR(OpenSegments());
  std::vector<std::uint64_t> logs;
  FT_RETURN_IF_ERROR(RemoveLeftovers(&logs));
  return ReplayLogs(logs);
}

Status Datastore::OpenSegments() {
  FT_ASSIGN_OR_RETURN(manifest_, ReadManifest(directory_));
  FT_RETURN_IF_ERROR(manifest_.tokenizer.CheckSame(options_.tokenizer, directory_.string()));
  for (Manifest::SegmentEntry& entry : manifest_.segments) {
    const fs::path path = SegmentPath(directory_, entry.number);
    // An earlier version did not note when documents came: they were there when the segment was
    // written.
    if (entry.arrivals.empty()) AddArrivals({DayOf(path), entry.documents}, &entry.arrivals);
    FT_ASSIGN_OR_RETURN(auto segment, OpenSegmentFile(path, options_.tokenizer));
    if (segment->tokens() != entry.tokens || segment->documents() != entry.documents) {
      return Invalid("{}: is not the segment that the manifest means", path.string());
    }
    segments_.push_back(std::move(segment));
  }
  return {};
}

// Removes what a killed process left unfinished or had yet to remove, and lists the live logs.
Status Datastore::RemoveLeftovers(std::vector<std::uint64_t>* logs) {
  std::set<std::uint64_t> live;
  for (const Manifest::SegmentEntry& entry : manifest_.segments) live.insert(entry.number);
  for (const fs::path& path : FilesIn(directory_)) {
    const std::uint64_t number = FileNumber(path);
    const bool is_log = path.extension() == ".log" && number != 0;
    const bool is_segment = path.extension() == ".segment" && number != 0;
    manifest_.next_number = std::max(manifest_.next_number, number + 1);
    if (is_log && number >= manifest_.first_log) {
      logs->push_back(number);
    } else if (!options_.read_only && (path.extension() == kTemporarySuffix || is_log ||
                                       (is_segment && !live.contains(number)))) {
      FT_RETURN_IF_ERROR(files_->Remove(path));
    }
  }
  std::ranges::sort(*logs);
  return {};
}

Status Datastore::ReplayLogs(std::span<const std::uint64_t> logs) {
  TokenText text(options_.tokenizer.vocabulary);
  std::uint64_t last_bytes = 0;
  for (const std::uint64_t number : logs) {
    const fs::path path = LogPath(directory_, number);
    FT_ASSIGN_OR_RETURN(const LogContents contents,
                        ReadEntryLog(path, options_.tokenizer.fingerprint));
    for (const auto& document : contents.documents) FT_RETURN_IF_ERROR(text.Append(document));
    if (!contents.documents.empty()) runs_day_ = std::max(runs_day_, DayOf(path));
    last_bytes = contents.good_bytes;
    std::error_code error;
    if (!options_.read_only && last_bytes < fs::file_size(path, error) && !error) {
      FT_RETURN_IF_ERROR(files_->Truncate(path, last_bytes));
    }
  }
  if (text.entries() > 0) runs_.push_back(Segment::Build(std::move(text), options_.threads));
  if (options_.read_only) return {};
  if (last_bytes > 0) {
    FT_ASSIGN_OR_RETURN(log_,
                        EntryLogWriter::Continue(files_.get(), LogPath(directory_, logs.back())));
  } else {
    FT_ASSIGN_OR_RETURN(
        log_, EntryLogWriter::Create(files_.get(), LogPath(directory_, manifest_.next_number++),
                                     options_.tokenizer.fingerprint));
  }
  return {};
}

}  // namespace foretoken
