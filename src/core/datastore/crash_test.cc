#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "base/files/temporary_testing.h"
#include "core/datastore/datastore.h"
#include "core/datastore/datastore_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

enum class Death {
  kKill,       // kill -9: what was written stays.
  kPowerLoss,  // What was not synced is gone.
};

// Files whose process dies at the n-th operation; a write dies half way.
class MortalFiles : public FileSystem {
 public:
  MortalFiles(int deadly_step, Death death)
      : posix_(MakePosixFiles()), deadly_step_(deadly_step), death_(death) {}

  Result<std::unique_ptr<WritableFile>> Create(const fs::path& path) override {
    const std::scoped_lock lock(mutex_);
    Step();
    FT_ASSIGN_OR_RETURN(auto file, posix_->Create(path));
    synced_[path] = 0;
    return std::unique_ptr<WritableFile>(std::make_unique<File>(this, path, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> OpenToAppend(const fs::path& path) override {
    const std::scoped_lock lock(mutex_);
    Step();
    FT_ASSIGN_OR_RETURN(auto file, posix_->OpenToAppend(path));
    synced_[path] = fs::file_size(path);
    return std::unique_ptr<WritableFile>(std::make_unique<File>(this, path, std::move(file)));
  }
  Status CreateDirectories(const fs::path& path) override {
    const std::scoped_lock lock(mutex_);
    Step();
    return posix_->CreateDirectories(path);
  }
  Status Rename(const fs::path& from, const fs::path& to) override {
    const std::scoped_lock lock(mutex_);
    Step();
    synced_[to] = synced_[from];
    synced_.erase(from);
    return posix_->Rename(from, to);
  }
  Status Remove(const fs::path& path) override {
    const std::scoped_lock lock(mutex_);
    Step();
    synced_.erase(path);
    return posix_->Remove(path);
  }
  Status Truncate(const fs::path& path, std::uint64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    Step();
    return posix_->Truncate(path, bytes);
  }
  Status SyncDirectory(const fs::path& path) override {
    const std::scoped_lock lock(mutex_);
    Step();
    return posix_->SyncDirectory(path);
  }

 private:
  class File : public WritableFile {
   public:
    File(MortalFiles* files, fs::path path, std::unique_ptr<WritableFile> file)
        : files_(files), path_(std::move(path)), file_(std::move(file)) {}
    Status Append(std::span<const std::byte> bytes) override {
      const std::scoped_lock lock(files_->mutex_);
      if (files_->step_ + 1 == files_->deadly_step_) {
        const Status ignored = file_->Append(bytes.first(bytes.size() / 2));
        (void)ignored;
      }
      files_->Step();
      return file_->Append(bytes);
    }
    Status Sync() override {
      const std::scoped_lock lock(files_->mutex_);
      files_->Step();
      FT_RETURN_IF_ERROR(file_->Sync());
      files_->synced_[path_] = fs::file_size(path_);
      return {};
    }

   private:
    MortalFiles* files_;
    fs::path path_;
    std::unique_ptr<WritableFile> file_;
  };

  void Step() {
    if (++step_ != deadly_step_) return;
    if (death_ == Death::kPowerLoss) {
      for (const auto& [path, bytes] : synced_) {
        std::error_code error;
        if (fs::file_size(path, error) > bytes && !error) fs::resize_file(path, bytes, error);
      }
    }
    kill(getpid(), SIGKILL);
  }

  std::shared_ptr<FileSystem> posix_;
  const int deadly_step_;
  const Death death_;
  std::mutex mutex_;
  int step_ = 0;
  std::map<fs::path, std::uint64_t> synced_;
};

// What the child has been promised, in memory that outlives it.
struct Promises {
  int learned;   // Documents of which Flush has said that they are safe.
  int imported;  // Imports that have returned.
  bool removed;  // The first import is gone again, and from every file.
};

constexpr int kLearned = 24;
constexpr Token kImportMark = 900;

std::vector<Token> LearnedDocument(int i) {
  std::vector<Token> document(20 + i % 7, static_cast<Token>(i + 1));
  document.push_back(static_cast<Token>(i + 2));
  return document;
}

DatastoreOptions CrashOptions(std::shared_ptr<FileSystem> files) {
  DatastoreOptions options;
  options.tokenizer = {"tiny", std::string(64, 'a'), 1000};
  options.seal_tokens = 90;
  options.files = std::move(files);
  return options;
}

// Learns, seals, merges, imports, compacts, removes and reopens; never returns where it is to die.
void Live(const fs::path& directory, const std::shared_ptr<FileSystem>& files, Promises* promises) {
  for (int life = 0; life < 2; ++life) {
    const auto datastore = Datastore::Open(directory, CrashOptions(files));
    if (!datastore.ok()) _exit(3);
    for (int i = life * kLearned / 2; i < (life + 1) * kLearned / 2; ++i) {
      if (!(*datastore)->Learn(LearnedDocument(i)).ok()) _exit(4);
      if (i % 2 == 1) continue;  // One batch of two.
      if (!(*datastore)->Flush().ok()) _exit(5);
      promises->learned = i + 1;
    }
    TokenText text(1000);
    if (!text.Append(std::vector<Token>(30, kImportMark + life)).ok()) _exit(6);
    if (!(*datastore)->Import(std::move(text)).ok()) _exit(7);
    promises->imported = life + 1;
    if (!(*datastore)->Compact().ok()) _exit(8);
    promises->learned = (life + 1) * kLearned / 2;
    if (life == 0) continue;
    const auto removed = (*datastore)->Remove([](const StoredDocument& document) {
      return document.tokens[0] == kImportMark;
    });
    if (!removed.ok() || removed->documents != 1) _exit(9);
    promises->removed = true;
  }
}

// Whether the tokens of the first import lie in a file; no log ever had them.
bool FirstImportInFiles(const fs::path& directory) {
  const std::vector<std::uint16_t> tokens(30, kImportMark);
  const std::string_view bytes(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2);
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content(std::istreambuf_iterator<char>(file), {});
    if (content.find(bytes) != content.npos) return true;
  }
  return false;
}

void ExpectPromisesKept(const Promises& promises, const Datastore& datastore) {
  int learned = 0;
  std::multiset<Token> imported;
  for (const auto& document : DocumentsOf(*datastore.snapshot())) {
    if (document.front() >= kImportMark) {
      imported.insert(document.front());
      EXPECT_EQ(document, std::vector<Token>(30, document.front()));
      continue;
    }
    EXPECT_EQ(document, LearnedDocument(learned));  // All of them, in order, once.
    ++learned;
  }
  EXPECT_GE(learned, promises.learned);
  // While it is being removed the first may be there still or not.
  const bool removing = promises.imported == 2 && promises.learned == kLearned;
  EXPECT_GE(std::ssize(imported), promises.imported - (removing ? 1 : 0));
  EXPECT_GE(static_cast<int>(imported.count(kImportMark + 1)), promises.imported - 1);
  if (promises.removed) {
    EXPECT_EQ(imported.count(kImportMark), 0U);
  }
  EXPECT_LE(imported.count(kImportMark), 1U);
  EXPECT_LE(imported.count(kImportMark + 1), 1U);
  const auto snapshot = datastore.snapshot();
  for (const auto& segment : snapshot->segments) {
    EXPECT_TRUE(segment->CheckOrder().ok());
  }
}

// Dies at every step in turn until a life has none left. Returns the number of steps.
int DieAtEveryStep(Death death) {
  auto* promises = static_cast<Promises*>(
      mmap(nullptr, sizeof(Promises), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int step = 1;
  for (bool died = true; died; ++step) {
    const TemporaryFolder test_directory;
    const fs::path directory = test_directory.path();
    *promises = {};
    const pid_t child = fork();
    if (child == 0) {
      Live(directory / "store", std::make_shared<MortalFiles>(step, death), promises);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(died || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
    if (promises->removed) {
      EXPECT_FALSE(FirstImportInFiles(directory / "store"));
    }
    const auto reopened = Datastore::Open(directory / "store", CrashOptions(nullptr));
    EXPECT_TRUE(reopened.ok()) << "step " << step << ": " << reopened.error().message;
    if (reopened.ok()) {
      SCOPED_TRACE("step " + std::to_string(step));
      ExpectPromisesKept(*promises, **reopened);
      EXPECT_TRUE(died || (promises->learned == kLearned && promises->removed));
    }
    if (::testing::Test::HasFailure()) break;
  }
  munmap(promises, sizeof(Promises));
  return step;
}

TEST(DatastoreCrash, KilledAtEveryStepItKeepsItsPromises) {
  EXPECT_GT(DieAtEveryStep(Death::kKill), 100);
}

TEST(DatastoreCrash, PowerLostAtEveryStepItKeepsItsPromises) {
  EXPECT_GT(DieAtEveryStep(Death::kPowerLoss), 100);
}

}  // namespace
}  // namespace foretoken
