#include <algorithm>
#include <chrono>
#include <utility>

#include "core/datastore/datastore.h"

namespace foretoken {

void Snapshot::VisitDocuments(const std::function<void(const StoredDocument&)>& visit) const {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ArrivalDays days(arrivals[i]);
    segments[i]->VisitDocuments([&](std::span<const Token> tokens) {
      visit({++number, tokens, days.Next()});
    });
  }
}

int Datastore::Today() const {
  if (options_.today) return options_.today();
  const auto now = std::chrono::system_clock::now();
  return std::chrono::floor<std::chrono::days>(now).time_since_epoch() / std::chrono::days(1);
}

// What becomes of a segment of which documents are removed.
struct Datastore::Rewriting {
  std::uint64_t old_number = 0;
  Manifest::SegmentEntry entry;
  std::shared_ptr<const Segment> segment;  // Null where nothing is left.
  RemovedDocuments removed;
};

// Asks for the documents of a segment, of which `*number` count before, and stores those that stay,
// if others do not.
Result<Datastore::Rewriting> Datastore::Rewrite(
    const Segment& segment, const Manifest::SegmentEntry& entry,
    const std::function<bool(const StoredDocument&)>& unwanted, std::uint64_t* number) {
  Rewriting rewriting = {.old_number = entry.number};
  std::vector<bool> stays;
  ArrivalDays days(entry.arrivals);
  segment.VisitDocuments([&](std::span<const Token> tokens) {
    const StoredDocument document = {++*number, tokens, days.Next()};
    stays.push_back(!unwanted(document));
    if (stays.back()) {
      AddArrivals({document.day, 1}, &rewriting.entry.arrivals);
      return;
    }
    ++rewriting.removed.documents;
    rewriting.removed.tokens += tokens.size();
  });
  if (segment.lost()) {  // What was looked at is not what was learned.
    const std::scoped_lock lock(mutex_);
    return CheckKept().error();
  }
  if (rewriting.removed.documents == 0) return rewriting;
  rewriting.removed.segments = 1;
  if (rewriting.removed.documents == stays.size()) return rewriting;

  TokenText text(options_.tokenizer.vocabulary);
  std::size_t next = 0;
  Status appended;
  segment.VisitDocuments([&](std::span<const Token> tokens) {
    if (stays[next++] && appended.ok()) appended = text.Append(tokens);
  });
  FT_RETURN_IF_ERROR(appended);
  rewriting.entry.number = TakeNumber();
  FT_ASSIGN_OR_RETURN(rewriting.segment, Store(*Segment::Build(std::move(text), options_.threads),
                                               rewriting.entry.number));
  rewriting.entry.tokens = rewriting.segment->tokens();
  rewriting.entry.documents = rewriting.segment->documents();
  return rewriting;
}

Result<RemovedDocuments> Datastore::Remove(
    const std::function<bool(const StoredDocument&)>& unwanted) {
  FT_CHECK(!options_.read_only, "removing from a datastore that was opened for reading");
  FT_RETURN_IF_ERROR(SealNow());
  const std::scoped_lock merging(merging_);
  const Manifest before = manifest();
  Segments parts;
  {
    const std::scoped_lock lock(mutex_);
    parts = segments_;
  }
  RemovedDocuments removed;
  std::vector<Rewriting> rewritings;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < before.segments.size(); ++i) {
    FT_ASSIGN_OR_RETURN(Rewriting rewriting,
                        Rewrite(*parts[i], before.segments[i], unwanted, &number));
    if (rewriting.removed.documents == 0) continue;
    removed.documents += rewriting.removed.documents;
    removed.tokens += rewriting.removed.tokens;
    removed.segments += rewriting.removed.segments;
    rewritings.push_back(std::move(rewriting));
  }
  if (rewritings.empty()) return removed;
  FT_RETURN_IF_ERROR(Commit([&](Manifest* manifest, Segments* segments) {
    for (const Rewriting& rewriting : rewritings) {
      const auto entry = std::ranges::find(manifest->segments, rewriting.old_number,
                                           &Manifest::SegmentEntry::number);
      const auto segment = segments->begin() + (entry - manifest->segments.begin());
      if (rewriting.segment == nullptr) {
        manifest->segments.erase(entry);
        segments->erase(segment);
      } else {
        *entry = rewriting.entry;
        *segment = rewriting.segment;
      }
    }
  }));
  for (const Rewriting& rewriting : rewritings) {
    FT_RETURN_IF_ERROR(files_->Remove(SegmentPath(directory_, rewriting.old_number)));
  }
  FT_RETURN_IF_ERROR(files_->SyncDirectory(directory_));
  return removed;
}

}  // namespace foretoken
