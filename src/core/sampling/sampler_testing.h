#pragma once

// For tests: a sampler, and a backend that it can work on.

#include "core/backend/reference/reference_backend.h"
#include "core/sampling/sampler.h"
