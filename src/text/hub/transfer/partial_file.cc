#include "text/hub/transfer/partial_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "text/hub/cache/own_files.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMark = 0x3170'6b6e'7574'7466;  // Marks this record's form.
constexpr std::uint64_t kMostPieces = 1 << 20;

// The record's front; a number for each piece follows, of as many bytes.
struct RecordHead {
  std::uint64_t mark = kMark;
  std::uint64_t size = 0;
  std::uint64_t piece_bytes = 0;
};

std::uint64_t PiecesOf(std::uint64_t size, std::uint64_t piece_bytes) {
  return size / piece_bytes + (size % piece_bytes != 0 ? 1 : 0);
}

bool WriteAt(int descriptor, const void* from, std::size_t bytes, std::uint64_t at) {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = pwrite(descriptor, next, bytes, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    next += written;
    at += static_cast<std::uint64_t>(written);
    bytes -= written;
  }
  return true;
}

bool ReadAt(int descriptor, void* to, std::size_t bytes, std::uint64_t at) {
  char* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t read = pread(descriptor, next, bytes, static_cast<off_t>(at));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return false;
    next += read;
    at += static_cast<std::uint64_t>(read);
    bytes -= read;
  }
  return true;
}

}  // namespace

Error PartialFile::Failed() const { return CannotWrite(path_, errno); }

Result<PartialFile> PartialFile::Open(const fs::path& path, std::uint64_t size,
                                      std::uint64_t piece_bytes) {
  PartialFile file(path, OpenOwn(path), size);
  if (file.descriptor_ < 0) return file.Failed();
  if (!file.ReadRecord()) FT_RETURN_IF_ERROR(file.StartOver(piece_bytes));
  return file;
}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      piece_bytes_(other.piece_bytes_),
      done_(std::move(other.done_)) {}

bool PartialFile::ReadRecord() {
  struct stat status = {};
  RecordHead head;
  if (fstat(descriptor_, &status) != 0) return false;
  const auto length = static_cast<std::uint64_t>(status.st_size);
  if (length == size_) {
    // Only Finish, of a complete one, leaves it without a record: it was stopped before the end.
    piece_bytes_ = std::max<std::uint64_t>(size_, 1);
    done_.assign(PiecesOf(size_, piece_bytes_), size_);
    return true;
  }
  if (!ReadAt(descriptor_, &head, sizeof(head), size_) || head.mark != kMark ||
      head.size != size_ || head.piece_bytes == 0) {
    return false;
  }
  const std::uint64_t pieces = PiecesOf(size_, head.piece_bytes);
  if (pieces > kMostPieces) return false;
  std::vector<std::uint64_t> done(pieces);
  const std::size_t bytes = pieces * sizeof(done[0]);
  if (length != size_ + sizeof(head) + bytes ||
      !ReadAt(descriptor_, done.data(), bytes, size_ + sizeof(head))) {
    return false;
  }
  piece_bytes_ = head.piece_bytes;
  done_ = std::move(done);
  for (std::size_t i = 0; i < pieces; ++i) {
    if (done_[i] > end(i) - begin(i)) return false;
  }
  return true;
}

Status PartialFile::StartOver(std::uint64_t piece_bytes) {
  FT_CHECK(piece_bytes > 0);
  // Files that are larger than any get larger pieces: the record stays small.
  piece_bytes_ = std::max(piece_bytes, PiecesOf(size_, kMostPieces));
  done_.assign(PiecesOf(size_, piece_bytes_), 0);
  const RecordHead head{.size = size_, .piece_bytes = piece_bytes_};
  // Down to nothing first: a record that is half old and half new is none.
  if (ftruncate(descriptor_, 0) != 0 ||
      !WriteAt(descriptor_, done_.data(), done_.size() * sizeof(done_[0]), size_ + sizeof(head)) ||
      !WriteAt(descriptor_, &head, sizeof(head), size_)) {
    return Failed();
  }
  return {};
}

std::uint64_t PartialFile::end(std::size_t piece) const {
  return begin(piece) + std::min(piece_bytes_, size_ - begin(piece));
}

std::uint64_t PartialFile::done() const {
  return std::accumulate(done_.begin(), done_.end(), std::uint64_t{0});
}

Status PartialFile::WriteDone(std::size_t piece) {
  const std::uint64_t at = size_ + sizeof(RecordHead) + piece * sizeof(done_[0]);
  if (!WriteAt(descriptor_, &done_[piece], sizeof(done_[0]), at)) return Failed();
  return {};
}

Status PartialFile::Append(std::size_t piece, std::string_view bytes) {
  FT_CHECK(bytes.size() <= end(piece) - next(piece));
  // The bytes before the word that they are there.
  if (!WriteAt(descriptor_, bytes.data(), bytes.size(), next(piece))) return Failed();
  done_[piece] += bytes.size();
  return WriteDone(piece);
}

Status PartialFile::Restart(std::size_t piece) {
  if (done_[piece] == 0) return {};
  done_[piece] = 0;
  return WriteDone(piece);
}

Status PartialFile::Finish(const fs::path& name) {
  FT_CHECK(complete());
  const bool done = ftruncate(descriptor_, static_cast<off_t>(size_)) == 0 &&
                    fsync(descriptor_) == 0 && rename(path_.c_str(), name.c_str()) == 0;
  if (!done) return Failed();
  return {};
}

}  // namespace foretoken
