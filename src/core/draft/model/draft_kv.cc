#include "core/draft/model/draft_kv.h"

#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

// Has a store without its taps while it lives.
class WithoutTaps {
 public:
  explicit WithoutTaps(KvStore* store) : store_(store), taps_(std::exchange(store->taps, {})) {}
  ~WithoutTaps() { store_->taps = std::move(taps_); }
  WithoutTaps(const WithoutTaps&) = delete;
  WithoutTaps& operator=(const WithoutTaps&) = delete;

 private:
  KvStore* store_;
  TapStore taps_;
};

}  // namespace

DraftKv::DraftKv(Model* model, const KvRoom& room) : model_(model) { own_.emplace(model, room); }

void DraftKv::Show(const TargetKv& target, SequenceKv* kv) {
  FT_CHECK(is_targets(), "the draft has keys and values of its own");
  kv->blocks.clear();
  kv->committed = 0;
  if (target.store == nullptr) return;
  target_ = target.store;
  kv->blocks.reserve(target.sequence->blocks.capacity());  // Which rarely grows.
  kv->blocks = target.sequence->blocks;
  kv->committed = target.sequence->committed;
}

void DraftKv::Release(SequenceKv* kv) {
  if (own_.has_value()) return own_->pool.Release(kv);
  kv->blocks.clear();
  kv->committed = 0;
}

Logits DraftKv::Forward(const ForwardBatch& batch, Interrupt interrupt) {
  if (own_.has_value()) return model_->Forward(batch, own_->store, interrupt);
  const WithoutTaps untapped(target_);
  return model_->Forward(batch, *target_, interrupt);
}

}  // namespace foretoken
