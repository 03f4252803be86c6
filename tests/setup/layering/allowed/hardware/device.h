#pragma once

#include <vector>

#include "hardware/internal/text.h"
#include "model/units.h"
// #include "trainer/session.h"
