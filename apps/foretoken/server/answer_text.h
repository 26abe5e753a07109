#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/foretoken/server/api/door.h"
#include "apps/foretoken/server/models/model_registry.h"
#include "apps/foretoken/server/service.h"

namespace foretoken::server {

/// An admitted request with what is known of its answer: takes what the engine emits and writes it
/// in the form of a door. It keeps the model that it is of. One thread at a time: the HTTP server's
/// where there is little to write, one of the work pool's else.
class AnswerText {
 public:
  /// `door` outlives it.
  AnswerText(const Door& door, Admitted admitted, ModelRegistry::Lease service);

  const Admitted& admitted() const { return admitted_; }
  const ApiRequest& request() const { return admitted_.request; }
  Service& service() const { return *service_; }
  const Door& door() const { return door_; }

  /// About how many bytes bursts become.
  static std::size_t Weight(const std::vector<Burst>& bursts);

  /// What comes before the first token.
  void Start(std::string* out) { writer_->Start(admitted_.echoed, out); }
  /// Moves from `bursts`. With `last` they are the last ones, and the answer ends as it ought to.
  void Add(std::vector<Burst>* bursts, bool last, std::string* out);
  /// In place of its end, where it has begun: an error.
  void Fail(const ApiError& error, std::string* out) const { writer_->Fail(error, out); }

  // What follows is about the choices that have ended.

  /// Whether each of them could not follow its grammar further; beside one that ended well, another
  /// is only shorter.
  bool stuck() const { return stuck_ == request().choices(); }
  /// Whether the model computed for one of them what is not finite: then the others are worth
  /// nothing, either.
  bool failed() const { return failed_; }
  /// Whether one of them ended because of its length.
  bool limited() const { return limited_; }
  /// What the log says of them.
  std::string Summary() const;

 private:
  void ReadParts(Burst* burst);
  void Count(const Ending& ending);

  const Door& door_;
  const ModelRegistry::Lease service_;  // Let go of after all that is of the model.
  const Admitted admitted_;
  std::unique_ptr<ReplyWriter> writer_;
  std::vector<ChatReader> readers_;  // One for each choice of a chat.
  RequestStats stats_;
  Mode mode_ = Mode::kAr;
  bool limited_ = false;
  bool failed_ = false;
  int stuck_ = 0;
};

}  // namespace foretoken::server
