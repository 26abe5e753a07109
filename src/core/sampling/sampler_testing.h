#pragma once

// For tests: a sampler, and a backend that it can work on.

#include "core/backend/testing/reference_backend.h"
#include "core/sampling/sampler.h"
