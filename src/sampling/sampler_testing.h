#pragma once

// For tests: a sampler, and a backend that it can work on.

#include "backend/reference/reference_backend.h"
#include "sampling/sampler.h"
