#pragma once

#include <cstdint>
#include <optional>

#include "core/backend/backend.h"
#include "core/draft/drafter.h"
#include "core/kv/kv_cache.h"
#include "core/kv/tree_kv.h"
#include "core/model/model.h"

namespace foretoken {

/// The keys and values of a draft model's sequences. It has memory of its own for them; or its
/// layers are the target's, and it finds in the target's what that has of committed tokens: all but
/// the last one's. The rows that it adds, that one's and those of proposed tokens, then lie where
/// the target's next pass puts its own, which is behind all that is committed or shared. Borrows
/// model and target. Belongs to one thread.
class DraftKv {
 public:
  /// Room of its own.
  DraftKv(Model* model, const KvRoom& room);
  /// None of its own: the target's.
  explicit DraftKv(Model* model) : model_(model) {}
  DraftKv(const DraftKv&) = delete;
  DraftKv& operator=(const DraftKv&) = delete;

  bool is_targets() const { return !own_.has_value(); }
  /// Where the keys and values lie: the draft's own store, or the target's, once it was shown.
  KvStore& store() { return own_.has_value() ? own_->store : *target_; }
  KvMemory memory() { return {.backend = &model_->backend(), .store = &store()}; }

  /// Where it is the target's: `kv` is now what the target has of its sequence, as long as that
  /// does not change. Of what is not offered, nothing.
  void Show(const TargetKv& target, SequenceKv* kv);

  /// Makes room for positions below `end`; false where there is none. In the target's KV the target
  /// has made it, for as large a tree as it asks for.
  [[nodiscard]] bool Reserve(std::int32_t end, SequenceKv* kv) {
    if (own_.has_value()) return own_->pool.Reserve(end, kv);
    return BlocksFor(end) <= std::ssize(kv->blocks);
  }
  /// The committed positions of `kv` from `length` on are no more. The target takes back its own.
  void Truncate(std::int32_t length, SequenceKv* kv) {
    if (own_.has_value()) own_->pool.Truncate(length, kv);
  }
  /// Its sequence has ended.
  void Release(SequenceKv* kv);

  /// A pass of the model over `batch`, whose rows lie here. Of its states nothing is kept for
  /// drafters (taps): these read what the target's own passes keep.
  Logits Forward(const ForwardBatch& batch, Interrupt interrupt = {});

 private:
  struct Own {
    Own(Model* model, const KvRoom& room)
        : pool(room, /*prefix_cache=*/false),
          store(AllocateKv(model->KvShapeFor(0), pool, &model->backend())) {
      pool.ClearTakenBlocksIn(&store);
    }
    KvCache pool;
    KvStore store;
  };

  Model* model_;
  std::optional<Own> own_;
  KvStore* target_ = nullptr;
};

}  // namespace foretoken
