#pragma once
#include "hardware/models/gpu/time.h"
