#pragma once

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// `format % values`: %s, %r, %d, %i, %x, %X, %o, %e, %f, %g and %% with flags, width and
/// precision; a tuple is several values, a dict is found by names, as %(name)s.
Value FormatPercent(Workspace* workspace, const Text& format, const Value& values);

/// `format.format(...)`: {}, {0} and {name}, without a specification behind a colon.
Value FormatBraces(Workspace* workspace, const Text& format, const Arguments& arguments);

}  // namespace foretoken::jinja
