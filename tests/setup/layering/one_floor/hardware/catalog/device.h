#pragma once
#include "hardware/files/reader.h"
#include "hardware/models/gpu/time.h"
