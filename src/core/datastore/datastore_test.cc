#include "core/datastore/datastore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/files/temporary_testing.h"
#include "core/datastore/datastore_tenant.h"
#include "core/datastore/datastore_testing.h"
#include "core/datastore/index/continuation_sampler.h"
#include "core/datastore/index/segment_search.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Files on a disk that is full while `full` is set; half of what is appended then still fits.
class FullDisk : public FileSystem {
 public:
  std::atomic<bool> full = false;

  Result<std::unique_ptr<WritableFile>> Create(const fs::path& path) override {
    if (full) return NoSpace();
    FT_ASSIGN_OR_RETURN(auto file, posix_->Create(path));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(this, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> OpenToAppend(const fs::path& path) override {
    return posix_->OpenToAppend(path);
  }
  Status CreateDirectories(const fs::path& path) override {
    return posix_->CreateDirectories(path);
  }
  Status Rename(const fs::path& from, const fs::path& to) override {
    return posix_->Rename(from, to);
  }
  Status Remove(const fs::path& path) override { return posix_->Remove(path); }
  Status Truncate(const fs::path& path, std::uint64_t bytes) override {
    return posix_->Truncate(path, bytes);
  }
  Status SyncDirectory(const fs::path& path) override { return posix_->SyncDirectory(path); }

 private:
  class File : public WritableFile {
   public:
    File(const FullDisk* disk, std::unique_ptr<WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    Status Append(std::span<const std::byte> bytes) override {
      FT_RETURN_IF_ERROR(file_->Append(disk_->full ? bytes.first(bytes.size() / 2) : bytes));
      return disk_->full ? Status(NoSpace()) : Status();
    }
    Status Sync() override { return file_->Sync(); }

   private:
    const FullDisk* disk_;
    std::unique_ptr<WritableFile> file_;
  };
  static Error NoSpace() { return {ErrorCode::kUnavailable, "no space left"}; }

  std::shared_ptr<FileSystem> posix_ = MakePosixFiles();
};

class DatastoreTest : public ::testing::Test {
 protected:
  static DatastoreOptions Options() {
    DatastoreOptions options;
    options.tokenizer = {"tiny", std::string(64, 'a'), 1000};
    options.seal_tokens = 300;
    return options;
  }
  std::unique_ptr<Datastore> Open(const DatastoreOptions& options = Options()) {
    auto datastore = Datastore::Open(directory_, options);
    EXPECT_TRUE(datastore.ok()) << (datastore.ok() ? "" : datastore.error().message);
    return datastore.ok() ? std::move(*datastore) : nullptr;
  }
  std::string OpenError(const DatastoreOptions& options = Options()) {
    const auto datastore = Datastore::Open(directory_, options);
    return datastore.ok() ? "" : datastore.error().message;
  }
  fs::path OnlyFile(std::string_view extension) {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().extension() != extension) continue;
      EXPECT_TRUE(found.empty()) << found << entry.path();
      found = entry.path();
    }
    return found;
  }

  TemporaryFolder test_directory_;
  const fs::path& directory_ = test_directory_.path();
};

TEST_F(DatastoreTest, LearnsAgainWhenTheDiskHasRoomAgain) {
  const auto disk = std::make_shared<FullDisk>();
  DatastoreOptions options = Options();
  options.files = disk;
  options.retry_after = std::chrono::milliseconds(5);
  std::vector<std::string> said;  // By the datastore's thread, which ends first.
  options.log = [&said](std::string_view sentence) { said.emplace_back(sentence); };
  const auto learn = [](Datastore* datastore, Token first, int tokens) {
    std::vector<Token> document(tokens, first);
    EXPECT_TRUE(datastore->Learn(document).ok());
    return datastore->Flush();
  };
  const auto await = [](Datastore* datastore) {
    for (int i = 0; i < 1000 && !datastore->learning().failure.ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(datastore->learning().failure.ok());
  };
  {
    const auto datastore = Open(options);
    EXPECT_TRUE(learn(datastore.get(), 1, 10).ok());
    disk->full = true;
    EXPECT_THAT(learn(datastore.get(), 2, 10).error().message, HasSubstr("no space left"));
    EXPECT_THAT(learn(datastore.get(), 3, 10).error().message, HasSubstr("no space left"));
    EXPECT_THAT(datastore->learning().failure.error().message, HasSubstr("no space left"));
    EXPECT_EQ(datastore->learning().lost, 2U);
    disk->full = false;
    await(datastore.get());
    EXPECT_TRUE(learn(datastore.get(), 4, 400).ok()) << "more than a segment of live tokens";
    EXPECT_TRUE(learn(datastore.get(), 5, 10).ok());
    EXPECT_EQ(datastore->learning().lost, 2U);
    EXPECT_EQ(datastore->snapshot()->documents(), 3U);
  }
  EXPECT_THAT(
      said, ::testing::ElementsAre(HasSubstr("no space left"), HasSubstr("can be written again")));
  const auto again = Open();
  std::vector<Token> firsts;
  for (const auto& document : DocumentsOf(*again->snapshot())) firsts.push_back(document[0]);
  EXPECT_THAT(firsts, ::testing::ElementsAre(1, 4, 5)) << "each once, none of the lost ones";
}

TEST_F(DatastoreTest, LearnsAndRemembers) {
  std::mt19937 random(1);
  const Documents documents = RandomDocuments(&random, 60, 40, 1000);
  Documents expected;
  for (const auto& document : documents) {
    if (!document.empty()) expected.push_back(document);
  }
  {
    const auto datastore = Open();
    for (const auto& document : documents) {
      ASSERT_TRUE(datastore->Learn(document).ok());
      ASSERT_TRUE(datastore->Flush().ok());  // Many batches: many runs and seals.
    }
    EXPECT_EQ(DocumentsOf(*datastore->snapshot()), expected);
    EXPECT_GT(datastore->manifest().segments.size(), 0U);
  }
  for (const bool read_only : {true, false}) {
    DatastoreOptions options = Options();
    options.read_only = read_only;
    const auto datastore = Open(options);
    EXPECT_EQ(DocumentsOf(*datastore->snapshot()), expected);
    const auto snapshot = datastore->snapshot();
    for (const auto& segment : snapshot->segments) {
      EXPECT_TRUE(segment->CheckOrder().ok());
    }
  }
  const auto datastore = Open();
  ASSERT_TRUE(datastore->Compact().ok());
  EXPECT_EQ(datastore->snapshot()->segments.size(), 1U);
  EXPECT_EQ(DocumentsOf(*datastore->snapshot()), expected);
}

TEST_F(DatastoreTest, WhatIsLearnedIsFoundAtOnce) {
  const auto datastore = Open();
  SnapshotReader reader(datastore.get());
  EXPECT_EQ(reader.Latest().segments.size(), 0U);
  ASSERT_TRUE(datastore->Learn(std::vector<Token>{5, 6, 7, 8}).ok());
  ASSERT_TRUE(datastore->Flush().ok());
  SegmentSearch search;
  search.Find(reader.Latest().segments, std::vector<Token>{5, 6}, 2);
  EXPECT_EQ(search.range(2, 0).size(), 1U);
}

TEST_F(DatastoreTest, EvictsTheOldestPastItsCapacity) {
  DatastoreOptions options = Options();
  options.limits = {.capacity_tokens = 4000, .max_segments = 4};
  const auto datastore = Open(options);
  const std::vector<Token> filler(99, 1);
  for (Token i = 0; i < 100; ++i) {
    std::vector<Token> document = filler;
    document.push_back(2 + i);
    ASSERT_TRUE(datastore->Learn(document).ok());
    ASSERT_TRUE(datastore->Flush().ok());
  }
  ASSERT_TRUE(datastore->Compact().ok());
  const Documents kept = DocumentsOf(*datastore->snapshot());
  EXPECT_LE(kept.size(), 40U);
  EXPECT_GE(kept.size(), 20U);
  EXPECT_EQ(kept.back().back(), 101);
  EXPECT_EQ(kept.front().back(), 102 - static_cast<Token>(kept.size()));
  // Files that are no longer needed are gone.
  std::size_t segments = 0;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    segments += entry.path().extension() == ".segment" ? 1 : 0;
  }
  EXPECT_EQ(segments, datastore->manifest().segments.size());
}

TEST_F(DatastoreTest, ImportsWholeSegments) {
  const auto datastore = Open();
  TokenText text(1000);
  ASSERT_TRUE(text.Append(std::vector<Token>{1, 2, 3}).ok());
  ASSERT_TRUE(datastore->Import(std::move(text)).ok());
  ASSERT_TRUE(datastore->Import(TokenText(1000)).ok());  // Nothing in it: no segment.
  EXPECT_EQ(datastore->snapshot()->tokens(), 3U);
  EXPECT_EQ(datastore->snapshot()->documents(), 1U);
}

TEST_F(DatastoreTest, OneWriterManyReaders) {
  const auto datastore = Open();
  EXPECT_THAT(OpenError(), HasSubstr("another process is writing"));
  DatastoreOptions options = Options();
  options.read_only = true;
  EXPECT_EQ(OpenError(options), "");
}

TEST_F(DatastoreTest, RefusesAnotherTokenizerByName) {
  Open();
  DatastoreOptions options = Options();
  options.tokenizer = {"other", std::string(64, 'b'), 1000};
  EXPECT_THAT(OpenError(options), HasSubstr("holds tokens of tiny (1000 tokens, fingerprint aaaa"));
  EXPECT_THAT(OpenError(options), HasSubstr("but those of other (1000 tokens, fingerprint bbbb"));
}

TEST_F(DatastoreTest, RefusesWhatIsNotThere) {
  DatastoreOptions options = Options();
  options.read_only = true;
  EXPECT_THAT(OpenError(options), HasSubstr("holds no datastore"));
  std::ofstream(directory_ / "000001.segment") << "x";
  EXPECT_THAT(OpenError(), HasSubstr("segments but no MANIFEST"));
}

TEST_F(DatastoreTest, LearnRefusesStrangeTokens) {
  const auto datastore = Open();
  EXPECT_FALSE(datastore->Learn(std::vector<Token>{1, 1000}).ok());
  EXPECT_TRUE(datastore->Learn({}).ok());
  EXPECT_TRUE(datastore->Flush().ok());
  EXPECT_EQ(datastore->snapshot()->documents(), 0U);
}

// Every single-bit error in a segment or manifest, and every shorter file, is refused.
TEST_F(DatastoreTest, DetectsFlippedBitsAndTruncation) {
  {
    const auto datastore = Open();
    ASSERT_TRUE(datastore->Learn(std::vector<Token>{5, 6, 7, 8, 5, 6}).ok());
    ASSERT_TRUE(datastore->Compact().ok());
  }
  std::mt19937 random(1);
  for (const fs::path& path : {OnlyFile(".segment"), directory_ / "MANIFEST"}) {
    const std::uint64_t size = fs::file_size(path);
    std::ifstream file(path, std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(file), {}};
    const auto expect_refused = [&](const std::string& content) {
      std::ofstream(path, std::ios::binary) << content;
      EXPECT_NE(OpenError(), "");
    };
    for (int i = 0; i < 150; ++i) {
      std::string bad = good;
      // Half of them in the header, where every byte counts.
      std::size_t at = random() % (i % 2 == 0 ? std::min<std::uint64_t>(size, 300) : size);
      // Between sections there is nothing.
      if (path.extension() == ".segment" && at > 4096) at = at / 4096 * 4096 + random() % 10;
      bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      expect_refused(bad);
      // The last section is not padded to its page's end by what readers need.
      expect_refused(good.substr(0, random() % (size - 4096 * (size > 4096))));
    }
    std::ofstream(path, std::ios::binary) << good;
    EXPECT_EQ(OpenError(), "");
  }
}

// All that the tree says below `node`.
void ExpectTokensBelow(int vocabulary, SampledTree* tree, std::uint32_t node) {
  std::vector<std::uint32_t> children;
  tree->VisitChildren(node, [&](std::uint32_t child, Token token, std::uint32_t) {
    EXPECT_TRUE(token >= 0 && token < vocabulary) << token;
    children.push_back(child);
  });
  for (const std::uint32_t child : children) ExpectTokensBelow(vocabulary, tree, child);
}

// Another program may shorten a file that is mapped: what is found then is worth nothing, but
// searching stays safe, nothing is built from it, and the file is named.
TEST_F(DatastoreTest, LivesThroughTruncationOfAnOpenSegment) {
  DatastoreOptions reading = Options();
  reading.read_only = true;
  for (const double part : {0.0, 0.3, 0.6, 0.9, 0.98}) {
    fs::remove_all(directory_);
    const auto datastore = Open();
    std::mt19937 random(2);
    for (const auto& document : RandomDocuments(&random, 40, 2000, 1000)) {
      ASSERT_TRUE(datastore->Learn(document).ok());
    }
    ASSERT_TRUE(datastore->Compact().ok());
    const fs::path path = OnlyFile(".segment");
    DatastoreTenant tenant(datastore.get(), nullptr, /*learns=*/false);
    ASSERT_EQ(tenant.Segments().size(), 1U);
    ASSERT_TRUE(datastore->learning().failure.ok());

    fs::resize_file(path,
                    static_cast<std::uint64_t>(part * static_cast<double>(fs::file_size(path))));
    ContinuationSampler sampler;
    const auto snapshot = datastore->snapshot();
    for (Token token = 0; token < 1000; ++token) {
      const std::vector<Token> context = {token, token / 2, token / 4, token / 8};
      for (const int longest : {4, 1}) {
        ExpectTokensBelow(1000,
                          &sampler.TakeFirst(snapshot->segments, context, longest, 1, 100, 10), 0);
      }
    }
    EXPECT_TRUE(tenant.Segments().empty());
    EXPECT_THAT(datastore->learning().failure.error().message, HasSubstr(path.string()));
    EXPECT_THAT(OpenError(reading), HasSubstr(path.string()));
    // Its neighbours are not merged with it.
    const auto before = datastore->manifest().segments;
    TokenText text(1000);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(text.Append(std::vector<Token>{1, 2, 3}).ok());
    ASSERT_TRUE(datastore->Import(std::move(text)).ok());
    EXPECT_FALSE(datastore->Compact().ok());
    EXPECT_EQ(datastore->manifest().segments.front(), before.front());
  }
}

TEST_F(DatastoreTest, ABadLogEndsAtItsFirstBadRecord) {
  const Documents documents = {{1, 2, 3}, {4, 5}, {6, 7, 8, 9}};
  {
    const auto datastore = Open();
    for (const auto& document : documents) ASSERT_TRUE(datastore->Learn(document).ok());
  }
  const fs::path log = OnlyFile(".log");
  const std::uint64_t size = fs::file_size(log);
  fs::resize_file(log, size - 1);
  EXPECT_EQ(DocumentsOf(*Open()->snapshot()), Documents({{1, 2, 3}, {4, 5}}));
  {
    const auto datastore = Open();  // Goes on behind the good records.
    ASSERT_TRUE(datastore->Learn(documents[2]).ok());
  }
  EXPECT_EQ(DocumentsOf(*Open()->snapshot()), documents);

  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(80 + 8 + 12 + 8 + 1);  // In the second record's tokens.
  file.put('\x55');
  file.close();
  EXPECT_EQ(DocumentsOf(*Open()->snapshot()), Documents({{1, 2, 3}}));
}

TEST_F(DatastoreTest, NamespacesAreFoldersWithPlainNames) {
  EXPECT_TRUE(NamespaceDirectory("d", "tenant-7_B").ok());
  for (const char* name : {"", "..", "a/b", "a b", "ä"}) {
    EXPECT_FALSE(NamespaceDirectory("d", name).ok()) << name;
  }
  EXPECT_FALSE(NamespaceDirectory("d", std::string(65, 'a')).ok());
}

// Readers query while documents are learned, sealed, merged and evicted: for ThreadSanitizer, and
// what they find is always whole.
TEST_F(DatastoreTest, ReadersAndWritersAtOnce) {
  DatastoreOptions options = Options();
  options.limits = {.capacity_tokens = 8000, .max_segments = 4};
  const auto datastore = Open(options);
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      SnapshotReader reader(datastore.get());
      SegmentSearch search;
      while (!done) {
        const Snapshot& snapshot = reader.Latest();
        search.Find(snapshot.segments, std::vector<Token>{1, 2, 3}, 3);
        for (std::size_t s = 0; s < snapshot.segments.size(); ++s) {
          EXPECT_EQ(search.range(3, s).size(), snapshot.segments[s]->documents());
        }
      }
    });
  }
  for (Token i = 0; i < 120; ++i) {
    EXPECT_TRUE(datastore->Learn(std::vector<Token>{1, 2, 3, 4 + i, 5, 6, 7, 8, 9}).ok());
    if (i % 10 == 0) {
      EXPECT_TRUE(datastore->Flush().ok());
    }
    if (i % 50 == 25) {
      EXPECT_TRUE(datastore->Compact().ok());
    }
  }
  EXPECT_TRUE(datastore->Flush().ok());
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace foretoken
