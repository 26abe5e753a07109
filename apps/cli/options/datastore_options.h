#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "foretoken/datastore.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// Which datastore retrieval looks in, and what enters it.
struct DatastoreChoice {
  std::string directory;  ///< Empty: none.
  std::string tenant;     ///< Empty: the default one.
  bool learn = false;

  bool given() const { return !directory.empty(); }
  /// Refuses options that need a datastore where none is given; so does mode rest.
  Status Check(std::span<const Mode> modes) const;
  /// What an engine of this mode is to offer: for auto the retrieving mode too, where there is a
  /// datastore to choose it for.
  std::vector<Mode> ModesFor(Mode mode) const;
};

/// A datastore with the namespace that was chosen. Outlives the engine that reads it.
struct OpenDatastore {
  std::unique_ptr<DatastoreFolder> folder;  ///< Null: there is none.
  DatastoreTenant* tenant = nullptr;        ///< Null: likewise.

  /// Returns when everything learned is on disk.
  Status Flush() const { return folder == nullptr ? Status() : folder->Flush(); }
};

/// `--datastore`, `--learn`, `--namespace`.
void AddDatastoreOptions(CLI::App* app, DatastoreChoice* choice);

/// Opens what was chosen, for the target's tokenizer.
Result<OpenDatastore> OpenChosen(const DatastoreChoice& choice, const LanguageModel& target);

}  // namespace foretoken
