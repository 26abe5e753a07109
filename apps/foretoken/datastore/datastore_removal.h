#pragma once

#include "apps/foretoken/datastore/opened_datastore.h"
#include "base/result.h"

namespace foretoken {

// What a datastore holds, removed from all of its files. These write, so they are refused while
// another process writes to the namespace. One that only reads goes on with what it has opened.

/// All documents of a namespace, some by number, or those in which a text occurs.
Result<int> RunForget(DatastoreCommandOptions options);

/// The oldest documents: those that came more than a number of days ago, or all but the newest of
/// so many tokens.
Result<int> RunExpire(const DatastoreCommandOptions& options);

}  // namespace foretoken
